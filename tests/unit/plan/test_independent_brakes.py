"""Brakes of independent indexes: the same rules as a gang's, where they fit."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, status
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual


def cluster(**changes: object) -> virtual.Cluster:
    return virtual.Cluster(virtual.shards(**{"max_failures_per_index": 9, **changes}))


def on(one: virtual.Cluster, name: str, node: str) -> str:
    """It runs there."""
    one.bind(name, node)
    one.run(name)
    one.settle()
    return name


def crash(one: virtual.Cluster, *names: str) -> virtual.Cluster:
    for name in names:
        one.end(name, 1)
        one.settle()
    one.pass_time(600)
    one.settle()
    return one


def test_a_node_on_which_two_indexes_failed_is_avoided_by_all() -> None:
    one = cluster()
    one.settle()
    crash(one, on(one, "tr-0-1", "n1"), on(one, "tr-1-1", "n1"))
    assert [one.overlays[name].avoid for name in ("tr-0-2", "tr-1-2")] == [("n1",)] * 2
    told = [event.message for event in one.events if event.reason == conditions.NODE_AVOIDED]
    assert told == ["2 failures on node n1: the next workers of this job avoid it"]


def test_where_other_indexes_finish_it_is_the_work_that_is_broken_and_not_the_node() -> None:
    one = cluster()
    one.settle()
    one.end(on(one, "tr-2-1", "n1"), 0)
    one.settle()
    crash(one, on(one, "tr-0-1", "n1"), on(one, "tr-1-1", "n1"))
    assert (one.status.failed_nodes, one.overlays["tr-0-2"].avoid) == ((), ())


def test_when_no_index_finds_another_place_they_may_go_back_there() -> None:
    one = cluster(workers=2, placement_timeout=900.0)
    one.settle()
    crash(one, on(one, "tr-0-1", "n1"), on(one, "tr-1-1", "n1"))
    for name in one.live():
        one.pods[name] = dataclasses.replace(one.pods[name], unschedulable="0/6 nodes fit")
    one.settle()
    running = conditions.find(one.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.message.endswith("0/6 nodes fit; kept off n1, where this job failed twice")
    assert one.wake is not None
    one.pass_time(one.wake)
    one.settle()
    one.pass_time(60)
    one.settle()
    assert one.live() != []
    assert {one.overlays[name].avoid for name in one.live()} == {()}
    assert one.status.failed_nodes == ()


def test_the_whole_sweep_has_a_deadline_and_what_has_finished_stays_so() -> None:
    one = cluster(active_deadline=3600.0).running()
    one.end("tr-1-1", 0)
    one.settle()
    one.pass_time(3600)
    one.settle()
    failed = conditions.find(one.status.conditions, conditions.FAILED)
    assert failed is not None
    assert (failed.status, failed.reason) == (True, conditions.DEADLINE_EXCEEDED)
    assert one.status.shards is not None
    assert (one.status.phase, one.status.shards.completed.text) == (status.Phase.FAILED, "1")
    one.recovered()
    assert one.job is not None
    assert one.job.finished


def test_an_index_whose_proxy_runs_on_is_finished_and_the_proxy_is_ended() -> None:
    one = cluster().running()
    one.finish_main("tr-1-1", 0)
    one.settle()
    assert one.status.shards is not None
    assert one.status.shards.completed.text == "1"
    assert one.pods["tr-1-1"].deleting is not None


def test_indexes_would_rather_not_go_to_a_pool_that_is_short() -> None:
    one = cluster()
    pool = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5")
    moment = one.now - dt.timedelta(seconds=1)
    one.losses = tuple(snap.Loss(pool, node, moment) for node in ("a", "b", "c"))
    one.settle()
    assert {overlay.resting for overlay in one.overlays.values()} == {(pool,)}


def test_an_index_that_its_kubelet_cannot_start_is_a_sentence() -> None:
    one = cluster(workers=1)
    one.settle()
    one.bind("tr-0-1", "n1")
    one.cannot_start("tr-0-1", "trainer: ImagePullBackOff")
    one.settle()
    running = conditions.find(one.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.reason == conditions.CANNOT_START
    assert running.message.endswith("tr-0-1 on node n1: trainer: ImagePullBackOff")


def test_the_step_of_an_index_is_not_asked_for() -> None:
    one = cluster(progress_timeout=600.0).running()
    one.progress = snap.Progress(one.pods["tr-0-1"].attempt_id, 7, 9000.0)
    one.settle()
    assert one.status.failures == 0


# One index alone.


def crashed_alone(cluster: virtual.Cluster, node: str, times: int) -> virtual.Cluster:
    """The only index fails so often on that node; then it waits for a place once more."""
    for attempt in range(1, times + 1):
        name = f"tr-0-{attempt}"
        cluster.bind(name, node)
        cluster.run(name)
        cluster.settle()
        cluster.end(name, 1)
        cluster.settle()
        cluster.pass_time(600)
        cluster.settle()
    return cluster


def single() -> virtual.Cluster:
    cluster = virtual.Cluster(virtual.shards(workers=1, max_failures_per_index=9, placement_timeout=900.0))
    cluster.settle()
    return cluster


def test_a_machine_that_fails_index_after_index_does_not_swallow_the_others() -> None:
    """It is free again at once, and so would be given the next one."""
    cluster = crashed_alone(single(), "n1", 2)
    assert cluster.overlays["tr-0-3"].avoid == ("n1",)
    told = [one.message for one in cluster.events if one.reason == conditions.NODE_AVOIDED]
    assert told == ["2 failures on node n1: the next workers of this job avoid it"]


def test_one_failure_says_nothing_against_a_machine() -> None:
    assert crashed_alone(single(), "n1", 1).overlays["tr-0-2"].avoid == ()


def test_an_index_that_finds_no_other_place_may_go_back_there_in_the_end() -> None:
    cluster = crashed_alone(single(), "n1", 2)
    cluster.pods["tr-0-3"] = dataclasses.replace(cluster.pods["tr-0-3"], unschedulable="0/6 nodes fit")
    cluster.settle()
    assert cluster.wake is not None
    assert cluster.wake <= 900
    cluster.pass_time(900)
    cluster.settle()
    assert cluster.overlays["tr-0-4"].avoid == ()
    assert cluster.live() == ["tr-0-4"]
    assert (cluster.status.failures, cluster.status.failed_nodes) == (2, ())


def test_a_job_of_indexes_that_was_active_for_too_long_has_failed() -> None:
    cluster = virtual.Cluster(virtual.shards(active_deadline=3600.0)).running()
    cluster.pass_time(3599)
    cluster.settle()
    assert cluster.status.phase is status.Phase.RUNNING
    cluster.pass_time(1)
    cluster.settle()
    failed = conditions.find(cluster.status.conditions, conditions.FAILED)
    assert failed is not None
    assert (cluster.status.phase, failed.reason) == (status.Phase.FAILED, conditions.DEADLINE_EXCEEDED)
    assert cluster.live() == []
