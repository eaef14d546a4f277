"""Stories of independent indexes: what happens → what the operator does and says."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import clouds, conditions, indexes, spec, status
from spottrain.plan import actions, independent, shard_pods
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

FINISHED = snap.Words("finished", 100)


def cluster(**changes: object) -> virtual.Cluster:
    return virtual.Cluster(virtual.shards(**changes))


def shards(one: virtual.Cluster) -> tuple[str, str, str, str]:
    """Completed, failed, restarts, failures."""
    kept = one.status.shards
    assert kept is not None
    return kept.completed.text, kept.failed.text, kept.restarts.text, kept.failures.text


def phase(one: virtual.Cluster) -> str:
    return str(one.status.phase)


def finish(one: virtual.Cluster, *names: str) -> None:
    for name in names:
        one.end(name, 0)
    one.settle()


def test_each_index_gets_a_pod_and_no_service_is_needed() -> None:
    one = cluster()
    assert one.step().actions == (actions.CreateJob(),)
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-1", "tr-2-1"]
    assert len({pod.attempt_id for pod in one.pods.values()}) == 3, "each has an attempt ID of its own"
    assert {pod.go for pod in one.pods.values()} == {pod.attempt_id for pod in one.pods.values()}


def test_no_more_pods_than_parallelism_are_there_at_once_and_the_lowest_indexes_come_first() -> None:
    one = cluster(workers=5, parallelism=2).running()
    assert one.live() == ["tr-0-1", "tr-1-1"]
    finish(one, "tr-1-1")
    assert one.live() == ["tr-0-1", "tr-2-1"]
    assert (one.status.workers.desired, one.status.workers.succeeded) == (2, 1)


def test_an_index_that_its_kubelet_left_unstarted_after_a_restart_begins_again_a_minute_later() -> None:
    one = cluster()
    one.settle()
    one.bind("tr-1-1", "n1")
    one.strand("tr-1-1")
    one.settle()
    assert (one.status.reclaims, one.wake) == (0, 60.0)
    one.pass_time(60)
    one.settle()
    assert (one.status.reclaims, shards(one)) == (1, ("", "", "0,1", ""))


def test_an_index_that_is_made_again_keeps_its_turn_while_its_predecessor_ends() -> None:
    one = cluster(workers=4, parallelism=2).running()
    one.evict("tr-0-1")
    one.settle()
    assert one.live() == ["tr-1-1"]
    one.end("tr-0-1", 143)
    one.settle()
    assert one.live() == ["tr-0-2", "tr-1-1"]


def test_a_pass_makes_a_bounded_number_of_pods_and_comes_back_at_once() -> None:
    one = cluster(workers=200, parallelism=120)
    one.step(), one.step()
    plan = one.step()
    assert len([act for act in plan.actions if isinstance(act, actions.CreatePod)]) == shard_pods.MOST_MADE
    assert plan.wake == 0.0
    one.settle()
    assert len(one.live()) == 120


def test_a_job_whose_indexes_have_all_finished_is_complete() -> None:
    one = cluster().running()
    finish(one, "tr-0-1", "tr-1-1", "tr-2-1")
    assert phase(one) == "Complete"
    assert shards(one) == ("0-2", "", "", "")
    complete = conditions.find(one.status.conditions, conditions.COMPLETE)
    assert complete is not None
    assert complete.message == "all 3 indexes finished"
    assert one.job is not None
    assert one.job.finished
    reports = [act for act in one.done if isinstance(act, actions.ReportJob)]
    assert (reports[-1].succeeded, reports[-1].indexes) == (3, ("0-2", ""))


def test_an_eviction_moves_one_index_alone_and_spends_no_budget() -> None:
    one = cluster(max_failures_per_index=0).running()
    before = {name: pod.uid for name, pod in one.pods.items()}
    one.evict("tr-1-1")
    one.settle()
    assert one.live() == ["tr-0-1", "tr-2-1"], "its place is not free yet"
    one.end("tr-1-1", 143)
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-2", "tr-2-1"]
    assert {name: one.pods[name].uid for name in ("tr-0-1", "tr-2-1")} == {
        name: before[name] for name in ("tr-0-1", "tr-2-1")
    }
    assert (one.status.reclaims, one.status.failures) == (1, 0)
    assert shards(one) == ("", "", "0,1", "")
    assert one.status.last_reclaim is not None
    assert (one.status.last_reclaim.index, one.status.last_reclaim.attempt) == (1, 1)


def test_under_notice_a_pod_gets_what_time_is_left_and_its_successor_is_made_elsewhere_at_once() -> None:
    one = cluster().running()
    node = one.pods["tr-1-1"].node
    one.change_node(node, notice="spot", deadline=one.now + dt.timedelta(seconds=20))
    one.settle()
    assert one.pods["tr-1-1"].grace == 18.0
    assert one.live() == ["tr-0-1", "tr-1-2", "tr-2-1"]
    assert one.overlays["tr-1-2"].avoid == (node,)
    assert one.pods["tr-1-2"].go == "", "its predecessor may still be saving"
    one.end("tr-1-1", 75)
    one.settle()
    assert one.pods["tr-1-2"].go == one.pods["tr-1-2"].attempt_id
    assert one.status.reclaims == 1


def test_work_that_a_replaced_pod_finishes_in_its_grace_is_done_and_its_successor_ends() -> None:
    one = cluster().running()
    one.change_node(one.pods["tr-1-1"].node, notice="spot")
    one.settle()
    one.end("tr-1-1", 0, said=FINISHED)
    one.settle()
    assert shards(one)[0] == "1"
    assert one.live() == ["tr-0-1", "tr-2-1"]


def test_exit_0_of_a_pod_that_was_told_to_stop_finishes_nothing() -> None:
    one = cluster().running()
    one.evict("tr-1-1")
    one.end("tr-1-1", 0)
    one.settle()
    assert shards(one) == ("", "", "0,1", "")


@pytest.mark.parametrize("code", [1, 137, 143])
def test_an_exit_with_no_evidence_of_a_reclaim_is_a_failure(code: int) -> None:
    one = cluster().running()
    one.end("tr-1-1", code)
    one.settle()
    assert (one.status.reclaims, one.status.failures) == (0, 1)
    assert shards(one) == ("", "", "0,1", "0,1")


def test_an_index_that_fails_is_tried_again_after_a_growing_pause_and_the_others_go_on() -> None:
    one = cluster(max_failures_per_index=5).running()
    gaps = []
    for attempt in range(1, 5):
        one.end(f"tr-1-{attempt}", 1)
        one.settle()
        assert f"tr-1-{attempt + 1}" not in one.pods
        assert one.wake is not None
        gaps.append(one.wake)
        one.pass_time(one.wake)
        one.settle()
        assert f"tr-1-{attempt + 1}" in one.pods
        one.run_all()
        one.settle()
        assert one.status.shards is not None
        assert one.status.shards.retries == (), "the moment is forgotten"
    for number, gap in enumerate(gaps):
        assert 5 * 2**number <= gap <= 10 * 2**number + 5
    assert {"tr-0-1", "tr-2-1"} <= set(one.live())


def test_indexes_that_fail_together_do_not_come_back_together() -> None:
    one = cluster(workers=40).running()
    for index in range(40):
        one.end(f"tr-{index}-1", 1)
    one.settle()
    assert one.status.shards is not None
    assert len(one.status.shards.retries) >= 2
    assert sum(len(retry.indexes) for retry in one.status.shards.retries) == 40


def test_an_index_over_its_budget_has_failed_and_the_job_goes_on_and_names_it_in_the_end() -> None:
    one = cluster(max_failures_per_index=1).running()
    one.end("tr-1-1", 1)
    one.settle()
    one.pass_time(15)
    one.settle()
    one.run_all()
    one.end("tr-1-2", 7)
    one.settle()
    assert shards(one) == ("", "1", "0,1", "0,2")
    assert phase(one) == "Running"
    finish(one, "tr-0-1", "tr-2-1")
    assert phase(one) == "Failed"
    failed = conditions.find(one.status.conditions, conditions.FAILED)
    assert failed is not None
    assert failed.reason == "FailedIndexes"
    assert failed.message == "1 of 3 indexes failed: 1; the last one: tr-1-2 exited 7 (Error)"
    assert "tr-1-2" in one.pods, "its log can be read"


def test_more_failed_indexes_than_allowed_end_the_job() -> None:
    one = cluster(max_failures_per_index=0, max_failed_indexes=1).running()
    one.end("tr-1-1", 1)
    one.settle()
    assert phase(one) == "Running"
    one.end("tr-2-1", 1)
    one.settle()
    assert phase(one) == "Failed"
    failed = conditions.find(one.status.conditions, conditions.FAILED)
    assert failed is not None
    assert failed.reason == "MaxFailedIndexesExceeded"
    assert failed.message == "2 indexes failed, 1 allowed: 1,2; the last one: tr-2-1 exited 1 (Error)"
    assert one.live() == []


def test_more_failures_in_all_than_allowed_end_the_job() -> None:
    one = cluster(max_failures=1).running()
    one.end("tr-1-1", 1)
    one.end("tr-2-1", 1)
    one.settle()
    failed = conditions.find(one.status.conditions, conditions.FAILED)
    assert failed is not None
    assert (failed.reason, phase(one)) == ("TooManyFailures", "Failed")
    assert failed.message == "2 failures, 1 allowed; the last one: tr-2-1 exited 1 (Error)"


def test_a_smaller_budget_fails_the_indexes_that_are_over_it() -> None:
    one = cluster(max_failures_per_index=3).running()
    one.end("tr-1-1", 1)
    one.settle()
    one.edit(virtual.shards(max_failures_per_index=0))
    one.settle()
    assert shards(one)[1] == "1"


def test_a_finished_index_never_runs_again_whatever_is_deleted() -> None:
    one = cluster().running()
    finish(one, "tr-1-1")
    for name in [*one.pods]:
        one.remove(name)
    one.delete_job()
    one.recovered()
    assert shards(one)[0] == "1"
    assert one.live() == ["tr-0-2", "tr-2-2"]


def test_a_pod_that_finished_and_was_deleted_before_we_looked_is_finished() -> None:
    one = cluster().running()
    one.end("tr-1-1", 0)
    one.remove("tr-1-1")
    one.settle()
    assert shards(one)[0] == "1"


def test_a_pod_that_vanished_is_a_reclaim_and_never_gets_its_attempt_back() -> None:
    one = cluster().running()
    one.remove("tr-1-1")
    one.departed.clear()  # the operator was down
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-2", "tr-2-1"]
    assert one.status.reclaims == 1


def test_a_pod_deleted_before_it_had_a_node_counts_nowhere_and_is_not_made_in_a_hot_loop() -> None:
    one = cluster()
    one.settle()
    one.delete("tr-1-1")
    one.settle()
    assert (one.status.reclaims, one.status.failures) == (0, 0)
    assert one.live() == ["tr-0-1", "tr-2-1"]
    assert one.wake is not None
    one.pass_time(one.wake)
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-2", "tr-2-1"]


def test_a_pod_that_its_kubelet_refuses_tries_another_place_after_a_pause() -> None:
    one = cluster().running()
    pod = one.pods["tr-1-1"]
    one.pods["tr-1-1"] = dataclasses.replace(pod, phase="Failed", running=False, reason="OutOfcpu")
    one.settle()
    assert (one.status.reclaims, one.status.failures) == (0, 0)
    assert one.wake is not None
    one.pass_time(one.wake)
    one.settle()
    assert "tr-1-2" in one.pods


def test_a_node_that_evicts_whatever_is_put_on_it_gets_no_pod_after_the_other() -> None:
    """Twenty reclaims are met at once, later ones after a pause unless the pod had run for a while."""
    one = cluster(workers=1).running()
    for attempt in range(1, 21):
        one.evict(f"tr-0-{attempt}")
        one.end(f"tr-0-{attempt}", 143)
        one.settle()
        one.run_all()
    one.evict("tr-0-21")
    one.end("tr-0-21", 143)
    one.settle()
    assert one.live() == []
    assert one.wake is not None
    assert 15 <= one.wake <= 31
    one.pass_time(one.wake)
    one.settle()
    one.run_all()
    one.pass_time(120)
    one.evict("tr-0-22")
    one.end("tr-0-22", 143)
    one.settle()
    assert one.live() == ["tr-0-23"]
    assert (one.status.reclaims, one.status.failures) == (22, 0)


def test_fewer_indexes_than_have_finished_are_reported_as_the_smaller_job_may() -> None:
    """The API server refuses indexes past a Job's size; they are still known when it grows again."""
    one = cluster(workers=5).running()
    finish(one, "tr-1-1", "tr-4-1")
    one.edit(virtual.shards(workers=2))
    one.recovered()
    finish(one, "tr-0-2")
    reports = [act for act in one.done if isinstance(act, actions.ReportJob)]
    assert (reports[-1].outcome, reports[-1].succeeded, reports[-1].indexes) == ("Complete", 2, ("0,1", ""))
    assert shards(one)[0] == "0,1,4"


