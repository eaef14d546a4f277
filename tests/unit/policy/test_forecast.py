"""Jobs played many times, against the exact goodput and against certain futures. Hours."""

import dataclasses
import math
import random
import statistics

import pytest

from spottrain.policy import forecast, hazard, interval

JOB = forecast.Job(work=24.0, interval=0.5, save=0.01, restart=0.1, notice_share=0.0)


def certain(
    job: forecast.Job, changes: list[float], fallback: forecast.Fallback | None = None
) -> forecast.Run:
    """The job in the one future in which spot comes and goes at these moments; it is there at first."""

    class There:
        def future(self, draw: random.Random, regions: object) -> forecast.Weather:  # noqa: ARG002
            return forecast.Weather(iter([*changes, math.inf]), hazard.EXITS, up=True)

    return forecast.forecast(job, [There()], fallback=fallback, runs=1).runs[0]


def test_an_undisturbed_job_takes_its_start_its_work_and_its_saves():
    run = certain(JOB, [])
    assert run.wall == pytest.approx(0.1 + 24 + 48 * 0.01)
    assert (run.spot, run.reclaims) == (run.wall, 0)


def test_a_reclaim_costs_what_was_done_since_the_last_save_and_a_start():
    """At 10.5 it has done 20 periods of 0.51 and 0.2 of the next."""
    run = certain(JOB, [10.5, 10.5])
    assert run.wall == pytest.approx(10.5 + 0.1 + 14 + 28 * 0.01)
    assert (run.reclaims, run.on_demand) == (1, 0.0)


def test_an_announced_reclaim_costs_a_save_and_a_start():
    run = certain(dataclasses.replace(JOB, notice_share=1.0), [10.5, 10.5])
    done = 20 * 0.5 + 0.2
    saves = 28 * 0.01
    assert run.wall == pytest.approx(10.5 + 0.01 + 0.1 + (24 - done) + saves)


def test_without_a_fallback_it_waits_for_spot():
    run = certain(JOB, [10.5, 20.5])
    assert run.wall == pytest.approx(20.5 + 0.1 + 14 + 28 * 0.01)
    assert run.spot == pytest.approx(run.wall - 10.0)


def test_with_one_it_takes_on_demand_after_a_while_until_spot_is_back():
    """A quarter of an hour without, then five times two hours."""
    run = certain(JOB, [10.5, 20.5], forecast.Fallback(after=0.25, lasts=2.0))
    assert run.on_demand == pytest.approx(10.0)
    assert run.wall < 27


def test_a_short_gap_is_waited_out():
    run = certain(JOB, [10.5, 10.7], forecast.Fallback(after=0.25, lasts=2.0))
    assert run.on_demand == 0.0


@pytest.mark.parametrize(
    ("save", "mean", "restart", "share"),
    [
        (1 / 60, 2.0, 3 / 60, 0.8),
        (5 / 60, 6.0, 10 / 60, 0.8),
        (2 / 60, 0.5, 5 / 60, 0.8),
        (0.1, 2.0, 0.1, 0.0),
    ],
)
def test_a_long_job_takes_its_work_over_the_exact_goodput(
    save: float, mean: float, restart: float, share: float
):
    lives = interval.Lives(save, mean, restart, share)
    every = interval.optimal(cost=save, mean_time=mean, notice_share=share)
    every = min(every, 4.0)
    job = forecast.Job(2000.0, every, save, restart, share)
    # In the exact model nothing is reclaimed while it restarts: a life begins with the first step.
    found = forecast.forecast(job, [forecast.Steady(1 / mean)], runs=20)
    good = lives.goodput(every) * (mean + lives.lost_at_each) / mean
    within_restart = 2.718281828 ** (-restart / mean)
    expected = 2000.0 / (good * within_restart / (1 + share * save / mean))
    assert found.of(lambda run: run.wall).mean == pytest.approx(expected, rel=0.02)


def test_the_same_seed_plays_the_same_futures():
    places = [forecast.Learnt(hazard.Record(), 0.0, 4)]
    first, again = (forecast.forecast(JOB, places, seed=7, runs=30) for _ in range(2))
    assert first == again
    assert forecast.forecast(JOB, places, seed=8, runs=30) != first


def test_more_pools_mean_less_waiting():
    def wall(count: int) -> float:
        places = [forecast.Learnt(hazard.Record(), 0.0)] * count
        return forecast.forecast(JOB, places, runs=100).of(lambda run: run.wall).mean

    assert wall(5) < wall(3) < wall(1)


def test_pools_of_one_region_leave_a_job_waiting_more_than_those_of_two():
    """What delays the return of one delays the other's."""
    gone = dataclasses.replace(hazard.Record(), state=hazard.State.AWAY)

    def wall(*regions: str) -> forecast.Spread:
        places = [forecast.Learnt(gone, 0.0, region=region) for region in regions]
        return forecast.forecast(JOB, places, runs=2000).of(lambda run: run.wall)

    together, apart = wall("a", "a"), wall("a", "b")
    assert together.mean > 1.02 * apart.mean
    assert together.high > apart.high


def test_the_days_to_come_differ_from_those_learnt_by_as_much_as_was_measured():
    """A pool that was watched for a year: what is left is how pools change."""
    year = hazard.Curve(hazard.scaled(hazard.RETURNS, 1e4), (1e4,) * len(hazard.ENDS))
    place = forecast.Learnt(dataclasses.replace(hazard.Record(), returns=year), 0.0, region="a")
    found: list[float] = []
    for number in range(5000):
        regions: dict[str, float] = {}
        place.future(random.Random(number), regions)
        found += regions.values()
    assert statistics.mean(found) == pytest.approx(1.0, abs=0.03)
    assert statistics.variance(found) == pytest.approx(forecast.RETURNS_VARY, rel=0.1)


def test_a_job_chooses_by_what_is_known_and_not_by_what_will_come():
    place = forecast.Learnt(hazard.Record(), 0.0)
    futures = [place.future(random.Random(number), {}) for number in range(5)]
    assert len({one.until for one in futures}) == 5
    assert len({one.outlook(0.0) for one in futures}) == 1


@pytest.mark.parametrize("fallback", [None, forecast.Fallback()])
def test_what_is_not_done_at_the_limit_is_given_up_on_then(fallback: forecast.Fallback | None):
    places = [forecast.Learnt(hazard.Record(), 0.0)]
    found = forecast.forecast(JOB, places, fallback=fallback, runs=50, limit=12.0)
    assert found.done == 0.0
    assert {run.wall for run in found.runs} == {12.0}
    assert all(run.spot + run.on_demand <= 12.0 for run in found.runs)


def test_a_job_that_never_gets_on_is_given_up_on():
    found = forecast.forecast(JOB, [forecast.Steady(50.0)], runs=3)
    assert found.done == 0.0


def test_eighty_percent_of_the_futures_lie_in_the_spread():
    found = forecast.spread([float(number) for number in range(101)])
    assert found == forecast.Spread(50.0, 10.0, 90.0)
