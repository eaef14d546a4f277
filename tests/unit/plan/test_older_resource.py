"""An API server whose resource is older than the operator, and drops what it doesn't know of the status."""

import dataclasses
import re

import pytest

from spottrain.api import fields, prices
from spottrain.plan import decide
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

EVER_THERE = {
    *(f"status.{one}" for one in ("attempt", "attemptID", "phase", "workers")),
    *(f"status.attempts[].{one}" for one in ("number", "id", "cause", "startTime", "runningTime")),
}
"""In the resource from its first version on."""
LATER = sorted(
    one for one in fields.known() - EVER_THERE if re.fullmatch(r"status\.(attempts\[]\.)?\w+", one)
)


def hit_and_back(lacking: str) -> virtual.Cluster:
    """A gang in its second life, which tells its steps and is paid for."""
    cluster = virtual.Cluster(
        virtual.wishes(prices=prices.Prices(prices.parse("1.10"), prices.parse("3.67")))
    )
    cluster.lacking = frozenset([lacking])
    cluster.running()
    cluster.pass_time(60)
    cluster.evict("tr-1-1")
    cluster.recovered()
    report = snap.Report(41, cluster.now, 1000, 3.125, resumed_from=40)
    cluster.progress = snap.Progress(cluster.status.attempt_id, 41, 0.0, report=report)
    cluster.settle()
    return cluster


@pytest.mark.parametrize("lacking", LATER)
def test_what_is_dropped_of_the_status_is_not_written_again_and_again(lacking: str) -> None:
    """Whatever is missing, passes over a job to which nothing happens write nothing."""
    cluster = hit_and_back(lacking)
    for _ in range(3):
        cluster.pass_time(30)
        snapshot = cluster.snapshot()
        assert not snapshot.is_news(decide.decide(snapshot).status)


def test_the_intent_to_begin_an_attempt_is_news_though_nothing_of_it_is_kept() -> None:
    """What was only thought of must not pass for what is stored."""
    none_kept = dataclasses.replace(virtual.Cluster().snapshot(), lacking=fields.known())
    assert none_kept.is_news(dataclasses.replace(none_kept.status, attempt=1, attempt_id="id1"))
    assert not none_kept.is_news(dataclasses.replace(none_kept.status, reclaims=1))