def test_a_dead_node_costs_each_of_its_indexes_one_reclaim() -> None:
    one = cluster(workers=10).running()
    hit = [pod.index for pod in one.pods.values() if pod.node == "n1"]
    one.change_node("n1", silent=True)
    one.settle()
    assert one.status.reclaims == len(hit) == 2
    assert {pod.index for pod in one.pods.values() if pod.attempt == 2} == set(hit)
    assert [event.message for event in one.events if event.reason == conditions.NODE_LOST] == [
        "node n1 is lost"
    ]
    (told,) = [event.message for event in one.events if event.reason == conditions.RECLAIMED]
    assert told == "workers 0,5 (2): node n1 is silent, …"


def test_the_floor_is_held_by_those_that_run_as_indexes_come_and_go() -> None:
    one = cluster(workers=6, parallelism=3, spot=spec.Spot(floor=1, spread=spec.Spread.ZONE)).running()
    assert [name for name in one.live() if one.pods[name].node == "od"] == ["tr-0-1"]
    finish(one, "tr-1-1")
    one.run_all()
    assert [name for name in one.live() if one.pods[name].node == "od"] == ["tr-0-1"]
    finish(one, "tr-0-1")
    one.run_all()
    assert [name for name in one.live() if one.pods[name].node == "od"] == ["tr-4-1"]
    one.settle()
    held = conditions.find(one.status.conditions, conditions.FLOOR_MET)
    assert held is not None
    assert (held.status, held.message) == (True, "workers on on-demand nodes: wanted 1, found 1")


