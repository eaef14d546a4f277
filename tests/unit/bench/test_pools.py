"""The benchmark of pools itself, on traces made for it: a calm zone and four that fall every hour."""

import datetime as dt
import json
import random
from pathlib import Path

import pytest

from bench import forecasts, pools, zones

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
