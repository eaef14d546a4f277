"""Wishes as users write them."""

from typing import Any

import pytest

from spottrain.api import spec

GOOD: dict[str, Any] = {
    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "checkpoint": {"uri": "s3://b/p"},
}


def test_defaults() -> None:
    parsed = spec.parse(GOOD)
    assert (parsed.workers, parsed.max_failures, parsed.suspend, parsed.ttl) == (1, 3, False, None)
    assert parsed.spot == spec.Spot(floor=0, window=None, grace=None, spread=spec.Spread.ZONE)
    assert parsed.checkpoint == spec.Checkpoint("s3://b/p")


def test_a_gang_of_several_is_packed_into_one_zone_by_default() -> None:
    assert spec.parse({**GOOD, "workers": 2}).spot.spread is spec.Spread.PACK


@pytest.mark.parametrize(("text", "floor"), [("25%", 2), ("1%", 1), ("100%", 8), ("0%", 0), (3, 3)])
def test_a_floor_in_percent_is_rounded_up(text: object, floor: int) -> None:
    assert spec.parse({**GOOD, "workers": 8, "spot": {"onDemandFloor": text}}).spot.floor == floor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "spec.workers: write a whole number of at least 1"),
        ({"mode": "Elastic"}, "spec.mode: this version runs Gang and Independent"),
        ({"template": {}}, "spec.template.spec.containers: name at least one container"),
        (
            {"spot": {"onDemandFloor": 2}},
            "spec.spot.onDemandFloor: 2 is more than the 1 workers; lower it or add",
        ),
        (
            {"spot": {"onDemandFloor": "x%"}},
            'spec.spot.onDemandFloor: "x%" is neither a number of workers nor',
        ),
        (
            {"spot": {"window": "2"}},
            'spec.spot.window: "2" is not a duration; write it like 90s, 15m, 1h30m or 2d',
        ),
        ({"spot": {"spread": "far"}}, "spec.spot.spread: write zone, pack or none"),
        ({"checkpoint": {"uri": "./ck"}}, "spec.checkpoint.uri: write s3://bucket/prefix, or file:///path"),
        ({"maxFailures": -1}, "spec.maxFailures: write a whole number of at least 0"),
        ({"maxFailures": True}, "spec.maxFailures: write a whole number of at least 0"),
    ],
)
def test_what_cannot_be_acted_on_is_named_with_its_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(spec.InvalidSpecError) as refused:
        spec.parse({**GOOD, **change})
    assert str(refused.value).startswith(message)