def test_when_none_is_left_to_put_on_the_floor_it_says_so() -> None:
    one = cluster(spot=spec.Spot(floor=1, spread=spec.Spread.ZONE)).running()
    finish(one, "tr-0-1")
    held = conditions.find(one.status.conditions, conditions.FLOOR_MET)
    assert held is not None
    assert held.status is True
    assert held.message.endswith("all that are left run, and one that is lost is made again there")
    one.evict("tr-1-1")
    one.end("tr-1-1", 143)
    one.settle()
    assert one.overlays["tr-1-2"].ask is clouds.Ask.ON_DEMAND


def test_suspended_all_pods_end_and_nothing_is_counted_and_resumed_the_rest_goes_on() -> None:
    one = cluster(workers=4).running()
    finish(one, "tr-3-1")
    one.edit(virtual.shards(workers=4, suspend=True))
    one.settle()
    assert one.live() == []
    for name in ("tr-0-1", "tr-1-1"):
        one.end(name, 1)
    one.end("tr-2-1", 0, said=FINISHED)
    one.settle()
    assert phase(one) == "Suspended"
    one.edit(virtual.shards(workers=4))
    one.recovered()
    assert one.live() == ["tr-0-2", "tr-1-2"]
    assert (one.status.reclaims, one.status.failures, shards(one)[0]) == (0, 0, "2,3")


