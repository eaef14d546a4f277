"""A worker that is already saving when its own node's deadline comes nearer."""

import datetime as dt

import hypothesis
from hypothesis import strategies as st

from spottrain.api import spec
from spottrain.plan import actions
from spottrain.plan import grace as graces
from tests.unit.plan import virtual

PEER = "tr-0-1"


def saving(grace: float = 28.0) -> virtual.Cluster:
    """One of three was evicted, so all of them save."""
    wishes = virtual.wishes(spot=spec.Spot(window=300.0, grace=grace))
    cluster = virtual.Cluster(wishes).running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.done.clear()
    return cluster


def warn(cluster: virtual.Cluster, seconds: float) -> dt.datetime:
    """The peer's node will be taken in that many seconds."""
    deadline = cluster.now + dt.timedelta(seconds=seconds)
    cluster.change_node(cluster.pods[PEER].node, notice="spot", deadline=deadline)
    return deadline


def graces_given(cluster: virtual.Cluster) -> list[int | None]:
    return [one.grace for one in cluster.done if isinstance(one, actions.DeletePod) and one.name == PEER]


def test_a_nearer_deadline_shortens_the_grace_once() -> None:
    cluster = saving()
    cluster.pass_time(4)
    deadline = warn(cluster, 15)
    for _ in range(10):
        cluster.settle()
        cluster.pass_time(1)
    assert graces_given(cluster) == [13]
    assert cluster.kills[PEER] == deadline - dt.timedelta(seconds=2)


def test_a_still_nearer_one_shortens_it_again() -> None:
    cluster = saving()
    warn(cluster, 20)
    cluster.settle()
    cluster.pass_time(1)
    warn(cluster, 10)
    cluster.settle()
    assert graces_given(cluster) == [18, 8]


def test_a_deadline_after_its_end_changes_nothing() -> None:
    cluster = saving()
    warn(cluster, 29)
    cluster.settle()
    assert graces_given(cluster) == []


def test_a_worker_that_has_had_most_of_its_time_keeps_the_rest() -> None:
    """A second DELETE would leave it one second."""
    cluster = saving()
    cluster.pass_time(12)
    warn(cluster, 14)
    cluster.settle()
    assert graces_given(cluster) == []


def test_it_is_not_given_up_on_before_its_kubelet_would_have_killed_it() -> None:
    cluster = saving(grace=110.0)
    cluster.pass_time(45)
    deadline = warn(cluster, 52)
    cluster.settle()
    assert graces_given(cluster) == [50]
    cluster.end("tr-1-1", 75)
    cluster.end("tr-2-1", 75)
    cluster.settle()
    assert cluster.pods[PEER].deleting == cluster.now + dt.timedelta(seconds=5)
    assert cluster.wake == (deadline - cluster.now).total_seconds() + 30


@hypothesis.given(
    grace=st.integers(3, 290),
    waits=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 120)), min_size=1, max_size=4),
)
@hypothesis.settings(deadline=None)
def test_one_more_delete_per_nearer_deadline_at_most_and_never_one_that_costs_time_left(
    grace: int, waits: list[tuple[int, int]]
) -> None:
    """The virtual API server refuses a DELETE that doesn't shorten, or that takes the grace for used up."""
    cluster = saving(float(grace))
    told: list[dt.datetime] = []
    for wait, seconds in waits:
        cluster.pass_time(wait)
        if PEER not in cluster.pods:
            break
        told.append(warn(cluster, seconds))
        before = cluster.kills[PEER]
        for _ in range(3):
            cluster.settle()
            cluster.pass_time(0.4)
        if cluster.kills[PEER] != before:
            assert cluster.kills[PEER] <= told[-1] - dt.timedelta(seconds=graces.LEAST_MARGIN)
    assert len(graces_given(cluster)) <= len(told) + (PEER not in cluster.pods)
