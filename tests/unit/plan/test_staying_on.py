"""`keepTraining`: after a notice a gang trains on while its next machine is got, and still saves in time."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import conditions, names, spec, status
from spottrain.plan import actions
from tests.unit.plan import virtual

WINDOW = 120
SAVE = 10.0
LEFT = 2 * SAVE + 7
"""Seconds before the deadline at which all are told to stop: twice the save, five seconds and the margin."""


def gang(*, keep: bool = True, save: float | None = SAVE) -> virtual.Cluster:
    """Three workers at work, whose last save took so long."""
    cluster = virtual.Cluster(virtual.wishes(spot=spec.Spot(keep_training=keep))).running()
    checkpoint = status.Checkpoint(7, cluster.now, save)
    cluster.status = dataclasses.replace(cluster.status, checkpoint=checkpoint)
    cluster.pass_time(60)
    return cluster


def notice(cluster: virtual.Cluster, index: int = 1, seconds: float | None = WINDOW, by: str = "spot") -> str:
    """The node of that worker gets one; its name."""
    node = cluster.pods[f"tr-{index}-1"].node
    deadline = None if seconds is None else cluster.now + dt.timedelta(seconds=seconds)
    cluster.change_node(node, notice=by, deadline=deadline)
    cluster.settle()
    return node


def deleted(cluster: virtual.Cluster) -> list[str]:
    return sorted(one.name for one in cluster.done if isinstance(one, actions.DeletePod))


@pytest.mark.parametrize("by", ["spot", names.DRILL])
def test_the_gang_trains_on_and_the_worker_that_goes_is_asked_for_elsewhere_at_once(by: str) -> None:
    cluster = gang()
    begun = cluster.now
    node = notice(cluster, by=by)

    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert cluster.names_of(2) == ["tr-1-2"]
    assert deleted(cluster) == []
    moment = begun + dt.timedelta(seconds=WINDOW - LEFT)
    assert {cluster.pods[name].train_until for name in cluster.names_of(1)} == {moment}
    (event,) = [one for one in cluster.events if one.reason == conditions.TRAINS_ON]
    assert event.message == "attempt 1 trains on until 2026-01-01T00:02:33Z, and saves then"
    assert cluster.wake is not None
    assert cluster.wake <= WINDOW - LEFT
    assert cluster.pods["tr-1-1"].node == node


def test_all_are_told_to_stop_when_just_enough_is_left_and_the_next_attempt_begins() -> None:
    cluster = gang()
    notice(cluster)
    cluster.pass_time(WINDOW - LEFT - 1)
    cluster.settle()
    assert deleted(cluster) == []

    cluster.pass_time(1)
    cluster.settle()

    assert deleted(cluster) == ["tr-0-1", "tr-1-1", "tr-2-1"]
    assert cluster.pods["tr-1-1"].grace >= 2 * SAVE
    cluster.recovered()
    assert cluster.status.phase is status.Phase.RUNNING
    assert (cluster.status.attempt, cluster.status.reclaims, cluster.status.failures) == (2, 1, 0)


def test_a_second_notice_with_less_time_brings_the_moment_forward() -> None:
    cluster = gang()
    notice(cluster)
    moment = cluster.now + dt.timedelta(seconds=40 - LEFT)
    notice(cluster, index=2, seconds=40)

    assert {cluster.pods[name].train_until for name in cluster.names_of(1)} == {moment}
    assert cluster.names_of(2) == ["tr-1-2", "tr-2-2"]
    assert len([one for one in cluster.events if one.reason == conditions.TRAINS_ON]) == 2


@pytest.mark.parametrize("change", ["a member ends", "evicted", "silent", "the notice withdrawn"])
def test_a_gang_that_is_whole_no_more_or_need_not_go_saves_at_once(change: str) -> None:
    cluster = gang()
    node = notice(cluster)
    match change:
        case "a member ends":
            cluster.end("tr-0-1", 1)
        case "evicted":
            cluster.evict("tr-0-1")
        case "silent":
            cluster.change_node(cluster.pods["tr-0-1"].node, silent=True)
        case _:
            cluster.change_node(node, notice="", deadline=None)
    cluster.settle()

    assert {"tr-1-1", "tr-2-1"} <= set(deleted(cluster))


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [({"keep": False}, WINDOW), ({"save": None}, WINDOW), ({"save": 60.0}, WINDOW), ({}, 20), ({}, None)],
    ids=["not wished", "no save was measured", "it fits once", "too little is left", "no deadline"],
)
def test_without_the_time_to_train_on_all_are_told_at_once(
    changes: dict[str, object], seconds: float | None
) -> None:
    cluster = gang(**changes)  # type: ignore[arg-type]
    notice(cluster, seconds=seconds)

    assert deleted(cluster) == ["tr-0-1", "tr-1-1", "tr-2-1"]


def test_what_is_no_notice_is_not_waited_for() -> None:
    """An eviction tells its worker to stop whatever we do, and the others would train alone."""
    cluster = gang()
    cluster.evict("tr-1-1")
    cluster.settle()

    assert {"tr-0-1", "tr-2-1"} <= set(deleted(cluster))


def test_only_a_gang_has_it() -> None:
    raw = {
        "mode": "Independent",
        "workers": 3,
        "spot": {"keepTraining": True},
        "template": {"spec": {"containers": [{"name": "t"}]}},
    }
    with pytest.raises(spec.InvalidSpecError, match=r"spec\.spot\.keepTraining: only a gang .* leave it out"):
        spec.parse(raw)
