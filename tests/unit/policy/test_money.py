"""Amounts, and when spot pays."""

import decimal
import random

import pytest

from spottrain.api import prices
from spottrain.policy import money

PRICES = prices.Prices(prices.parse("0.30"), prices.parse("1"))


def test_24_hours_with_three_reclaims_of_ten_minutes_cost_7_35_of_24_on_demand_hours():
    assert PRICES.discount == pytest.approx(0.7)
    assert money.cost(24 + 3 * 10 / 60, PRICES.spot) == decimal.Decimal("7.35")
    assert money.cost(24, PRICES.on_demand) == decimal.Decimal("24.00")


def test_spot_pays_in_that_case_up_to_336_reclaims():
    assert money.break_even(discount=0.7, work=24, lost=10 / 60) == pytest.approx(336)
    # So many hours more cost exactly what was saved.
    assert money.cost(24 + 336 * 10 / 60, PRICES.spot) == money.cost(24, PRICES.on_demand)


@pytest.mark.parametrize(
    ("discount", "lost", "reclaims"), [(0.0, 1.0, 0.0), (-0.5, 1.0, 0.0), (0.7, 0.0, float("inf"))]
)
def test_spot_that_is_no_cheaper_never_pays_and_a_loss_of_nothing_always(
    discount: float, lost: float, reclaims: float
):
    assert money.break_even(discount=discount, work=24, lost=lost) == reclaims


def test_less_than_half_a_cent_below_nothing_is_nothing_without_a_sign():
    assert str(prices.amount(decimal.Decimal("-0.004") * 3600)) == "0.00"


def test_amounts_add_up_to_the_cent_in_whatever_order():
    amounts = [seconds * prices.parse("3.670001") for seconds in range(1, 5000, 7)]
    there = prices.amount(sum(amounts, decimal.Decimal()))
    random.Random(1).shuffle(amounts)
    assert prices.amount(sum(amounts, decimal.Decimal())) == there == decimal.Decimal("1822.26")
