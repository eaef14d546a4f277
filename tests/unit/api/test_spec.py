"""Wishes as users write them."""

import datetime as dt
import re
from typing import Any

import pytest

from spottrain.api import prices, spec

GOOD: dict[str, Any] = {
    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "checkpoint": {"uri": "s3://b/p"},
}


def test_defaults() -> None:
    parsed = spec.parse(GOOD)
    assert (parsed.workers, parsed.max_failures, parsed.suspend, parsed.ttl) == (1, 3, False, None)
    assert parsed.spot == spec.Spot(floor=0, window=None, grace=None, spread=spec.Spread.ZONE)
    assert parsed.checkpoint == spec.Checkpoint("s3://b/p")


def test_prices_are_decimals_as_they_are_written() -> None:
    parsed = spec.parse({**GOOD, "prices": {"spot": 1.1, "onDemand": "3.67"}})
    assert parsed.prices == prices.Prices(prices.Amount("1.1"), prices.Amount("3.67"))


def test_a_price_that_was_reckoned_has_the_digits_that_are_meant() -> None:
    parsed = spec.parse({**GOOD, "prices": {"spot": 1 / 3, "onDemand": 1.0}})
    assert parsed.prices == prices.Prices(prices.Amount("0.333333"), prices.Amount("1"))


@pytest.mark.parametrize("field", ["ttlAfterFinished", "placementTimeout", "activeDeadline"])
def test_a_time_that_nobody_can_reckon_with_is_refused(field: str) -> None:
    with pytest.raises(spec.InvalidSpecError, match=f'spec.{field}: "9999999d" is longer than ten years'):
        spec.parse({**GOOD, field: "9999999d"})


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"spot": 1.1}, "spec.prices.onDemand is missing: one price says nothing; write both"),
        ({"spot": 0, "onDemand": 1}, 'spec.prices.spot: "0" is not a price per worker-hour; write a number'),
        ({"spot": 1, "onDemand": "a lot"}, 'spec.prices.onDemand: "a lot" is not a price per worker-hour;'),
    ],
)
def test_prices_that_say_nothing_are_refused(said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(spec.InvalidSpecError, match=re.escape(sentence)):
        spec.parse({**GOOD, "prices": said})


def test_a_gang_of_several_is_packed_into_one_zone_by_default() -> None:
    assert spec.parse({**GOOD, "workers": 2}).spot.spread is spec.Spread.PACK


@pytest.mark.parametrize(("text", "floor"), [("25%", 2), ("1%", 1), ("100%", 8), ("0%", 0), (3, 3)])
def test_a_floor_in_percent_is_rounded_up(text: object, floor: int) -> None:
    assert spec.parse({**GOOD, "workers": 8, "spot": {"onDemandFloor": text}}).spot.floor == floor


def test_a_fallback_has_defaults_and_without_the_word_there_is_none() -> None:
    assert spec.parse(GOOD).spot.fallback is None
    assert spec.parse({**GOOD, "spot": {"fallback": {}}}).spot.fallback == spec.Fallback(900.0, 7200.0)


@pytest.mark.parametrize(
    "change", [{"workers": 1}, {"mode": "Independent"}, {"workers": 2, "placementTimeout": "1h"}]
)
def test_who_gives_no_nodes_back_before_may_wait_for_longer(change: dict[str, Any]) -> None:
    waits = {"fallback": {"after": "1h", "for": "30m"}}
    parsed = spec.parse({**GOOD, "workers": 2, "spot": waits, **change})
    assert parsed.spot.fallback == spec.Fallback(3600.0, 1800.0)


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
        (
            {"spot": {"fallback": {"for": "0s"}}},
            "spec.spot.fallback.for: write a duration longer than 0, for example 2h",
        ),
        (
            {"workers": 2, "spot": {"fallback": {"after": "1h"}}},
            "spec.spot.fallback.after: 1h is longer than spec.placementTimeout (15m), after which a gang",
        ),
        ({"spot": {"spread": "far"}}, "spec.spot.spread: write zone, pack or none"),
        ({"checkpoint": {"uri": "./ck"}}, "spec.checkpoint.uri: write s3://bucket/prefix, gs://"),
        (
            {"checkpoint": {"directory": "/ck"}, "mode": "Independent"},
            "spec.checkpoint.directory needs spec.checkpoint.uri, where what is written there is kept",
        ),
        (
            {"checkpoint": {"uri": "s3://b/p", "directory": "ck"}},
            "spec.checkpoint.directory: write an absolute path without '.', '..', colons, spaces or a slash",
        ),
        (
            {"checkpoint": {"uri": "s3://b/p", "directory": "/a/../b"}},
            "spec.checkpoint.directory: write an absolute path",
        ),
        (
            {"checkpoint": {"uri": "s3://b/p", "directory": "/ck", "interval": "5m"}},
            "spec.checkpoint.interval is for programs that use the library: with spec.checkpoint.directory",
        ),
        ({"maxFailures": -1}, "spec.maxFailures: write a whole number of at least 0"),
        ({"maxFailures": True}, "spec.maxFailures: write a whole number of at least 0"),
    ],
)
def test_what_cannot_be_acted_on_is_named_with_its_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(spec.InvalidSpecError) as refused:
        spec.parse({**GOOD, **change})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01T08:00:00Z", dt.datetime(2026, 12, 1, 8, tzinfo=dt.UTC)),
        ("2026-12-01T09:00:00.5+01:00", dt.datetime(2026, 12, 1, 8, 0, 0, 500000, tzinfo=dt.UTC)),
    ],
)
def test_a_deadline_is_a_moment_whatever_its_zone(text: str, moment: dt.datetime) -> None:
    assert spec.parse({**GOOD, "completeBy": text}).complete_by == moment


