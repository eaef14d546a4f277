"""An early checkpoint is asked for once, of those who save together, and nobody is stopped."""

import dataclasses
import datetime as dt

from spottrain.api import conditions
from spottrain.plan import actions
from tests.unit.plan import virtual

MINUTE = dt.timedelta(minutes=1)


def asks(cluster: virtual.Cluster) -> list[tuple[str, dt.datetime]]:
    return [(one.name, one.moment) for one in cluster.done if isinstance(one, actions.AskToSave)]


def hinted(cluster: virtual.Cluster, node: str, seconds: float = 60) -> dt.datetime:
    """A hint comes after so many seconds; its moment."""
    cluster.pass_time(seconds)
    cluster.change_node(node, hint=cluster.now)
    cluster.settle()
    return cluster.now


def node_of(cluster: virtual.Cluster, index: int) -> str:
    return cluster.pod(index).node


def test_c9_a_hint_on_one_node_asks_the_whole_gang_once_and_stops_nobody() -> None:
    cluster = virtual.Cluster().running()
    moment = hinted(cluster, node_of(cluster, 1))
    cluster.pass_time(600)
    cluster.settle()

    assert sorted(asks(cluster)) == [(f"tr-{index}-1", moment) for index in range(3)]
    assert (cluster.status.attempt, cluster.status.reclaims) == (1, 0)
    assert not any(isinstance(one, actions.DeletePod) for one in cluster.done)
    (event,) = [one for one in cluster.events if one.reason == conditions.RECLAIM_HINT]
    assert event.message == (
        f"{node_of(cluster, 1)} may be taken soon: a checkpoint is asked for, and nobody is stopped"
    )


def test_c9_a_hint_that_is_over_asks_nobody_again() -> None:
    cluster = virtual.Cluster().running()
    node = node_of(cluster, 0)
    hinted(cluster, node)
    before = len(asks(cluster))
    cluster.change_node(node, hint=None)
    cluster.settle()

    assert len(asks(cluster)) == before


def test_many_hints_at_a_time_are_one_save_and_one_long_after_is_another() -> None:
    cluster = virtual.Cluster().running()
    first = hinted(cluster, node_of(cluster, 0))
    hinted(cluster, node_of(cluster, 1), seconds=20)
    assert {moment for _, moment in asks(cluster)} == {first}

    later = hinted(cluster, node_of(cluster, 2), seconds=400)

    assert {moment for _, moment in asks(cluster)} == {first, later}


def test_a_worker_that_was_missed_is_asked_for_the_same_save_as_the_others() -> None:
    cluster = virtual.Cluster().running()
    moment = hinted(cluster, node_of(cluster, 0))
    cluster.pods["tr-2-1"] = dataclasses.replace(cluster.pods["tr-2-1"], save_asked=None)
    cluster.change_node(node_of(cluster, 0), hint=moment + MINUTE)
    cluster.settle()

    assert asks(cluster)[3:] == [("tr-2-1", moment)]
    assert len([one for one in cluster.events if one.reason == conditions.RECLAIM_HINT]) == 1


def test_workers_that_are_younger_than_the_hint_are_not_asked() -> None:
    cluster = virtual.Cluster().running()
    for node in cluster.nodes:
        cluster.change_node(node, hint=cluster.now)
    cluster.pass_time(60)
    cluster.evict("tr-1-1")
    cluster.recovered()
    before = [name for name, _ in asks(cluster) if name.endswith("-2")]

    assert cluster.status.attempt == 2
    assert before == []


def test_a_hint_on_a_node_without_a_worker_asks_nobody() -> None:
    cluster = virtual.Cluster().running()
    hinted(
        cluster, next(name for name in cluster.nodes if name not in {p.node for p in cluster.pods.values()})
    )

    assert asks(cluster) == []


def test_only_the_index_on_that_node_is_asked_where_each_runs_by_itself() -> None:
    cluster = virtual.Cluster(virtual.shards()).running()
    moment = hinted(cluster, node_of(cluster, 1))

    assert asks(cluster) == [("tr-1-1", moment)]
