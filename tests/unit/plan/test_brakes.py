"""Brakes: what fails, or is taken away, again and again is waited out, kept off, and ended."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import clouds, conditions, status
from spottrain.plan import actions, preferences, storms
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard
from tests.unit.plan import virtual

POOL = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5.xlarge")


def running_condition(cluster: virtual.Cluster) -> conditions.Condition:
    found = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert found is not None
    return found


def reclaimed(cluster: virtual.Cluster, times: int) -> virtual.Cluster:
    """Taken down so often in a row, each time as soon as it runs."""
    for _ in range(times):
        cluster.evict(cluster.pod(1).name)
        cluster.recovered()
    return cluster


# Reclaims without progress.


def test_twenty_reclaims_without_progress_cost_no_wait_and_the_next_one_does() -> None:
    cluster = reclaimed(virtual.Cluster().running(), 20)
    assert cluster.status.phase is status.Phase.RUNNING
    reclaimed(cluster, 1)
    assert cluster.names_of(22) == []
    assert cluster.wake is not None
    assert 15 <= cluster.wake <= 30
    assert running_condition(cluster).reason == conditions.RECLAIM_STORM
    assert running_condition(cluster).message.startswith(
        "reclaimed 21 times in a row before it made progress; next try at "
    )
    assert [one.reason for one in cluster.events].count(conditions.RECLAIM_STORM) == 1
    cluster.pass_time(cluster.wake)
    cluster.running()
    assert (cluster.status.attempt, cluster.status.failures) == (22, 0)


def test_a_storm_that_goes_on_is_waited_out_for_longer_each_time_but_not_for_ever() -> None:
    cluster = reclaimed(virtual.Cluster().running(), 20)
    waits = []
    for _ in range(8):
        reclaimed(cluster, 1)
        assert cluster.wake is not None
        waits.append(cluster.wake)
        cluster.pass_time(cluster.wake)
        cluster.running()
    limits = [30, 60, 120, 240, 480, 600, 600, 600]
    assert all(limit / 2 - 1 <= wait <= limit for wait, limit in zip(waits, limits, strict=True)), waits


def test_an_attempt_that_ran_for_a_while_ends_the_storm() -> None:
    cluster = reclaimed(virtual.Cluster().running(), 20)
    cluster.pass_time(storms.PROGRESS.total_seconds())
    reclaimed(cluster, 1)
    assert cluster.status.storm.reclaims == 0
    assert cluster.status.phase is status.Phase.RUNNING


def test_a_step_that_moved_ends_the_storm() -> None:
    """It is told when a worker ends, which is after the reclaim was decided on: so at the next one."""
    cluster = reclaimed(virtual.Cluster().running(), 19)
    cluster.evict(cluster.pod(1).name)
    cluster.settle()
    cluster.end("tr-0-20", 75, said=snap.Words("preempted", 40))
    cluster.recovered()
    assert cluster.status.storm.reclaims == 20
    reclaimed(cluster, 1)
    assert (cluster.status.storm, cluster.status.phase) == (status.Storm(0, 40), status.Phase.RUNNING)


# Pools that lose machines.


def losses(cluster: virtual.Cluster, *nodes: str, ago: float = 0.0) -> tuple[snap.Loss, ...]:
    moment = cluster.now - dt.timedelta(seconds=ago)
    return tuple(snap.Loss(POOL, node, moment) for node in nodes)


def test_workers_would_rather_not_go_to_a_pool_that_has_just_lost_three_machines() -> None:
    cluster = virtual.Cluster()
    cluster.losses = losses(cluster, "a", "b", "c")
    cluster.settle()
    assert {one.resting for one in cluster.overlays.values()} == {(POOL,)}
    told = [one.message for one in cluster.events if one.reason == conditions.POOL_RESTS]
    assert told == ["spot g5.xlarge zone-a has just lost machines: other places are preferred for a while"]


def test_all_pools_that_rest_are_told_in_one_event() -> None:
    cluster = virtual.Cluster()
    other = dataclasses.replace(POOL, zone="zone-b")
    cluster.losses = tuple(snap.Loss(pool, node, cluster.now) for pool in (POOL, other) for node in "abc")
    cluster.settle()
    told = [one.message for one in cluster.events if one.reason == conditions.POOL_RESTS]
    assert len(told) == 1
    assert told[0].endswith("have just lost machines: other places are preferred for a while")


@pytest.mark.parametrize(
    ("nodes", "ago", "capacity"),
    [
        (("a", "b"), 0.0, clouds.Capacity.SPOT),
        (("a", "b", "c"), 600.0, clouds.Capacity.SPOT),
        (("a", "b", "c"), 0.0, clouds.Capacity.ON_DEMAND),
    ],
    ids=["two machines", "ten minutes ago", "on-demand"],
)
def test_a_pool_does_not_rest_for_less(nodes: tuple[str, ...], ago: float, capacity: clouds.Capacity) -> None:
    cluster = virtual.Cluster()
    pool = dataclasses.replace(POOL, capacity=capacity)
    lost = losses(cluster, *nodes, ago=ago)
    cluster.losses = tuple(dataclasses.replace(one, pool=pool) for one in lost)
    cluster.settle()
    assert {one.resting for one in cluster.overlays.values()} == {()}


# What has been learnt of pools.


def held(cluster: virtual.Cluster, hours: float, *, lost: bool = False) -> hazard.Record:
    """Held for so long until now, or until it was lost."""
    now = cluster.now.timestamp() / 3600
    record = hazard.Record().after(now - hours, held=True)
    return record.after(now, held=not lost, lost=int(lost), of=int(lost))


def in_zone(zone: str) -> snap.Pool:
    return dataclasses.replace(POOL, zone=zone)


def test_a_pool_that_lost_all_that_was_held_there_rests_as_long_as_its_capacity_usually_stays_away() -> None:
    cluster = virtual.Cluster()
    cluster.known = {POOL: held(cluster, 5.0, lost=True)}
    assert storms.resting(cluster.snapshot()) == (POOL,)
    rest = cluster.known[POOL].rest
    cluster.pass_time(3600 * rest - 1)
    assert storms.resting(cluster.snapshot()) == (POOL,)
    cluster.pass_time(1)
    assert storms.resting(cluster.snapshot()) == ()


def test_new_workers_prefer_a_pool_that_held_out_and_none_that_rests() -> None:
    cluster = virtual.Cluster()
    calm, young, fallen = (in_zone(zone) for zone in ("zone-a", "zone-b", "zone-c"))
    cluster.known = {
        calm: held(cluster, 200.0),
        young: held(cluster, 0.1),
        fallen: held(cluster, 5.0, lost=True),
    }
    cluster.settle()
    (wanted,) = {one.preferred for one in cluster.overlays.values()}
    assert wanted == (calm, young)


def test_where_there_is_no_choice_nothing_is_preferred() -> None:
    cluster = virtual.Cluster()
    cluster.known = {POOL: held(cluster, 200.0)}
    cluster.settle()
    assert {one.preferred for one in cluster.overlays.values()} == {()}


def test_a_pool_of_which_only_nodes_are_known_is_a_choice_too() -> None:
    cluster = virtual.Cluster()
    cluster.known = {POOL: held(cluster, 200.0)}
    cluster.nodes["new"] = snap.Node(
        "new", "u", clouds.Capacity.SPOT, "aws", zone="zone-b", instance_type="p4"
    )
    found = preferences.preferred(cluster.snapshot(), "an id")
    assert set(found) == {POOL, cluster.nodes["new"].pool}


def test_jobs_spread_over_pools_that_are_about_as_good_and_each_decides_the_same_again() -> None:
    cluster = virtual.Cluster()
    cluster.known = {in_zone(f"zone-{name}"): held(cluster, 50.0) for name in "abc"}
    snapshot = cluster.snapshot()
    first = [preferences.preferred(snapshot, f"id{number}")[0] for number in range(30)]
    assert first == [preferences.preferred(snapshot, f"id{number}")[0] for number in range(30)]
    assert len(set(first)) == 3


# Machines on which the job fails.


def crashed(cluster: virtual.Cluster, node: str, times: int) -> virtual.Cluster:
    """A single worker that fails so often on that node."""
    for _ in range(times):
        cluster.settle()
        while not cluster.snapshot().current:
            cluster.pass_time(600)
            cluster.settle()
        cluster.fail_on(cluster.pod(0).name, node)
    cluster.pass_time(600)
    cluster.settle()
    return cluster


def single() -> virtual.Cluster:
    return virtual.Cluster(virtual.wishes(workers=1, max_failures=9, placement_timeout=900.0))


def test_a_node_on_which_the_job_failed_twice_is_avoided_and_it_is_said() -> None:
    cluster = crashed(single(), "n1", 2)
    assert cluster.overlays["tr-0-3"].avoid == ("n1",)
    told = [one.message for one in cluster.events if one.reason == conditions.NODE_AVOIDED]
    assert told == ["2 failures on node n1: the next workers of this job avoid it"]
    assert [(one.name, one.failures) for one in cluster.status.failed_nodes] == [("n1", 2)]


def test_a_node_on_which_it_failed_once_is_not() -> None:
    assert crashed(single(), "n1", 1).overlays["tr-0-2"].avoid == ()


def test_a_machine_that_came_under_the_same_name_is_another_one() -> None:
    cluster = crashed(single(), "n1", 2)
    cluster.change_node("n1", uid="u-new")
    cluster.run_all()
    cluster.evict("tr-0-3")
    cluster.recovered()
    assert cluster.overlays["tr-0-4"].avoid == ()
    crashed(cluster, "n1", 1)
    assert [(one.uid, one.failures) for one in cluster.status.failed_nodes] == [("u-new", 1)]


def test_a_node_is_not_avoided_when_there_is_no_other_of_its_kind() -> None:
    cluster = single()
    cluster.change_node("n1", instance_type="p4d")
    assert crashed(cluster, "n1", 2).overlays["tr-0-3"].avoid == ()


def test_a_clouds_only_node_is_avoided_since_another_may_come() -> None:
    cluster = single()
    cluster.change_node("n1", instance_type="p4d", provider="aws")
    assert crashed(cluster, "n1", 2).overlays["tr-0-3"].avoid == ("n1",)


def test_where_every_node_has_failed_it_is_the_program_and_none_is_avoided() -> None:
    cluster = single()
    for name in ("n3", "n4", "n5"):
        del cluster.nodes[name]
    crashed(crashed(cluster, "n1", 2), "n2", 2)
    assert cluster.overlays["tr-0-5"].avoid == ()


def test_a_worker_that_finds_no_other_place_may_go_back_there_in_the_end() -> None:
    cluster = crashed(single(), "n1", 2)
    cluster.pods["tr-0-3"] = dataclasses.replace(cluster.pods["tr-0-3"], unschedulable="0/6 nodes fit")
    cluster.settle()
    assert running_condition(cluster).message == (
        "0 of 1 workers run; 0/6 nodes fit; kept off n1, where this job failed twice"
    )
    assert cluster.wake is not None
    assert cluster.wake <= 900
    cluster.pass_time(cluster.wake)
    cluster.settle()
    last = cluster.status.attempts[-1]
    assert last.cause is status.Cause.UNPLACED
    assert last.detail == "no place but n1, where this job failed twice: no longer avoided"
    cluster.pass_time(600)
    cluster.settle()
    assert cluster.overlays["tr-0-4"].avoid == ()


def test_the_member_of_a_gang_that_failed_first_names_the_node() -> None:
    cluster = virtual.Cluster(virtual.wishes(max_failures=9)).running()
    bad = cluster.pod(2).node
    for _ in range(2):
        names = {index: cluster.pod(index).name for index in range(3)}
        cluster.bind(names[2], bad)
        cluster.end(names[2], 1)
        cluster.pass_time(1)
        cluster.end(names[0], 1)
        cluster.end(names[1], 1)
        cluster.settle()
        cluster.pass_time(600)
        cluster.recovered()
    assert [(one.name, one.failures) for one in cluster.status.failed_nodes] == [(bad, 2)]


def test_members_that_were_told_to_stop_are_not_among_those_that_failed() -> None:
    cluster = virtual.Cluster(virtual.wishes(max_failures=9)).running()
    bad = cluster.pod(2).node
    cluster.end("tr-2-1", 1)
    cluster.settle()
    for name in ("tr-0-1", "tr-1-1"):
        cluster.end(name, 143)
    cluster.settle()
    assert [(one.name, one.failures) for one in cluster.status.failed_nodes] == [(bad, 1)]


def test_a_program_that_fails_everywhere_at_once_is_held_against_no_node() -> None:
    cluster = virtual.Cluster(virtual.wishes(max_failures=9)).running()
    for index in range(3):
        cluster.end(f"tr-{index}-1", 1)
    cluster.settle()
    assert (cluster.status.failures, cluster.status.failed_nodes) == (1, ())


def test_running_out_of_memory_is_no_nodes_fault() -> None:
    cluster = single().running()
    cluster.end("tr-0-1", 137, "OOMKilled")
    cluster.settle()
    assert (cluster.status.failures, cluster.status.failed_nodes) == (1, ())


# The deadline of the whole job.


def test_a_job_that_is_active_for_too_long_fails_and_its_workers_may_save() -> None:
    cluster = virtual.Cluster(virtual.wishes(active_deadline=3600.0)).running()
    assert cluster.wake == 3600.0
    cluster.pass_time(1800)
    reclaimed(cluster, 1)
    cluster.pass_time(1800)
    cluster.settle()
    failed = conditions.find(cluster.status.conditions, conditions.FAILED)
    assert failed is not None
    assert (failed.status, failed.reason) == (True, "DeadlineExceeded")
    assert failed.message == "active since 2026-01-01T00:00:00Z, and spec.activeDeadline is 1h"
    assert {pod.grace for pod in cluster.pods.values() if pod.deleting} == {28.0}
    cluster.recovered()
    assert cluster.job is not None
    assert (cluster.status.phase, cluster.job.finished) == (status.Phase.FAILED, True)


def test_the_time_of_a_resumed_job_begins_anew() -> None:
    cluster = virtual.Cluster(virtual.wishes(active_deadline=3600.0)).running()
    cluster.pass_time(3000)
    cluster.edit(virtual.wishes(active_deadline=3600.0, suspend=True))
    cluster.recovered()
    cluster.pass_time(9000)
    cluster.settle()
    phases = [cluster.status.phase]
    cluster.edit(virtual.wishes(active_deadline=3600.0))
    cluster.recovered()
    assert cluster.wake == 3600.0
    assert [*phases, cluster.status.phase] == [status.Phase.SUSPENDED, status.Phase.RUNNING]


def test_a_job_that_finishes_as_its_time_is_over_has_finished() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1, active_deadline=60.0)).running()
    cluster.pass_time(60)
    cluster.end("tr-0-1", 0)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE


def test_a_job_of_a_version_without_the_deadline_is_active_since_its_start() -> None:
    cluster = virtual.Cluster(virtual.wishes(active_deadline=3600.0)).running()
    cluster.status = dataclasses.replace(cluster.status, active_since=None)
    cluster.pass_time(3600)
    cluster.settle()
    assert cluster.status.phase is status.Phase.FAILED


# Workers that can't start.


def test_a_worker_whose_container_cannot_be_made_is_a_condition_with_its_kubelets_words() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.bind("tr-1-1", "n1")
    words = 'trainer: CreateContainerConfigError: secret "s3" not found'
    cluster.pods["tr-1-1"] = dataclasses.replace(cluster.pods["tr-1-1"], waiting=words)
    cluster.settle()
    assert (running_condition(cluster).reason, running_condition(cluster).message) == (
        conditions.CANNOT_START,
        f"0 of 3 workers run; tr-1-1 on node n1: {words}",
    )
    assert cluster.status.attempt == 1


def test_a_worker_that_starts_for_minutes_is_pointed_at() -> None:
    """A volume that can't be mounted shows in the pod's Events alone."""
    cluster = virtual.Cluster(virtual.wishes(workers=1))
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    cluster.bound_at("tr-0-1", cluster.now)
    cluster.settle()
    assert (running_condition(cluster).message, cluster.wake) == ("0 of 1 workers run", 180.0)
    cluster.pass_time(180)
    plan = cluster.step()
    assert not [one for one in plan.actions if isinstance(one, actions.CreatePod)]
    assert running_condition(cluster).message == (
        "0 of 1 workers run; tr-0-1 has been starting on node n1 since 2026-01-01T00:00:00Z: "
        "`kubectl describe pod tr-0-1` says what its kubelet waits for"
    )


# Standstill.


def watched() -> virtual.Cluster:
    cluster = virtual.Cluster(virtual.wishes(progress_timeout=600.0, max_failures=1)).running()
    pod = cluster.pod(0)
    cluster.pods[pod.name] = dataclasses.replace(pod, ip="10.0.0.1")
    return cluster


def says(cluster: virtual.Cluster, step: int | None, still: float, problem: str = "") -> None:
    cluster.progress = snap.Progress(cluster.status.attempt_id, step, still, problem)
    cluster.settle()


def test_a_gang_that_stays_at_one_step_for_too_long_is_restarted_and_it_counts() -> None:
    cluster = watched()
    says(cluster, 41, 599.0)
    assert cluster.status.attempt == 1
    says(cluster, 41, 660.0)
    last = cluster.status.attempts[-1]
    assert (last.cause, last.reason, last.index) == (status.Cause.FAILED, "Stalled", 0)
    assert last.detail == "tr-0-1 has been at step 41 for 11m, and spec.progressTimeout is 10m"
    assert (cluster.status.attempt, cluster.status.failures) == (2, 1)
    cluster.recovered()
    assert cluster.status.phase is status.Phase.RUNNING
    assert cluster.status.attempt == 2, "what the attempt before said is no word of this one"


def test_the_last_allowed_standstill_ends_the_job() -> None:
    cluster = watched()
    for _ in range(2):
        says(cluster, None, 600.0)
        cluster.recovered()
        pod = cluster.snapshot().current.get(0)
        if pod is not None:
            cluster.pods[pod.name] = dataclasses.replace(pod, ip="10.0.0.1")
    failed = conditions.find(cluster.status.conditions, conditions.FAILED)
    assert failed is not None
    assert failed.message == (
        "2 failures, 1 allowed; the last one: "
        "tr-0-2 has been before its first step for 10m, and spec.progressTimeout is 10m"
    )


def test_what_cannot_be_read_is_said_and_restarts_nothing() -> None:
    cluster = watched()
    says(cluster, None, 0.0, "10.0.0.1: Cannot connect")
    assert (cluster.status.attempt, cluster.status.failures) == (1, 0)
    assert running_condition(cluster).message == (
        "all workers run; progress cannot be read, so it is not watched: 10.0.0.1: Cannot connect"
    )


def test_a_job_that_does_not_ask_for_it_is_not_watched() -> None:
    cluster = watched()
    cluster.edit(virtual.wishes())
    says(cluster, 41, 9000.0)
    says(cluster, None, 0.0, "10.0.0.1: Cannot connect")
    assert (cluster.status.attempt, cluster.status.failures) == (1, 0)
    assert running_condition(cluster).message == "all workers run"
