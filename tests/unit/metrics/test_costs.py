"""What is counted of workers' time, and to whom."""

import dataclasses
import datetime as dt

import prometheus_client as prometheus
import pytest

from spottrain.api import indexes, ledger, prices
from spottrain.metrics import costs

RATE = prices.Rate(prices.parse("1.10"), prices.parse("3.67"))
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
KEY = ("ml", "tr")
PAYER = costs.Payer(*KEY, "u1", team="vision", priced=True)
EMPTY = ledger.Ledger()
HOUR = EMPTY.plus("spot", ledger.Outcome.USEFUL, 3600, RATE)
MORE = HOUR.plus("spot", ledger.Outcome.LOST, 1800, RATE)


class Page:
    """The counters, and their values."""

    def __init__(self, *, teams: bool = False) -> None:
        self.registry = prometheus.CollectorRegistry()
        self.costs = costs.Costs(self.registry, teams=teams)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"namespace": "ml", **labels})

    def lost(self) -> float | None:
        return self.value("spottrain_worker_seconds_total", capacity="spot", outcome="lost")


def test_what_a_ledger_grows_by_is_counted_and_what_it_held_before_is_not() -> None:
    page = Page()
    page.costs.paid(PAYER, HOUR, MORE)
    page.costs.paid(PAYER, MORE, MORE)
    assert page.lost() == 1800
    assert page.value("spottrain_worker_seconds_total", capacity="spot", outcome="useful") == 0
    assert page.value("spottrain_cost_total", capacity="spot") == pytest.approx(0.55)
    assert page.value("spottrain_cost_on_demand_total") == 0


def test_useful_hours_cost_what_they_cost_and_would_have_cost_more_on_demand() -> None:
    page = Page()
    page.costs.paid(PAYER, EMPTY, HOUR)
    assert page.value("spottrain_cost_total", capacity="spot") == pytest.approx(1.10)
    assert page.value("spottrain_cost_on_demand_total") == pytest.approx(3.67)


def test_series_are_there_before_the_first_second() -> None:
    """Or `increase()` would never see it."""
    page = Page()
    page.costs.paid(PAYER, EMPTY, EMPTY)
    seconds = [
        page.value("spottrain_worker_seconds_total", capacity=capacity, outcome=str(outcome))
        for capacity in ledger.CAPACITIES
        for outcome in ledger.Outcome
    ]
    assert seconds == [0.0] * 12
    assert page.value("spottrain_cost_total", capacity="on-demand") == 0


def test_without_prices_there_is_no_series_of_money() -> None:
    page = Page()
    page.costs.paid(dataclasses.replace(PAYER, priced=False), EMPTY, EMPTY)
    assert page.lost() == 0
    assert page.value("spottrain_cost_total", capacity="spot") is None


def test_a_team_is_a_label_where_one_is_asked_for() -> None:
    page = Page(teams=True)
    page.costs.paid(PAYER, EMPTY, HOUR)
    assert page.value("spottrain_cost_total", capacity="spot", team="vision") == pytest.approx(1.10)


def test_a_job_that_is_deleted_while_it_runs_has_been_paid_for() -> None:
    since = int(NOON.timestamp()) - 600
    line = ledger.Line(1, "spot", RATE, there=indexes.of([0, 1]), since=2 * since, rest=30)
    page = Page()
    page.costs.paid(PAYER, EMPTY, dataclasses.replace(HOUR, lines=(line,)))
    page.costs.forget(KEY, NOON)
    page.costs.forget(KEY, NOON)
    assert page.lost() == 1230


def test_a_namesake_is_another_job() -> None:
    page = Page()
    page.costs.paid(PAYER, EMPTY, MORE)
    page.costs.paid(dataclasses.replace(PAYER, uid="u2"), EMPTY, MORE)
    assert page.lost() == 3600
