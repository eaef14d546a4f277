"""The brakes of gangs, for indexes that run by themselves."""

import dataclasses

from spottrain.api import conditions, status
from spottrain.plan import pods
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual


def crashed(cluster: virtual.Cluster, node: str, times: int) -> virtual.Cluster:
    """The only index fails so often on that node; then it waits for a place once more."""
    for attempt in range(1, times + 1):
        cluster.fail_on(f"tr-0-{attempt}", node)
        cluster.pass_time(600)
        cluster.settle()
    return cluster


def single() -> virtual.Cluster:
    cluster = virtual.Cluster(virtual.shards(workers=1, max_failures_per_index=9, placement_timeout=900.0))
    cluster.settle()
    return cluster


def test_a_machine_that_fails_index_after_index_does_not_swallow_the_others() -> None:
    """It is free again at once, and so would be given the next one."""
    cluster = crashed(single(), "n1", 2)
    assert cluster.overlays["tr-0-3"].avoid == ("n1",)
    told = [one.message for one in cluster.events if one.reason == conditions.NODE_AVOIDED]
    assert told == ["2 failures on node n1: the next workers of this job avoid it"]


def test_an_index_that_finishes_on_a_machine_clears_it_of_what_failed_there() -> None:
    cluster = virtual.Cluster(virtual.shards(workers=2, max_failures_per_index=9))
    cluster.settle()
    for index, attempt in ((0, 1), (1, 1), (0, 2)):
        name = f"tr-{index}-{attempt}"
        cluster.bind(name, "n1")
        cluster.run(name)
        cluster.settle()
        cluster.end(name, index == 0)
        cluster.settle()
        cluster.pass_time(600)
        cluster.settle()
    assert [one.failures for one in cluster.status.failed_nodes] == [1]
    assert cluster.overlays["tr-0-3"].avoid == ()


def test_a_program_that_needs_more_memory_than_it_gets_says_nothing_against_a_machine() -> None:
    cluster = single()
    cluster.bind("tr-0-1", "n1")
    cluster.run("tr-0-1")
    cluster.settle()
    cluster.end("tr-0-1", 137, reason="OOMKilled")
    cluster.settle()
    assert cluster.status.failed_nodes == ()


def test_a_worker_that_cannot_start_is_named_with_what_its_kubelet_says() -> None:
    cluster = single()
    cluster.bind("tr-0-1", "n1")
    words = 'trainer: CreateContainerConfigError: secret "s3" not found'
    cluster.pods["tr-0-1"] = dataclasses.replace(cluster.pods["tr-0-1"], waiting=words)
    cluster.settle()
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.reason == conditions.CANNOT_START
    assert running.message == f"0 of 1 workers run; tr-0-1 on node n1: {words}"


def test_an_index_whose_main_container_has_finished_is_done_though_a_proxy_runs_on() -> None:
    cluster = single()
    cluster.bind("tr-0-1", "n1")
    cluster.run("tr-0-1")
    cluster.settle()
    ended = snap.Exit(0, "Completed", cluster.now)
    cluster.pods["tr-0-1"] = dataclasses.replace(cluster.pods["tr-0-1"], exit=ended, running=False)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    cluster.pass_time(pods.LAST_ROUNDS.total_seconds())
    cluster.settle()
    assert cluster.pods["tr-0-1"].deleting is not None


def test_one_failure_says_nothing_against_a_machine() -> None:
    assert crashed(single(), "n1", 1).overlays["tr-0-2"].avoid == ()


def test_an_index_that_finds_no_other_place_may_go_back_there_in_the_end() -> None:
    cluster = crashed(single(), "n1", 2)
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
