"""Stories of gangs: what happens → what the operator does and says."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import clouds, conditions, spec, status
from spottrain.plan import actions, decide, pods
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

FINISHED = snap.Words("finished", 100)


def test_a_new_job_gets_a_suspended_job_then_its_attempt_then_all_its_pods() -> None:
    cluster = virtual.Cluster()
    assert cluster.step().actions == (actions.EnsureService(), actions.CreateJob())
    assert cluster.step().actions[0] == actions.SuspendJob(suspend=False)
    assert cluster.status.attempt == 1
    assert cluster.pods == {}, "the intent is written before anything is made"
    cluster.settle()
    assert cluster.names_of(1) == ["tr-0-1", "tr-1-1", "tr-2-1"]
    assert cluster.status.created_attempt == 1


def test_the_first_attempt_may_restore_at_once() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    assert {pod.go for pod in cluster.pods.values()} == {cluster.status.attempt_id}


def test_an_eviction_restarts_the_gang_and_spends_no_budget() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2", "tr-2-2"]
    assert (cluster.status.reclaims, cluster.status.failures) == (1, 0)
    assert cluster.status.phase is status.Phase.RUNNING
    assert cluster.status.last_reclaim is not None
    assert cluster.status.last_reclaim.cause == "Evicted"


def test_all_ranks_are_asked_to_stop_in_the_pass_after_the_intent() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    assert cluster.step().actions == (actions.ReportJob(2, 2, 1, 0, 0),)
    deleted = [one.name for one in cluster.step().actions if isinstance(one, actions.DeletePod)]
    assert deleted == ["tr-0-1", "tr-2-1"]
    assert all(pod.grace == 28.0 for pod in cluster.pods.values()), "they save together with the whole grace"


def test_only_the_worker_of_a_cordoned_node_is_replaced_before_its_predecessor_ends() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pods["tr-1-1"].node
    cluster.change_node(node, unschedulable=True)
    cluster.evict("tr-1-1")
    cluster.settle()
    assert cluster.names_of(2) == ["tr-1-2"]
    cluster.end("tr-0-1", 75)
    cluster.pass_time(pods.TOGETHER)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2"]


def test_go_is_said_only_when_every_predecessor_has_ended() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.end("tr-0-1", 75)
    cluster.end("tr-1-1", 75)
    cluster.settle()
    assert {pod.go for pod in cluster.snapshot().current.values()} == {""}
    cluster.end("tr-2-1", 75)
    cluster.settle()
    assert {pod.go for pod in cluster.snapshot().current.values()} == {cluster.status.attempt_id}
    assert cluster.status.go_attempt == 2


def test_a_notice_stops_the_gang_within_the_deadline_and_avoids_the_node() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pods["tr-2-1"].node
    cluster.change_node(node, notice="spot", deadline=cluster.now + dt.timedelta(seconds=20))
    cluster.settle()
    assert cluster.pods["tr-2-1"].grace == 18.0
    assert cluster.pods["tr-0-1"].grace == 28.0
    assert cluster.names_of(2) == ["tr-2-2"]
    assert cluster.overlays["tr-2-2"].avoid == (node,)


def test_a_sidecars_least_two_seconds_lie_within_the_window_too() -> None:
    """A program that uses all of the grace leaves it those, and its kubelet gives them after the grace."""
    checkpoint = spec.Checkpoint("s3://ck/tr", directory="/checkpoints")
    cluster = virtual.Cluster(virtual.wishes(checkpoint=checkpoint)).running()
    node = cluster.pods["tr-2-1"].node
    assert {overlay.grace for overlay in cluster.overlays.values()} == {26}
    cluster.change_node(node, notice="spot", deadline=cluster.now + dt.timedelta(seconds=20))
    cluster.settle()
    assert cluster.pods["tr-2-1"].grace == 16.0


def test_a_worker_that_is_stopping_already_is_not_deleted_again_when_its_deadline_comes_nearer() -> None:
    """No kubelet would act on it, and the pod would look given up on while it saves."""
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    before = cluster.pods["tr-0-1"]
    cluster.pass_time(4)
    deadline = cluster.now + dt.timedelta(seconds=15)
    cluster.change_node(before.node, notice="spot", deadline=deadline)
    cluster.done.clear()
    cluster.settle()
    assert not [one for one in cluster.done if isinstance(one, actions.DeletePod)]
    assert cluster.pods["tr-0-1"] == before


def test_a_silent_node_is_lost_after_the_patience_and_its_pod_force_deleted() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pods["tr-2-1"].node
    cluster.silence(node)
    cluster.settle()
    assert cluster.status.attempt == 1
    assert cluster.wake == 5.0
    cluster.pass_time(5)
    cluster.settle()
    assert cluster.status.reclaims == 1
    assert "tr-2-1" not in cluster.pods
    assert cluster.pods["tr-0-1"].grace == 10.0, "the collective is broken: survivors get little"
    assert any(one.reason == conditions.NODE_LOST and node in one.message for one in cluster.events)


def test_no_worker_is_put_on_a_node_whose_lease_is_silent_though_it_is_called_ready() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pods["tr-2-1"].node
    cluster.change_node(node, silent=True)
    cluster.recovered()
    assert cluster.status.attempt == 2
    assert {overlay.avoid for overlay in cluster.overlays.values() if overlay.attempt == 2} == {(node,)}


def test_where_a_member_failed_no_worker_is_put_where_no_member_has_been_seen_to_end() -> None:
    cluster = virtual.Cluster().running()
    dead = cluster.pods["tr-2-1"].node
    cluster.end("tr-0-1", 1)
    cluster.end("tr-1-1", 1)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2"]
    assert cluster.overlays["tr-1-2"].avoid == (dead,)


def test_a_node_on_which_one_of_two_members_has_ended_is_alive_and_not_avoided() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=4))
    cluster.settle()
    for index, node in enumerate(("od", "n1", "n1", "n2")):
        cluster.bind(f"tr-{index}-1", node)
        cluster.run(f"tr-{index}-1")
    cluster.settle()
    cluster.end("tr-1-1", 1)
    cluster.settle()
    assert cluster.overlays["tr-1-2"].avoid == ("n2", "od")


def test_a_worker_that_was_never_told_to_restore_has_nothing_to_save_and_ends_at_once() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.end("tr-0-1", 75)
    cluster.end("tr-1-1", 75)
    cluster.pass_time(pods.TOGETHER)
    cluster.settle()
    cluster.run_all()
    assert (cluster.pods["tr-0-2"].go, cluster.pods["tr-2-1"].go) == ("", "id1"), "the third one still saves"
    cluster.evict("tr-1-2")
    cluster.settle()
    assert cluster.status.attempt == 3
    assert (cluster.pods["tr-0-2"].grace, cluster.pods["tr-2-1"].grace) == (2.0, 28.0)


def test_a_node_object_that_vanishes_counts_once() -> None:
    cluster = virtual.Cluster().running()
    del cluster.nodes[cluster.pods["tr-2-1"].node]
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.attempt) == (1, 2)


def test_a_pod_that_vanished_after_it_was_seen_is_a_reclaim() -> None:
    cluster = virtual.Cluster().running()
    cluster.remove("tr-0-1")
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.attempt) == (1, 2)


def test_an_unbound_pod_that_vanishes_is_made_again_and_not_counted() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.delete("tr-0-1")
    cluster.settle()
    assert cluster.status.reclaims == cluster.status.failures == 0
    assert {pod.index for pod in cluster.pods.values()} == {0, 1, 2}


def test_somebody_who_always_deletes_waiting_pods_makes_no_hot_loop() -> None:
    cluster = virtual.Cluster()
    gaps: list[float] = []
    for attempt in range(1, 9):
        begun = cluster.now
        cluster.settle()
        while not cluster.names_of(attempt):
            assert cluster.wake, "it waits with no wake-up"
            cluster.pass_time(cluster.wake)
            cluster.settle()
        gaps.append((cluster.now - begun).total_seconds())
        cluster.delete(f"tr-0-{attempt}")
    limits = [0, 0, 30, 60, 120, 240, 480, 600]
    assert all(limit / 2 <= gap <= limit + 1 for gap, limit in zip(gaps, limits, strict=True)), gaps
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)


def test_somebody_who_always_deletes_a_worker_that_found_no_node_gets_one_in_ten_seconds() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.bind("tr-1-1", "n1")
    kept = cluster.pods["tr-1-1"].uid
    for _ in range(4):
        cluster.pass_time(2)
        cluster.find_no_node("tr-0-1")
        cluster.delete("tr-0-1")
        cluster.settle()
        assert ("tr-0-1" in cluster.pods, cluster.wake) == (False, 8.0)
        cluster.pass_time(8)
        cluster.settle()
    assert (cluster.pods["tr-0-1"].created, cluster.pods["tr-1-1"].uid) == (cluster.now, kept)
    assert (cluster.status.attempt, cluster.status.reclaims, cluster.status.failures) == (1, 0, 0)


def test_while_it_pauses_the_condition_says_that_somebody_deletes_its_workers() -> None:
    cluster = virtual.Cluster()
    for attempt in (1, 2):
        cluster.settle()
        cluster.delete(f"tr-0-{attempt}")
    cluster.settle()
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.reason == conditions.BACKING_OFF
    assert running.message.startswith("somebody deletes its workers before they have a node; next try at ")


def test_a_gang_that_ran_meanwhile_is_made_again_at_once_when_a_waiting_pod_is_deleted() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.delete("tr-0-1")
    cluster.running()
    cluster.evict("tr-1-2")
    cluster.settle()
    for name in cluster.names_of(2):
        cluster.end(name, 75)
    cluster.settle()
    cluster.delete("tr-0-3")
    cluster.settle()
    assert cluster.status.next_retry is None
    assert cluster.names_of(4) == ["tr-0-4", "tr-1-4", "tr-2-4"]


def test_a_failed_member_restarts_the_gang_at_once_as_undetermined() -> None:
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 1)
    cluster.settle()
    assert cluster.status.attempts[-1].cause is status.Cause.UNDETERMINED
    assert (cluster.status.attempt, cluster.status.failures, cluster.status.reclaims) == (2, 0, 0)
    assert cluster.status.next_retry is None


def test_a3_peers_that_fail_before_their_nodes_death_is_known_are_a_reclaim() -> None:
    cluster = virtual.Cluster().running()
    dead = cluster.pods["tr-2-1"].node
    cluster.end("tr-0-1", 1)
    cluster.end("tr-1-1", 1)
    cluster.settle()
    cluster.pass_time(40)
    cluster.silence(dead)
    cluster.settle()
    assert (cluster.status.reclaims, cluster.status.failures) == (1, 0)
    assert cluster.status.attempts[-1].cause is status.Cause.RECLAIMED
    cluster.pass_time(100)
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.failures, cluster.status.attempt) == (1, 0, 2)


def test_a3_the_same_exits_with_all_nodes_healthy_are_one_failure() -> None:
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 1)
    cluster.settle()
    assert cluster.wake == pytest.approx(75, abs=75)
    cluster.pass_time(74)
    cluster.settle()
    assert cluster.status.failures == 0
    cluster.pass_time(2)
    cluster.settle()
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 1)


def test_a_failure_is_charged_early_when_every_member_was_seen_to_end_by_itself() -> None:
    cluster = virtual.Cluster().running()
    for name in ("tr-0-1", "tr-1-1", "tr-2-1"):
        cluster.end(name, 1)
    cluster.settle()
    assert (cluster.status.failures, cluster.status.attempt) == (1, 2)


def test_a_machine_that_dies_and_is_back_before_it_is_missed_took_its_peers_down_and_is_a_reclaim() -> None:
    """Its worker was deleted meanwhile, by us: that it ended is no proof that its machine was well."""
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 75)
    cluster.settle()
    cluster.end("tr-1-1", 75)
    cluster.end("tr-2-1", 255, "Unknown")
    cluster.settle()
    assert (cluster.status.reclaims, cluster.status.failures, cluster.status.attempt) == (1, 0, 2)
    assert cluster.status.attempts[-1].cause is status.Cause.RECLAIMED
    assert cluster.status.attempts[-1].reason == "NodeRestarted"


@pytest.mark.parametrize(("ran", "counts"), [(False, (0, 1)), (True, (1, 0))])
def test_a_peer_that_was_stopped_before_it_ran_is_no_evidence_of_a_restarted_machine(
    ran: bool, counts: tuple[int, int]
) -> None:
    """Its kubelet says the same of a container that it had not started yet, and of one that it lost."""
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.run_all()
    cluster.end("tr-0-1", 1)
    cluster.settle()
    for name in ("tr-1-1", "tr-2-1"):
        cluster.forget(name, ran=ran)
    cluster.settle()
    assert (cluster.status.reclaims, cluster.status.failures) == counts


def test_a_second_failure_in_a_row_backs_off_and_the_budget_ends_the_job() -> None:
    cluster = virtual.Cluster(virtual.wishes(max_failures=1)).running()
    for attempt in (1, 2):
        cluster.pass_time(60 * attempt)
        cluster.settle()
        cluster.run_all()
        cluster.settle()
        for index in range(3):
            cluster.end(f"tr-{index}-{attempt}", 1)
        cluster.settle()
    assert cluster.status.phase is status.Phase.FAILED
    assert cluster.status.failures == 2
    cluster.recovered()
    assert cluster.job is not None
    assert cluster.job.finished
    failed = conditions.find(cluster.status.conditions, conditions.FAILED)
    assert failed is not None
    assert failed.message == "2 failures, 1 allowed; the last one: tr-0-2 exited 1 (Error)"


def test_the_end_of_a_failed_log_goes_into_the_condition_when_it_has_been_read() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1, max_failures=0)).running()
    cluster.end("tr-0-1", 1)
    cluster.settle()
    cluster.pods["tr-0-1"] = dataclasses.replace(cluster.pods["tr-0-1"], tail="ImportError: no torch")
    cluster.settle()
    failed = conditions.find(cluster.status.conditions, conditions.FAILED)
    assert failed is not None
    assert failed.message == (
        "1 failure, 0 allowed; the last one: tr-0-1 exited 1 (Error)\n"
        "end of the log of tr-0-1:\nImportError: no torch"
    )


def test_a_gang_of_one_is_not_called_all_workers() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    cluster.end("tr-0-1", 0)
    cluster.settle()
    complete = conditions.find(cluster.status.conditions, conditions.COMPLETE)
    assert complete is not None
    assert complete.message == "the worker of attempt 1 finished"


def test_a_gang_that_cannot_be_placed_whole_gives_its_nodes_back() -> None:
    cluster = virtual.Cluster(virtual.wishes(placement_timeout=60.0))
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    cluster.run("tr-0-1")
    cluster.settle()
    assert cluster.wake == 60.0
    cluster.pass_time(60)
    cluster.settle()
    last = cluster.status.attempts[-1]
    assert (last.cause, last.detail) == (status.Cause.UNPLACED, "2 of 3 workers found no node")
    assert set(cluster.pods) == {"tr-0-1"}
    assert cluster.pods["tr-0-1"].deleting is not None
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)
    cluster.end("tr-0-1", 143)
    cluster.settle()
    assert cluster.wake is not None
    assert 15 <= cluster.wake <= 30
    cluster.pass_time(30)
    cluster.running()
    assert cluster.status.attempt == 2


def test_a_gang_that_holds_nothing_waits_as_long_as_it_takes() -> None:
    cluster = virtual.Cluster(virtual.wishes(placement_timeout=60.0))
    cluster.settle()
    cluster.pass_time(6000)
    cluster.settle()
    assert cluster.status.attempt == 1


def test_two_gangs_that_gave_way_together_come_back_at_different_times() -> None:
    waits = set()
    for gang in range(5):
        cluster = virtual.Cluster(virtual.wishes(placement_timeout=60.0))
        cluster.id_prefix = f"gang{gang}-"
        cluster.settle()
        cluster.bind("tr-0-1", "n1")
        cluster.pass_time(61)
        cluster.settle()
        assert cluster.status.next_retry is not None
        waits.add((cluster.status.next_retry - cluster.now).total_seconds())
    assert len(waits) > 1


def test_an_import_error_never_spins() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1, max_failures=20))
    gaps = []
    begun = cluster.now
    for attempt in range(1, 8):
        while cluster.status.attempt < attempt or not cluster.names_of(attempt):
            cluster.settle()
            if not cluster.names_of(attempt):
                assert cluster.wake, "it waits with no wake-up"
                cluster.pass_time(cluster.wake)
        gaps.append((cluster.now - begun).total_seconds())
        begun = cluster.now
        cluster.run_all()
        cluster.end(f"tr-0-{attempt}", 1)
    limits = [0, 0, 10, 20, 40, 80, 160]
    assert all(limit / 2 - 1 <= gap <= limit for gap, limit in zip(gaps, limits, strict=True)), gaps


def test_oom_is_a_failure_on_a_doomed_node_too() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    cluster.change_node(cluster.pods["tr-0-1"].node, notice="spot")
    cluster.end("tr-0-1", 137, "OOMKilled")
    cluster.settle()
    assert (cluster.status.failures, cluster.status.reclaims) == (1, 0)


def test_the_job_is_complete_when_every_member_of_one_attempt_finished() -> None:
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 0)
    cluster.settle()
    assert cluster.status.phase is not status.Phase.COMPLETE
    cluster.end("tr-1-1", 0)
    cluster.end("tr-2-1", 0)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    assert cluster.job is not None
    assert cluster.job.finished
    assert cluster.status.workers.succeeded == 3


def test_a_gang_runs_while_one_of_it_has_finished_and_its_pod_was_removed() -> None:
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 0)
    cluster.settle()
    cluster.delete("tr-0-1")
    cluster.settle()
    assert (cluster.status.workers.running, cluster.status.workers.succeeded) == (2, 1)
    assert cluster.status.phase is status.Phase.RUNNING


def test_a5_exit_0_under_sigterm_is_not_completion() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=2)).running()
    cluster.delete("tr-1-1")
    cluster.pass_time(1)
    cluster.end("tr-1-1", 0)
    cluster.settle()
    cluster.end("tr-0-1", 0)
    cluster.recovered()
    assert (cluster.status.phase, cluster.status.attempt) == (status.Phase.RUNNING, 2)


def test_exit_0_under_sigterm_counts_when_the_worker_said_it_was_finished() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    cluster.evict("tr-0-1")
    cluster.end("tr-0-1", 0, said=FINISHED)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    assert cluster.status.step == 100


def test_a_member_that_finished_runs_again_when_the_gang_restarts() -> None:
    cluster = virtual.Cluster().running()
    cluster.end("tr-0-1", 0)
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2", "tr-2-2"]


def test_suspend_saves_and_resume_starts_a_new_attempt() -> None:
    cluster = virtual.Cluster().running()
    cluster.spec = virtual.wishes(suspend=True)
    cluster.recovered()
    assert not [pod for pod in cluster.pods.values() if not pod.ended]
    phases = [cluster.status.phase]
    cluster.spec = virtual.wishes()
    cluster.recovered()
    assert [*phases, cluster.status.phase] == [status.Phase.SUSPENDED, status.Phase.RUNNING]
    assert cluster.status.attempts[-1].cause is status.Cause.RESUMED
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)


def test_an_edited_template_lets_all_end_and_makes_a_new_job() -> None:
    cluster = virtual.Cluster().running()
    assert cluster.job is not None
    before = cluster.job.uid
    cluster.spec = virtual.wishes(workers=4)
    cluster.generation = 2
    cluster.recovered()
    assert cluster.job is not None
    assert cluster.job.uid != before
    assert cluster.status.attempts[-1].cause is status.Cause.SPEC_CHANGED
    assert len(cluster.snapshot().current) == 4
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)


def test_the_floor_takes_the_lowest_indexes_and_is_reported() -> None:
    cluster = virtual.Cluster(virtual.wishes(spot=spec.Spot(floor=1))).running()
    asked = [str(cluster.overlays[f"tr-{index}-1"].ask) for index in range(3)]
    assert asked == ["on-demand", "spot", "spot"]
    met = conditions.find(cluster.status.conditions, conditions.FLOOR_MET)
    assert met is not None
    assert (met.status, met.message) == (True, "workers on on-demand nodes: wanted 1, found 1")


def test_an_unknown_node_never_fills_the_floor() -> None:
    cluster = virtual.Cluster(virtual.wishes(spot=spec.Spot(floor=1)))
    cluster.settle()
    cluster.change_node("od", capacity=clouds.Capacity.UNKNOWN)
    cluster.run_all()
    cluster.settle()
    met = conditions.find(cluster.status.conditions, conditions.FLOOR_MET)
    assert met is not None
    assert met.status is not True


def test_terminal_pods_of_the_last_two_attempts_stay_for_their_logs() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1, max_failures=9)).running()
    for attempt in range(1, 5):
        cluster.end(f"tr-0-{attempt}", 1)
        cluster.settle()
        cluster.pass_time(600)
        cluster.settle()
        cluster.run_all()
        cluster.settle()
    assert sorted(cluster.pods) == ["tr-0-3", "tr-0-4", "tr-0-5"]


def test_successors_of_a_gang_that_ends_at_once_are_made_together_with_go() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.end("tr-0-1", 75)
    cluster.settle()
    assert cluster.names_of(2) == []
    cluster.end("tr-2-1", 75)
    cluster.end("tr-1-1", 75)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2", "tr-2-2"]
    assert {pod.go for pod in cluster.pods.values() if pod.attempt == 2} == {cluster.status.attempt_id}


def test_successors_are_made_one_by_one_when_others_take_longer_to_end() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.end("tr-0-1", 75)
    cluster.settle()
    assert cluster.wake == pytest.approx(pods.TOGETHER)
    cluster.pass_time(pods.TOGETHER)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-0-2"]


def test_all_workers_of_a_drained_node_are_asked_for_at_once_while_another_still_saves() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pods["tr-1-1"].node
    cluster.bind("tr-2-1", node)
    cluster.change_node(node, unschedulable=True)
    for name in ("tr-1-1", "tr-2-1"):
        cluster.evict(name)
        cluster.end(name, 75)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-1-2", "tr-2-2"]


def test_a_stuck_pod_on_a_healthy_node_is_given_up_on() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    cluster.settle()
    cluster.end("tr-0-1", 75)
    cluster.end("tr-2-1", 75)
    cluster.settle()
    cluster.pass_time(pods.TOGETHER)
    cluster.settle()
    assert cluster.wake == pytest.approx(58 - pods.TOGETHER)
    cluster.pass_time(58 - pods.TOGETHER)
    cluster.settle()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2", "tr-2-2"]
    assert any(one.reason == conditions.FORCE_DELETED for one in cluster.events)


def test_the_twentieth_reclaim_is_recovered_as_the_first() -> None:
    cluster = virtual.Cluster().running()
    for attempt in range(1, 21):
        cluster.evict(f"tr-1-{attempt}")
        cluster.recovered()
        assert cluster.status.phase is status.Phase.RUNNING
        assert cluster.status.next_retry is None
    assert (cluster.status.reclaims, cluster.status.failures, cluster.status.attempt) == (20, 0, 21)
    assert len(cluster.status.attempts) == status.ATTEMPTS_KEPT


def test_a_finished_job_is_deleted_when_its_time_to_live_is_over() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1, ttl=60.0)).running()
    cluster.end("tr-0-1", 0)
    cluster.settle()
    assert not cluster.deleted
    assert cluster.wake == 60.0
    cluster.pass_time(60)
    cluster.step()
    assert cluster.deleted


def test_an_invalid_spec_is_a_condition_and_nothing_is_made() -> None:
    cluster = virtual.Cluster()
    cluster.spec = spec.InvalidSpecError("spec.workers: write a whole number of at least 1")
    assert cluster.step().actions == ()
    accepted = conditions.find(cluster.status.conditions, conditions.ACCEPTED)
    assert accepted is not None
    assert (accepted.status, accepted.reason) == (False, "InvalidSpec")


def test_a_foreign_job_of_the_name_is_left_alone() -> None:
    cluster = virtual.Cluster()
    cluster.job = snap.Job("x", "", False, "", ours=False)
    assert cluster.step().actions == ()
    accepted = conditions.find(cluster.status.conditions, conditions.ACCEPTED)
    assert accepted is not None
    assert accepted.reason == "NameConflict"


def test_a_server_that_drops_managed_by_is_said_to_be_unsupported_and_left() -> None:
    cluster = virtual.Cluster()
    cluster.job = snap.Job("j", "", True, cluster.snapshot().template_hash)
    assert cluster.step().actions == (actions.DeleteJob("j"),)
    cluster.settle()
    assert cluster.snapshot().job is None
    accepted = conditions.find(cluster.status.conditions, conditions.ACCEPTED)
    assert accepted is not None
    assert accepted.reason == "UnsupportedCluster"


def test_every_attempt_sees_to_its_service_which_somebody_may_have_deleted() -> None:
    cluster = virtual.Cluster().running()
    cluster.done.clear()
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert cluster.done.count(actions.EnsureService()) == 1


def test_a_job_that_somebody_else_has_closed_is_reported_on_no_more() -> None:
    cluster = virtual.Cluster().running()
    assert cluster.job is not None
    cluster.job = dataclasses.replace(cluster.job, finished=True)
    cluster.done.clear()
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert not [one for one in cluster.done if isinstance(one, actions.ReportJob)]
    assert cluster.status.phase is status.Phase.RUNNING


def test_two_gangs_that_hold_half_of_a_quota_each_give_it_back() -> None:
    cluster = virtual.Cluster(virtual.wishes(placement_timeout=60.0))
    cluster.settle()
    cluster.run_all()
    refusal = snap.Refusal(conditions.CREATION_REFUSED, "exceeded quota: gpus", 1, permanent=False)
    held = dataclasses.replace(
        cluster.snapshot(),
        pods=tuple(pod for pod in cluster.pods.values() if pod.index < 2),
        status=dataclasses.replace(cluster.status, created_attempt=0),
        refusal=refusal,
    )
    assert decide.decide(held).wake == 60.0
    later = dataclasses.replace(held, now=held.now + dt.timedelta(seconds=60))
    last = decide.decide(later).status.attempts[-1]
    assert (last.cause, last.index) == (status.Cause.UNPLACED, 2)
    assert last.detail == "1 of 3 workers are refused; exceeded quota: gpus"


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "Evicted"])
def test_a_worker_that_its_kubelet_refuses_is_no_failure_and_waits_for_a_better_place(reason: str) -> None:
    """A device plugin that restarts refuses pods for a while; nothing of the program has run."""
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.run_all()
    cluster.pods["tr-1-1"] = dataclasses.replace(
        cluster.pods["tr-1-1"], phase="Failed", running=False, reason=reason
    )
    cluster.settle()
    last = cluster.status.attempts[-1]
    assert (last.cause, last.reason) == (status.Cause.UNPLACED, "NodeRefused")
    assert last.detail == f"node {cluster.pods['tr-1-1'].node} refused tr-1-1: {reason}"
    assert cluster.status.next_retry is not None, "no hot loop"
    cluster.pass_time(700)
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)
    assert cluster.status.phase is status.Phase.RUNNING


def test_when_somebody_deletes_the_job_its_workers_may_save_before_there_is_another() -> None:
    cluster = virtual.Cluster().running()
    saving = dataclasses.replace(
        cluster.pods["tr-0-1"], deleting=cluster.now + dt.timedelta(seconds=28), grace=28.0
    )
    held = dataclasses.replace(cluster.snapshot(), job=None, pods=(), leftover=(saving,))
    plan = decide.decide(held)
    assert (plan.actions, plan.wake) == ((), 58.0)
    running = conditions.find(plan.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.message == "workers of a deleted Job of this name are still ending"
    stuck = dataclasses.replace(held, now=held.now + dt.timedelta(seconds=58))
    assert decide.decide(stuck).actions == (actions.EnsureService(), actions.CreateJob())


def test_a_worker_that_came_and_went_between_two_passes_is_lost_and_not_still_to_come() -> None:
    """Passes are paced, so a pod may be taken before the one that would have seen it."""
    cluster = virtual.Cluster(virtual.wishes(workers=1))
    while not cluster.pods:
        cluster.step()
    assert cluster.status.created_attempt == 0
    cluster.bind("tr-0-1", "n1")
    cluster.remove("tr-0-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert cluster.names_of(2) == ["tr-0-2"]


def test_a_worker_that_went_while_others_were_still_to_be_made_and_nobody_led_is_lost() -> None:
    """Made again under the same attempt ID it would be a second writer, beside peers that it never met."""
    cluster = virtual.Cluster()
    cluster.quota = 2
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.names_of(1), cluster.status.created.text) == (["tr-0-1", "tr-1-1"], "0,1")
    cluster.remove("tr-1-1")
    cluster.departed.clear()  # the operator that leads now has not seen it
    cluster.quota = None
    cluster.settle()
    last = cluster.status.attempts[-1]
    assert (cluster.status.attempt, last.reason, last.index) == (2, "PodVanished", 1)
    assert last.detail == "tr-1-1 is gone"
    cluster.recovered()
    assert (cluster.names_of(2), cluster.status.failures) == (["tr-0-2", "tr-1-2", "tr-2-2"], 0)
    assert (cluster.status.created_attempt, cluster.status.created.text) == (2, "")


def test_a_worker_that_its_kubelet_left_unstarted_after_a_restart_is_reclaimed_a_minute_later() -> None:
    cluster = virtual.Cluster()
    cluster.settle()
    cluster.run_all()
    cluster.pods["tr-1-1"] = dataclasses.replace(cluster.pods["tr-1-1"], phase="Pending", running=False)
    cluster.strand("tr-1-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.wake) == (1, 60.0)
    cluster.pass_time(60)
    cluster.settle()
    last = cluster.status.attempts[-1]
    node = cluster.pods["tr-1-1"].node
    assert (cluster.status.attempt, cluster.status.reclaims, last.reason) == (2, 1, "NodeRestarted")
    assert last.detail == f"tr-1-1: node {node} was restarted before it could start"


def test_a_reclaim_and_what_follows_are_one_event() -> None:
    cluster = virtual.Cluster().running()
    cluster.events.clear()
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert [(one.reason, one.message) for one in cluster.events] == [
        ("Reclaimed", "worker 1: tr-1-1: EvictionByEvictionAPI; attempt 2 starts")
    ]


def test_words_of_a_newer_version_are_kept_and_the_gang_goes_on() -> None:
    """It was taken back; the history is not ours alone."""
    cluster = virtual.Cluster().running()
    first = dataclasses.replace(cluster.status.attempts[0], cause="Rebalanced", reason="Pool")
    cluster.status = dataclasses.replace(cluster.status, phase="Rebalancing", attempts=(first,))
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert [one.cause for one in cluster.status.attempts] == ["Rebalanced", status.Cause.RECLAIMED]
    assert (cluster.status.phase, cluster.status.attempt) == (status.Phase.RUNNING, 2)


def test_an_end_that_only_a_newer_version_knows_is_an_end() -> None:
    cluster = virtual.Cluster().running()
    cluster.status = dataclasses.replace(cluster.status, phase="Cancelled", completion=cluster.now)
    cluster.recovered()
    assert cluster.status.phase == "Cancelled"
    assert not [pod for pod in cluster.pods.values() if not pod.ended]
    assert cluster.job is not None
    assert cluster.job.finished
