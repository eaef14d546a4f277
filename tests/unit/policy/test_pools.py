"""Which pools are preferred, and how all of it is kept."""

import collections
import json
import random

import pytest

from spottrain.policy import hazard, pools

CALM = hazard.Record().after(0.0, held=True).after(100.0, held=True)
WILD = hazard.Record().after(99.0, held=True).after(99.5, held=True)
GONE = CALM.after(100.0, held=False, lost=1, of=1)
KNOWN = {"spot/a/g5": WILD, "spot/b/g5": GONE, "spot/c/g5": CALM}


def firsts(known: pools.Records, now: float) -> collections.Counter[str]:
    return collections.Counter(pools.ranked(known, now, random.Random(seed))[0] for seed in range(100))


def test_the_pool_that_held_out_for_long_comes_first_and_one_that_rests_last():
    assert firsts(KNOWN, 100.0)["spot/c/g5"] > 90
    assert all(pools.ranked(KNOWN, 100.0, random.Random(seed))[-1] == "spot/b/g5" for seed in range(20))
    assert pools.resting(KNOWN, 100.0) == ["spot/b/g5"]
    assert pools.resting(KNOWN, 105.0) == []


def test_pools_of_which_the_same_is_known_share_the_workers():
    new = hazard.Record()
    chosen = firsts({"a": new, "b": new, "c": new}, 0.0)
    assert min(chosen[name] for name in "abc") > 20


def test_the_same_draw_gives_the_same_order():
    known = {"a": hazard.Record(), "b": hazard.Record()}
    turned = dict(reversed(known.items()))
    assert pools.ranked(known, 0.0, random.Random(3)) == pools.ranked(turned, 0.0, random.Random(3))


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-west-2a", "us-west-2"),
        ("us-central1-a", "us-central1"),
        ("eastus-1", "eastus"),
        ("us-west-2-lax-1a", "us-west-2-lax-1"),
        ("", ""),
    ],
)
def test_a_pools_region_is_its_zone_without_what_tells_it_from_others(zone: str, region: str):
    assert pools.region(f"spot/{zone}/g5.xlarge") == region


def test_what_is_kept_is_what_is_read_to_three_digits():
    read = pools.decode(pools.encode(KNOWN))
    assert read.keys() == KNOWN.keys()
    for name, record in KNOWN.items():
        assert read[name].exits.hours == pytest.approx(record.exits.hours, rel=0.005)
        assert read[name].state is record.state
        assert read[name].age(100.0) == pytest.approx(record.age(100.0))
    assert pools.encode(read) == pools.encode(KNOWN)


def test_a_thousand_pools_stay_within_the_budget_and_those_seen_last_are_kept():
    many = {}
    for number in range(1000):
        record = hazard.Record().after(495000.0 + number, held=True).after(495123.4567 + number, held=True)
        record = record.after(495200.0 + number, held=False, lost=17, of=19)
        many[f"spot/northamerica-northeast1-c/a3-megagpu-8g-{number:04}"] = record
    text = pools.encode(many)
    assert len(text) < 32 * 1024
    assert len(pools.decode(text)) == pools.MOST
    assert "spot/northamerica-northeast1-c/a3-megagpu-8g-0999" in pools.decode(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("[]", "does not hold what is known of pools"),
        ('{"pools":{}}', "does not hold what is known of pools"),
        ('{"version":2,"pools":{}}', "is of version 2, and this spottrain reads 1"),
        ('{"version":1,"pools":{"a":{"times":[0,0],"losses":[0,0],"exits":[[1],[1]]}}}', "bands of age"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str, why: str):
    with pytest.raises(ValueError, match=why):
        pools.decode(text)


def test_the_text_is_json_that_people_can_read():
    one = json.loads(pools.encode({"spot/a/g5": GONE}))["pools"]["spot/a/g5"]
    assert (one["state"], one["times"], one["losses"]) == ("away", [100.0, 100.0], [1.0, 1.0])
