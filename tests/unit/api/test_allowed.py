"""`spot.pools`: which pools it covers, with which weight, and as how few alternatives it can be written."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import allowed, spec

ZONES, TYPES = ("zone-a", "zone-b", "zone-c"), ("g5", "p4", "p5")
POOLS = [(zone, kind) for zone in ZONES for kind in TYPES]
ENTRIES = st.lists(
    st.tuples(st.sampled_from(("", *ZONES)), st.sampled_from(("", *TYPES))).filter(any), unique=True
).map(lambda places: tuple(allowed.Entry(*place) for place in places))


def entries(*places: tuple[str, str]) -> allowed.Entries:
    return tuple(allowed.Entry(*place) for place in places)


ENTRIES_LIKE = "write a list of entries such as {zone: us-east-1a, instanceType: p4d.24xlarge}"


def parsed(pools: object, **pod: Any) -> allowed.Entries:
    raw = {
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}], **pod}},
        "checkpoint": {"uri": "s3://b/p"},
        "spot": {"pools": pools},
    }
    return spec.parse(raw).spot.pools


def test_an_entry_names_a_zone_a_type_or_both_and_weighs_1_unless_it_says_so() -> None:
    zone, kind = {"zone": "zone-a"}, {"instanceType": "p4", "weight": 7}
    assert parsed([zone, kind, {**zone, **kind}]) == (
        allowed.Entry("zone-a", "", 1),
        allowed.Entry("", "p4", 7),
        allowed.Entry("zone-a", "p4", 7),
    )
    assert parsed([]) == parsed(None) == ()


@pytest.mark.parametrize(
    ("pools", "sentence"),
    [
        (["us-east-1a"], ENTRIES_LIKE),
        ("us-east-1a", ENTRIES_LIKE),
        (5, ENTRIES_LIKE),
        ({"zone": "a"}, ENTRIES_LIKE),
        ([None], ENTRIES_LIKE),
        ([{"zone": "a", "weight": True}], "a weight is a whole number from 1 to 100"),
        ([{"weight": 3}], "an entry needs a zone, an instanceType or both, each as a text"),
        ([{"zone": 1}], "an entry needs a zone, an instanceType or both, each as a text"),
        ([{"zone": "a", "weight": "2"}], "a weight is a whole number from 1 to 100"),
        ([{"zone": "a", "weight": 101}], "a weight is a whole number from 1 to 100"),
        ([{"zone": "a", "weight": 0}], "a weight is a whole number from 1 to 100"),
        (
            [{"zone": "a", "instanceType": "p4"}, {"instanceType": "p4", "zone": "a", "weight": 2}],
            "a p4 is named twice: keep one of the two entries",
        ),
        (
            [{"zone": f"z{number}"} for number in range(33)],
            "33 entries are more than 32: name zones alone, or instance types alone",
        ),
    ],
)
def test_what_a_list_cannot_mean_is_refused_with_what_to_write(pools: object, sentence: str) -> None:
    with pytest.raises(spec.InvalidSpecError, match=re.escape(f"spec.spot.pools: {sentence}")):
        parsed(pools)


def test_more_alternatives_than_a_pod_can_hold_are_refused_with_what_to_write() -> None:
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [f"r{n}"]}]} for n in range(4)]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    apart = [{"zone": f"z{number}", "instanceType": f"t{number}"} for number in range(9)]
    assert len(parsed(apart[:8], affinity=affinity)) == 8
    assert len(parsed([{"zone": f"z{number}"} for number in range(32)], affinity=affinity)) == 32
    sentence = (
        "spec.spot.pools: 9 places that can't be written as one, each with the 4 required node terms of "
        "spec.template, make 36 alternatives in every pod, more than 32: name zones alone, or instance types "
        "alone, or write fewer nodeSelectorTerms"
    )
    with pytest.raises(spec.InvalidSpecError, match=re.escape(sentence)):
        parsed(apart, affinity=affinity)


@pytest.mark.parametrize("affinity", ["zone-a", {"nodeAffinity": [1]}, None], ids=str)
def test_a_template_that_means_nothing_is_left_to_the_api_server_to_refuse(affinity: object) -> None:
    assert len(parsed([{"zone": "a"}, {"zone": "b"}], affinity=affinity)) == 2


def test_the_greatest_weight_counts_where_entries_overlap_and_no_other_pool_is_allowed() -> None:
    some = (allowed.Entry("zone-a", "", 2), allowed.Entry("", "p4", 5))
    found = [allowed.weight(some, *pool) for pool in (("zone-a", "g5"), ("zone-a", "p4"), ("zone-b", "g5"))]
    assert found == [2, 5, 0]


def test_without_a_list_every_pool_is_allowed_and_all_weigh_the_same() -> None:
    assert [allowed.weight((), *pool) for pool in POOLS] == [1] * len(POOLS)


def test_an_entry_is_unseen_as_long_as_it_covers_no_pool_that_there_is() -> None:
    some = entries(("zone-a", ""), ("", "p5"), ("zone-c", "g5"))
    assert allowed.unseen(some, [("zone-a", "g5"), ("zone-b", "p4")]) == some[1:]


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([("b", ""), ("a", "")], [(["a", "b"], [])]),
        ([("", "p4"), ("", "g5")], [([], ["g5", "p4"])]),
        ([("a", "p4"), ("b", "p4"), ("b", "g5"), ("a", "g5")], [(["a", "b"], ["g5", "p4"])]),
        ([("a", ""), ("a", "p4"), ("b", "p4")], [(["a"], []), (["b"], ["p4"])]),
    ],
    ids=["zones", "types", "every type in every zone", "a part of another entry"],
)
def test_entries_are_written_as_few_alternatives(
    places: list[tuple[str, str]], found: list[tuple[list[str], list[str]]]
) -> None:
    assert allowed.rectangles(entries(*places)) == found


@given(ENTRIES)
def test_the_alternatives_allow_what_the_entries_do(some: allowed.Entries) -> None:
    alternatives = allowed.rectangles(some)
    assert len(alternatives) <= len(some)
    for zone, kind in POOLS:
        among = any(
            (not zones or zone in zones) and (not types or kind in types) for zones, types in alternatives
        )
        assert among == any(one.covers(zone, kind) for one in some)


def test_the_digest_is_of_the_places_alone() -> None:
    one, other = allowed.Entry("zone-a", "p4", 3), allowed.Entry("zone-b")
    lighter = allowed.Entry("zone-a", "p4")
    assert allowed.digest((one, other)) == allowed.digest((other, lighter))
    assert allowed.digest((one,)) != allowed.digest((other,))
    assert allowed.digest(()) == ""
