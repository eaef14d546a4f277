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


@pytest.mark.parametrize("fate", ["refused", "exits 1", "its node dies"])
def test_a_gang_keeps_its_grace_though_the_attempt_that_follows_breaks_before_it_has_begun(fate: str) -> None:
    """It trains well, and has all of its save to do."""
    cluster = gang()
    notice(cluster)
    cluster.bind("tr-1-2", "n5")
    match fate:
        case "refused":
            refused = dataclasses.replace(
                cluster.pods["tr-1-2"], phase="Failed", reason="UnexpectedAdmissionError"
            )
            cluster.pods["tr-1-2"] = refused
        case "exits 1":
            cluster.run("tr-1-2")
            cluster.end("tr-1-2", 1)
        case _:
            cluster.change_node("n5", silent=True)
    cluster.settle()

    assert cluster.status.attempt == 3
    short = cluster.settings.broken_grace
    assert {cluster.pods[f"tr-{index}-1"].grace > short for index in range(3)} == {True}


def test_an_older_notice_of_a_machine_that_is_gone_ends_no_training() -> None:
    """Its Node and the ended pod on it are kept for a while."""
    cluster = gang()
    first = cluster.pods["tr-1-1"].node
    notice(cluster)
    cluster.pass_time(WINDOW - LEFT)
    cluster.recovered()
    assert cluster.status.attempt == 2
    cluster.pods["old"] = dataclasses.replace(
        cluster.pods["tr-0-2"], name="old", uid="old", attempt=1, node=first, phase="Failed", running=False
    )
    begun = len(deleted(cluster))
    cluster.pass_time(60)
    node = cluster.pods["tr-2-2"].node
    cluster.change_node(node, notice="spot", deadline=cluster.now + dt.timedelta(seconds=WINDOW))
    cluster.settle()

    assert cluster.status.attempt == 3
    assert deleted(cluster)[begun:] == []
    assert cluster.pods["tr-0-2"].train_until is not None


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
