"""The benchmark of pools itself, on traces made for it: a calm zone and four that fall every hour."""

import argparse
import dataclasses
import datetime as dt
import json
import random
from pathlib import Path

import pytest

from bench import forecasts, pools, report, zones
from bench.policy import traces

TICKS = 2000
CALM = zones.Zone("calm", dt.datetime(2025, 1, 1, tzinfo=dt.UTC), 1 / 6, (True,) * TICKS, 1.0, 3.0)


def wild(number: int) -> zones.Zone:
    up = tuple((tick + number) % 7 != 0 for tick in range(TICKS))
    return zones.Zone(f"wild{number}", CALM.start, CALM.tick, up, 1.0, 3.0)


def test_jobs_learn_to_stay_in_the_calm_zone() -> None:
    found = [CALM, *(wild(number) for number in range(4))]
    learnt = pools.Fleet(found, pools.LEARNT, random.Random(1)).run()
    chance = pools.Fleet(found, pools.RANDOM, random.Random(1)).run()
    assert learnt.preemptions < chance.preemptions / 2
    assert learnt.running + learnt.idle == pytest.approx(pools.JOBS * TICKS / 6)


def test_a_forecast_of_what_always_is_comes_true() -> None:
    (first, *_) = forecasts.told([CALM], None)
    assert first["wall"].came == pytest.approx(24 + 0.1 + 48 / 60)
    assert first["wall"].covered


def test_what_never_gets_done_counts_until_the_trace_ends_in_the_forecast_as_in_truth() -> None:
    gone = dataclasses.replace(CALM, up=(True, *[False] * (TICKS - 1)))
    *_, last = forecasts.told([gone], None)
    begun = round(forecasts.LEARNING * 6) + 13 * round(forecasts.EVERY * 6)
    left = (TICKS - begun) / 6
    assert last["wall"].came == pytest.approx(left)
    assert last["wall"].mean <= last["wall"].high <= left + forecasts.SAME


def test_a_set_is_measured_in_as_many_pools_as_it_has() -> None:
    cases = forecasts.cases([CALM, wild(1)])
    assert list(cases) == ["spot_two", "mixed_two", "spot_one", "mixed_one"]
    table = forecasts.table("made", cases)
    head, *rows = table.splitlines()
    assert head.split("  ")[0] == "plan, made"
    assert [row.split()[0] for row in rows] == list(cases)


def test_bias_is_of_the_means_and_coverage_a_share() -> None:
    jobs = [forecasts.Told(12, 9, 11, 10), forecasts.Told(30, 31, 50, 30)]
    assert forecasts.bias(jobs) == pytest.approx(42 / 40 - 1)
    assert forecasts.coverage(jobs) == 0.5


def test_every_set_has_zones_and_pools_are_named_as_the_operator_does(tmp_path: Path) -> None:
    (tmp_path / "other.runs").write_text("us-west-2a_v100_1 3 1\nus-west-2b_v100_1 0 2 1\n")
    sets = zones.sets(tmp_path, traces.read(tmp_path))
    assert list(sets) == ["other"]
    assert [one.up for one in sets["other"]] == [(True, True, True), (False, False, True)]
    assert sets["other"][0].pool == "spot/us-west-2a/v100_1"


def test_no_trace_that_is_long_enough_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "other.runs").write_text("a 3 1\n")
    options = argparse.Namespace(traces=tmp_path)
    with pytest.raises(traces.TraceError, match="168 hours in common; name a folder with longer ones"):
        forecasts.measure(report.Report("b", {}, folder=tmp_path), traces.read(tmp_path), options)


def test_zones_are_cut_to_the_time_that_all_of_them_were_probed(tmp_path: Path) -> None:
    for name, hour, data in (("a", 0, [0, 0, 1, 1, 0, 0, 0]), ("b", 0, [1] * 9), ("c", 1, [0] * 6)):
        metadata = {"gap_seconds": 1800, "zone": name, "start_time": f"2025-01-01T0{hour}:00:00+00:00"}
        (tmp_path / f"{name}.json").write_text(json.dumps({"metadata": metadata, "data": data}))
    a, b, c = zones.load(tmp_path)
    assert a.up == (False, False, True, True, True)
    assert (len(b.up), len(c.up)) == (5, 5)


def test_a_folder_without_traces_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="give a folder of traces"):
        zones.load(tmp_path)
    with pytest.raises(ValueError, match="1 zones: 5 are needed"):
        pools.some([CALM], 5)
