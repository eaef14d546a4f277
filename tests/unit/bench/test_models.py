"""The tables of what the policies take for granted, on traces made for them and beside published figures."""

import pytest

from bench.policy import models
from tests.unit.bench.test_pools import CALM, wild


@pytest.mark.parametrize(("case", "published"), models.PUBLISHED_GOODPUT.items(), ids=str)
def test_goodput_comes_to_what_was_published(
    case: tuple[float, float, float, float], published: tuple[float, float, float]
) -> None:
    # The published best was searched for on a coarser grid: that of the last case reads .7186 here.
    assert models.goodputs(case) == pytest.approx(published, abs=5.5e-4)


def test_rates_are_changes_over_the_hours_in_which_they_could_have_been() -> None:
    """Up for six ticks of ten minutes and down for one: lost in the last half hour of the first hour."""
    lines = {line[:24].strip(): line[24:].split() for line in models.ages({"made": [wild(0)]}).splitlines()}
    assert lines["lost, made"][:2] == ["0.00", "2.00"]
    assert lines["back, made"][0] == "6.00"
    assert lines["lost, our prior"] == ["1.50", "0.70", "0.40", "0.21", "0.14", "0.07"]


def test_where_nothing_was_lost_no_rate_is_made_up() -> None:
    last = models.ages({"made": [CALM]}).splitlines()
    assert next(line for line in last if line.startswith("back, made")).split()[2:] == ["nan"] * 6