@pytest.mark.parametrize(
    "text",
    ["tomorrow", "2026-12-01", "2026-12-01T08:00:00", "2026-13-01T08:00:00Z", "0001-01-01T00:00:00Z", 8],
)
def test_a_deadline_that_is_no_moment_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(spec.InvalidSpecError) as refused:
        spec.parse({**GOOD, "completeBy": text})
    expected = f'"{text}" is not a time; write date, time and zone, like 2026-12-01T08:00:00Z'
    assert str(refused.value) == f"spec.completeBy: {expected}"


INDEPENDENT = {**GOOD, "mode": "Independent", "workers": 80}


def test_defaults_of_an_independent_job() -> None:
    one = spec.parse(INDEPENDENT)
    assert (one.independent, one.at_once, one.spot.spread) == (True, 50, spec.Spread.ZONE)
    assert (one.max_failures, one.max_failures_per_index, one.max_failed_indexes) == (None, 3, None)
    assert spec.parse({**INDEPENDENT, "workers": 7}).at_once == 7


def test_limits_of_failures_are_those_of_an_indexed_job() -> None:
    one = spec.parse({**INDEPENDENT, "maxFailures": 20, "maxFailuresPerIndex": 1, "maxFailedIndexes": 4})
    assert (one.max_failures, one.max_failures_per_index, one.max_failed_indexes) == (20, 1, 4)
    assert spec.parse({**INDEPENDENT, "maxFailures": 20}).max_failures_per_index == 20


def test_an_independent_job_may_do_without_a_place_for_checkpoints() -> None:
    assert spec.parse({**INDEPENDENT, "checkpoint": {"keep": 5}}).checkpoint.uri == ""


def test_the_floor_is_a_part_of_those_that_run_at_once() -> None:
    one = spec.parse({**INDEPENDENT, "parallelism": 8, "spot": {"onDemandFloor": "25%"}})
    assert one.spot.floor == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parallelism": 0}, "spec.parallelism: write a whole number of at least 1"),
        ({"maxFailuresPerIndex": -1}, "spec.maxFailuresPerIndex: write a whole number of at least 0"),
        ({"maxFailedIndexes": -1}, "spec.maxFailedIndexes: write a whole number of at least 0"),
        ({"parallelism": 2, "spot": {"onDemandFloor": 3}}, "spec.spot.onDemandFloor: 3 is more than the 2"),
        ({"checkpoint": {"uri": "./ck"}}, "spec.checkpoint.uri: write s3://bucket/prefix"),
        ({"completeBy": "2026-12-01T08:00:00Z"}, "spec.completeBy: the work left is only known of a gang"),
        ({"mode": "Gang", "workers": 1001}, "spec.workers: a gang has at most 1000"),
    ],
)
def test_what_an_independent_job_cannot_be_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(spec.InvalidSpecError) as refused:
        spec.parse({**INDEPENDENT, **change})
    assert str(refused.value).startswith(message)
