"""Worked examples: a job's interval, overhead, time and money before it runs."""

import dataclasses

import pytest

from spottrain.api import prices
from spottrain.policy import estimate, hazard, money

PRICES = prices.Prices(prices.parse("0.30"), prices.parse("1"))
ONE = estimate.Question(
    work=24.0, workers=1, save=90 / 3600, restart=0.0, usable=28 / 3600, rate=1 / 8, prices=PRICES
)


def first_order(answer: estimate.Answer) -> float:
    """Share of the time that saves take, and work that is lost since the last one: √(2C/M) at the optimum."""
    return answer.question.save / answer.interval + answer.interval / 2 / answer.mean_time


def test_a_save_of_90_s_and_8_h_between_reclaims_make_an_interval_of_2277_s_and_7_9_percent():
    answer = estimate.estimate(ONE)
    assert (round(3600 * answer.interval), answer.mean_time) == (2277, 8.0)
    assert first_order(answer) == pytest.approx(0.079, abs=5e-4)
    assert 1 - answer.goodput == pytest.approx(0.075, abs=0.005)  # exact: √(2C/M) is the first order


def test_a_save_of_300_s_and_90_min_make_1800_s_and_33_percent():
    answer = estimate.estimate(dataclasses.replace(ONE, save=300 / 3600, rate=1 / 1.5))
    assert round(3600 * answer.interval) == 1800
    assert first_order(answer) == pytest.approx(0.33, abs=5e-3)
    assert 1 - answer.goodput > estimate.TOO_MUCH


def test_32_nodes_at_5_percent_an_hour_are_interrupted_every_37_minutes():
    answer = estimate.estimate(dataclasses.replace(ONE, workers=32, rate=0.05))
    assert int(60 * answer.mean_time) == 37


def test_indexes_that_run_by_themselves_are_each_interrupted_at_their_own_rate():
    answer = estimate.estimate(dataclasses.replace(ONE, workers=32, rate=0.05, gang=False))
    assert answer.mean_time == pytest.approx(20.0)
    assert answer.on_demand.cost is not None
    assert answer.on_demand.cost.mean == pytest.approx(32 * answer.on_demand.wall.mean, abs=0.01)


def test_a_save_that_does_not_fit_the_window_makes_every_reclaim_lose_work():
    fits = dataclasses.replace(ONE, save=20 / 3600, notice_share=0.9)
    slow = dataclasses.replace(fits, save=40 / 3600)
    assert (fits.save_fits, fits.share) == (True, 0.9)
    assert (slow.save_fits, slow.share) == (False, 0.0)


def test_spot_costs_what_its_hours_cost_and_pays_until_its_losses_eat_the_discount():
    answer = estimate.estimate(ONE)
    assert answer.spot.cost is not None
    assert answer.spot.cost.mean == pytest.approx(0.30 * answer.spot.wall.mean, abs=0.01)
    lost = answer.interval / 2
    assert answer.lost == pytest.approx(lost)
    assert answer.break_even == pytest.approx(money.break_even(discount=0.7, work=24.0, lost=lost))
    assert answer.break_even_rate == pytest.approx((answer.break_even or 0) / 24)


def test_a_floor_is_paid_for_and_makes_a_gang_calmer():
    gang = dataclasses.replace(ONE, workers=4, floor=2)
    answer = estimate.estimate(gang)
    assert answer.mixed.reclaims.mean < answer.spot.reclaims.mean
    assert answer.spot.cost is not None
    assert answer.mixed.cost is not None
    assert answer.spot.cost.mean < answer.mixed.cost.mean


def test_a_floor_of_all_workers_has_no_reclaims_whatever_is_learnt():
    wild = hazard.Record().after(0.0, held=True).after(1.0, held=False, lost=1, of=1)
    bought = dataclasses.replace(ONE, workers=2, floor=2, rate=None, pools={"spot/a/g5": wild}, now=1.0)
    assert estimate.estimate(bought).mixed.reclaims.high == 0


def test_on_demand_is_saved_seldom_unless_the_spec_says_how_often():
    slow = dataclasses.replace(ONE, save=0.1, rate=2.0)
    assert estimate.estimate(slow).on_demand.wall.mean == pytest.approx(24 + 6 * 0.1)
    often = dataclasses.replace(slow, fixed_interval=1.0)
    assert estimate.estimate(often).on_demand.wall.mean == pytest.approx(24 + 24 * 0.1)


def test_without_prices_there_is_time_and_no_money():
    answer = estimate.estimate(dataclasses.replace(ONE, prices=None))
    assert (answer.spot.cost, answer.on_demand.cost, answer.break_even) == (None, None, None)
    assert answer.break_even_rate is None
    assert answer.spot.wall.mean > 24


def test_learnt_pools_say_how_often_the_job_is_hit():
    calm = hazard.Record().after(0.0, held=True).after(300.0, held=True)
    wild = hazard.Record()
    for hour in range(0, 300, 3):
        wild = wild.after(hour, held=True).after(hour + 1.0, held=False, lost=1, of=1)
    asked = dataclasses.replace(ONE, rate=None, now=300.0)
    in_calm = estimate.estimate(dataclasses.replace(asked, pools={"spot/a/g5": calm}))
    in_wild = estimate.estimate(dataclasses.replace(asked, pools={"spot/b/g5": wild}))
    assert in_calm.mean_time > 5 * in_wild.mean_time
    both = estimate.estimate(dataclasses.replace(asked, pools={"spot/a/g5": calm, "spot/b/g5": wild}))
    assert both.spot.wall.mean <= in_wild.spot.wall.mean


def test_pools_of_one_region_are_planned_as_such():
    gone = dataclasses.replace(hazard.Record(), state=hazard.State.AWAY)

    def wall(*names: str) -> float:
        asked = dataclasses.replace(ONE, rate=None, pools=dict.fromkeys(names, gone))
        return estimate.estimate(asked).spot.wall.mean

    together = wall("spot/us-west-2a/g5", "spot/us-west-2b/g5")
    assert together == wall("spot/us-west-2a/g5", "spot/us-west-2c/g5")
    assert together != wall("spot/us-west-2a/g5", "spot/us-east-1a/g5")