def test_an_edited_template_starts_what_has_not_finished_anew() -> None:
    one = cluster().running()
    finish(one, "tr-0-1")
    template = {"spec": {"containers": [{"name": "trainer", "image": "j"}]}}
    one.edit(virtual.shards(template=template))
    one.recovered()
    assert one.live() == ["tr-1-2", "tr-2-2"]
    assert (one.status.attempt, one.status.attempts[-1].cause) == (2, status.Cause.SPEC_CHANGED)
    assert (one.status.reclaims, one.status.failures) == (0, 0)


def test_more_indexes_are_added_and_what_has_finished_stays_so() -> None:
    one = cluster().running()
    finish(one, "tr-0-1")
    one.edit(virtual.shards(workers=5))
    one.recovered()
    assert one.live() == ["tr-1-2", "tr-2-2", "tr-3-1", "tr-4-1"]


def test_another_parallelism_needs_no_new_job_and_ends_nothing() -> None:
    one = cluster(workers=6, parallelism=2).running()
    before = one.job
    one.edit(virtual.shards(workers=6, parallelism=4))
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1"]
    assert before is not None
    assert one.job is not None
    assert (one.job.uid, one.job.parallelism) == (before.uid, 4)
    one.edit(virtual.shards(workers=6, parallelism=1))
    one.settle()
    assert len(one.live()) == 4


