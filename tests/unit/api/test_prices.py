"""Prices as people write them, in a table and on nodes."""

import pytest

from spottrain.api import names, prices
from spottrain.api.clouds import Capacity

TABLE = """\
# per worker-hour
spot       p5.48xlarge  us-east-1a  31.20
spot       p5.48xlarge  *           33
on-demand  p5.48xlarge  *           98.32  # list price
on-demand  *            *           4
"""


def rate(price: str, on_demand: str) -> prices.Rate:
    return prices.Rate(prices.parse(price), prices.parse(on_demand))


@pytest.mark.parametrize("text", ["free", "0", "-1", "nan", "inf", "", "1e7", "1,10"])
def test_what_is_no_price_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="write a number above 0"):
        prices.parse(text)


def test_a_price_of_more_decimals_than_sums_keep_is_refused() -> None:
    assert prices.parse("0.000001") == prices.Amount("0.000001")
    with pytest.raises(ValueError, match="more than 6 decimals; round it"):
        prices.parse("0.0000001")


@pytest.mark.parametrize(
    ("capacity", "instance_type", "zone", "expected"),
    [
        (Capacity.SPOT, "p5.48xlarge", "us-east-1a", rate("31.20", "98.32")),
        (Capacity.SPOT, "p5.48xlarge", "us-east-1b", rate("33", "98.32")),
        (Capacity.ON_DEMAND, "p5.48xlarge", "", rate("98.32", "98.32")),
        (Capacity.NOT_SPOT, "g5", "a", rate("4", "4")),
        (Capacity.UNKNOWN, "g5", "a", rate("4", "4")),
        (Capacity.SPOT, "g5", "a", None),
    ],
)
def test_the_first_line_that_fits_holds(
    capacity: Capacity, instance_type: str, zone: str, expected: prices.Rate | None
) -> None:
    table, problems = prices.table(TABLE)
    assert problems == []
    assert table.rate(capacity, instance_type, zone) == expected


def test_a_spot_price_without_one_on_demand_is_half_a_price() -> None:
    table, _ = prices.table("spot * * 1")
    assert table.rate(Capacity.SPOT, "g5", "a") is None


def test_broken_lines_are_named_and_the_others_hold() -> None:
    table, problems = prices.table("spot g5 a\nreserved g5 a 1\non-demand g5 a free\non-demand g5 a 4\n")
    assert problems == [
        'line 1: "spot g5 a" is not CAPACITY INSTANCE-TYPE ZONE PRICE; write four words',
        'line 2: "reserved" is no capacity; write spot or on-demand',
        'line 3: "free" is not a price per worker-hour; write a number above 0, like 1.10',
    ]
    assert table.rate(Capacity.ON_DEMAND, "g5", "a") == rate("4", "4")


def test_marks_of_a_spot_node_are_both_prices_and_of_another_one() -> None:
    one, other = {names.MARK_PRICE: "1.10"}, {names.MARK_ON_DEMAND_PRICE: "3.67"}
    assert prices.marked({**one, **other}, Capacity.SPOT) == rate("1.10", "3.67")
    assert prices.marked(one, Capacity.ON_DEMAND) == rate("1.10", "1.10")
    assert prices.marked(one, Capacity.SPOT) is prices.marked({}, Capacity.SPOT) is None


def test_a_mark_that_is_no_price_is_named() -> None:
    with pytest.raises(ValueError, match='price-per-worker-hour: "cheap" is not a price'):
        prices.marked({names.MARK_PRICE: "cheap"}, Capacity.SPOT)