def test_while_a_quota_refuses_pods_nothing_is_begun_again_and_it_says_so() -> None:
    one = cluster()
    one.quota = 1
    for _ in range(6):
        one.step()
    assert one.live() == ["tr-0-1"]
    running = conditions.find(one.status.conditions, conditions.RUNNING)
    assert running is not None
    assert (running.reason, running.message) == (
        conditions.CREATION_REFUSED,
        "0 of 3 workers run; exceeded quota",
    )
    assert shards(one) == ("", "", "", "")
    one.quota = None
    one.settle()
    assert one.live() == ["tr-0-1", "tr-1-1", "tr-2-1"]


def test_of_many_ended_pods_the_newest_few_stay() -> None:
    one = cluster(workers=130, parallelism=130).running()
    for index in range(65):
        one.pass_time(1)
        one.end(f"tr-{index}-1", 0)
        one.end(f"tr-{index + 65}-1", 1)
    one.settle()
    kept = {pod.index for pod in one.pods.values() if pod.ended}
    assert kept == {*range(15, 65), *range(80, 130)}


def test_the_last_failed_pod_of_an_index_stays_while_it_is_tried_again() -> None:
    one = cluster(max_failures_per_index=9).running()
    for attempt in (1, 2):
        one.end(f"tr-1-{attempt}", 1)
        one.settle()
        one.pass_time(25)
        one.settle()
        one.run_all()
    assert sorted(pod.name for pod in one.pods.values() if pod.index == 1) == ["tr-1-2", "tr-1-3"]


def test_a_refused_spec_lets_what_runs_finish_and_counts_what_is_lost() -> None:
    one = cluster().running()
    one.edit(spec.InvalidSpecError("spec.workers: write a whole number of at least 1"))
    finish(one, "tr-0-1")
    one.end("tr-1-1", 1)
    one.settle()
    assert shards(one) == ("0", "", "0,1", "0,1")
    assert one.live() == ["tr-2-1"]
    one.edit(virtual.shards(max_failures_per_index=0))
    one.settle()
    assert shards(one)[1] == "1", "whether it was too many is decided when it can be"


def test_a_status_that_was_lost_takes_up_the_attempts_of_the_pods_that_are_there() -> None:
    one = cluster().running()
    one.evict("tr-1-1")
    one.end("tr-1-1", 143)
    one.settle()
    one.run_all()
    before = {name: one.pods[name].uid for name in one.live()}
    one.status = status.Status()
    one.departed.clear()
    one.settle()
    assert {name: one.pods[name].uid for name in one.live()} == before
    assert shards(one)[2] == "0,1"


def test_the_list_of_indexes_in_a_sentence_is_cut_at_a_comma() -> None:
    text = independent.named(indexes.of(range(0, 1000, 2)))
    assert text.startswith("0,2,4,")
    assert text.endswith(",…")
    assert len(text) <= independent.NAMED + 2
