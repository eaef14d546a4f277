"""A running job whose edited spec is refused: what runs goes on, a loss ends in a state and a sentence."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import conditions, spec, status
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

WORDS = "spec.workers: write a whole number of at least 1"
INVALID = spec.InvalidSpecError(WORDS)
NO = 'Pod "tr-1-2" is invalid: spec.priority: Forbidden'


def broken(job: spec.Spec | None = None) -> virtual.Cluster:
    """A gang that runs and whose spec was then edited into nonsense."""
    cluster = virtual.Cluster(job).running()
    cluster.edit(INVALID)
    cluster.settle()
    return cluster


def condition(cluster: virtual.Cluster, kind: str) -> tuple[bool | None, str, str]:
    found = conditions.find(cluster.status.conditions, kind)
    assert found is not None
    return found.status, found.reason, found.message


def living(cluster: virtual.Cluster) -> list[str]:
    return sorted(pod.name for pod in cluster.pods.values() if not pod.ended)


def finish(cluster: virtual.Cluster) -> None:
    """All of the first attempt end with their work done."""
    for index in range(3):
        cluster.end(f"tr-{index}-1", 0)
    cluster.settle()


def test_a_gang_that_runs_goes_on_and_the_condition_says_what_to_mend() -> None:
    cluster = broken()
    assert cluster.names_of(1) == ["tr-0-1", "tr-1-1", "tr-2-1"]
    assert cluster.status.phase is status.Phase.RUNNING
    assert condition(cluster, conditions.ACCEPTED) == (False, "InvalidSpec", WORDS)
    assert condition(cluster, conditions.RUNNING)[0] is True
    assert condition(cluster, conditions.FLOOR_MET)[0] is None


def test_it_completes_when_all_have_finished() -> None:
    cluster = broken()
    finish(cluster)
    assert cluster.status.phase is status.Phase.COMPLETE
    assert cluster.job is not None
    assert cluster.job.finished


def test_a_loss_is_counted_once_ends_the_others_with_their_grace_and_waits_for_the_edit() -> None:
    cluster = broken()
    cluster.evict("tr-1-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert {pod.grace for pod in cluster.pods.values() if pod.deleting} == {28.0}
    for name in living(cluster):
        cluster.end(name, 75)
    for _ in range(3):
        cluster.pass_time(1000)
        cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims, cluster.status.failures) == (2, 1, 0)
    assert living(cluster) == []
    assert condition(cluster, conditions.RUNNING) == (
        False,
        "SpecRefused",
        f"0 of 3 workers run; no other is made until the spec is mended: {WORDS}",
    )


def test_mended_it_starts_the_attempt_that_was_recorded() -> None:
    cluster = broken()
    cluster.evict("tr-1-1")
    cluster.recovered()
    cluster.edit(virtual.wishes())
    cluster.recovered()
    assert cluster.names_of(2) == ["tr-0-2", "tr-1-2", "tr-2-2"]
    assert (cluster.status.phase, cluster.status.reclaims) == (status.Phase.RUNNING, 1)
    assert condition(cluster, conditions.ACCEPTED)[0] is True


def test_a_worker_on_a_dead_node_is_forced_and_the_others_get_little() -> None:
    cluster = broken()
    cluster.silence(cluster.pods["tr-2-1"].node)
    cluster.settle()
    assert cluster.wake == 5.0
    cluster.pass_time(5)
    cluster.settle()
    assert living(cluster) == ["tr-0-1", "tr-1-1"]
    assert {pod.grace for pod in cluster.pods.values()} == {10.0}


def test_a_worker_that_never_ends_is_given_up_on() -> None:
    cluster = broken()
    cluster.evict("tr-1-1")
    cluster.settle()
    assert cluster.wake is not None
    cluster.pass_time(58)
    cluster.settle()
    assert living(cluster) == []


def test_failures_are_counted_and_whether_they_are_too_many_is_decided_when_it_can_be_read() -> None:
    cluster = broken(virtual.wishes(workers=1, max_failures=0))
    cluster.end("tr-0-1", 1)
    cluster.settle()
    assert (cluster.status.failures, cluster.status.over) == (1, False)
    assert [one.message for one in cluster.events if one.reason == conditions.WORKER_FAILED] == [
        "failure 1: tr-0-1 exited 1 (Error)"
    ]
    cluster.edit(virtual.wishes(workers=1, max_failures=0))
    cluster.settle()
    assert cluster.status.phase is status.Phase.FAILED


def test_an_undetermined_cause_is_settled_meanwhile() -> None:
    cluster = broken()
    cluster.end("tr-0-1", 1)
    cluster.settle()
    assert cluster.wake is not None
    cluster.pass_time(76)
    cluster.settle()
    assert (cluster.status.attempts[-1].cause, cluster.status.failures) == (status.Cause.FAILED, 1)


def test_a_suspended_job_stays_suspended_and_its_own_deletions_are_no_loss() -> None:
    cluster = virtual.Cluster().running()
    cluster.edit(virtual.wishes(suspend=True))
    cluster.settle()
    assert any(pod.deleting for pod in cluster.pods.values()), "they are still saving"
    cluster.edit(INVALID)
    cluster.recovered()
    assert (cluster.status.phase, cluster.status.attempt, cluster.status.reclaims) == (
        status.Phase.SUSPENDED,
        1,
        0,
    )
    cluster.edit(virtual.wishes())
    cluster.recovered()
    assert (cluster.status.phase, cluster.status.reclaims) == (status.Phase.RUNNING, 0)


def test_a_queue_may_suspend_it() -> None:
    cluster = broken()
    assert cluster.job is not None
    cluster.job = dataclasses.replace(cluster.job, queued=True, suspended=True, started=None)
    cluster.recovered()
    assert living(cluster) == []
    assert condition(cluster, conditions.SUSPENDED)[1] == "SuspendedByQueue"
    assert cluster.status.reclaims == 0


def test_half_a_gang_gives_its_nodes_back_after_the_default_time() -> None:
    cluster = virtual.Cluster(virtual.wishes(placement_timeout=60.0))
    while not cluster.pods:
        cluster.step()
    cluster.remove("tr-2-1")
    cluster.departed.clear()  # as if it had not been made yet
    cluster.status = dataclasses.replace(cluster.status, created_attempt=0)
    cluster.edit(INVALID)
    cluster.run_all()
    cluster.settle()
    assert cluster.wake == 900.0
    cluster.pass_time(900)
    cluster.settle()
    last = cluster.status.attempts[-1]
    assert (last.cause, last.detail) == (status.Cause.UNPLACED, f"1 of 3 workers are refused; {WORDS}")
    assert all(pod.deleting for pod in cluster.pods.values())


def test_a_job_that_never_began_waits() -> None:
    cluster = virtual.Cluster()
    cluster.step()
    cluster.status = status.Status()  # so not even how many workers it has is known
    cluster.edit(INVALID)
    cluster.settle()
    assert (cluster.status.attempt, cluster.pods, cluster.status.phase) == (0, {}, status.Phase.PENDING)


@pytest.mark.parametrize("kind", ["evicted", "gone", "failed"])
def test_pods_that_the_server_refuses_for_good_are_tried_once_per_edit(kind: str) -> None:
    cluster = virtual.Cluster().running()
    cluster.server_says_no = NO
    if kind == "evicted":
        cluster.evict("tr-1-1")
    elif kind == "gone":
        cluster.remove("tr-1-1")
    else:
        cluster.end("tr-1-1", 1)
    cluster.recovered()
    cluster.pass_time(100)
    cluster.recovered()
    assert condition(cluster, conditions.ACCEPTED) == (False, "TemplateRejected", NO)
    assert condition(cluster, conditions.RUNNING)[1] == "SpecRefused"
    assert living(cluster) == []
    assert cluster.status.attempt == 2
    counted = (cluster.status.reclaims, cluster.status.failures)
    assert counted == ((0, 1) if kind == "failed" else (1, 0))
    cluster.edit(virtual.wishes())
    cluster.done.clear()
    cluster.settle()
    assert any(isinstance(one, actions.CreatePod) for one in cluster.done), "the edit is tried"
    cluster.server_says_no = ""
    cluster.edit(virtual.wishes())
    cluster.recovered()
    assert cluster.status.phase is status.Phase.RUNNING
    assert (cluster.status.reclaims, cluster.status.failures) == counted


def test_in_a_namespace_that_ends_nothing_is_counted() -> None:
    cluster = virtual.Cluster().running()
    words = "namespace t is being terminated"
    cluster.refusal = snap.Refusal(conditions.NAMESPACE_TERMINATING, words, 1, permanent=True)
    cluster.delete("tr-1-1")
    cluster.pass_time(1)
    cluster.remove("tr-1-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (1, 0)
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.reason != conditions.SPEC_REFUSED, "nothing can be mended"


def test_a_notice_still_saves_in_time() -> None:
    cluster = broken()
    node = cluster.pods["tr-2-1"].node
    cluster.change_node(node, notice="spot", deadline=cluster.now + dt.timedelta(seconds=20))
    cluster.settle()
    assert (cluster.pods["tr-0-1"].grace, cluster.pods["tr-2-1"].grace) == (28.0, 18.0)
    assert cluster.status.reclaims == 1


EDITED = virtual.wishes(template={"spec": {"containers": [{"name": "trainer", "image": "new"}]}})


def test_an_edited_template_that_the_server_would_not_take_ends_nothing() -> None:
    cluster = virtual.Cluster().running()
    cluster.server_says_no = NO
    cluster.edit(EDITED)
    cluster.settle()
    assert cluster.names_of(1) == living(cluster) == ["tr-0-1", "tr-1-1", "tr-2-1"]
    assert condition(cluster, conditions.ACCEPTED) == (False, "TemplateRejected", NO)
    assert condition(cluster, conditions.RUNNING)[0] is True
    assert sum(isinstance(one, actions.TryJob) for one in cluster.done) == 1, "asked once"
    cluster.server_says_no = ""
    cluster.edit(virtual.wishes())
    cluster.settle()
    assert (cluster.status.attempt, condition(cluster, conditions.ACCEPTED)[0]) == (1, True)


def test_an_edited_template_that_the_server_would_take_starts_anew() -> None:
    cluster = virtual.Cluster().running()
    cluster.edit(EDITED)
    cluster.recovered()
    assert (cluster.status.attempt, cluster.status.attempts[-1].cause) == (2, status.Cause.SPEC_CHANGED)
    assert sum(isinstance(one, actions.TryJob) for one in cluster.done) == 1


def test_an_edited_size_that_the_server_would_not_take_is_no_loss() -> None:
    cluster = virtual.Cluster().running()
    cluster.server_says_no = NO
    cluster.edit(virtual.wishes(workers=5))
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims, cluster.status.workers.desired) == (1, 0, 3)
    cluster.evict("tr-1-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)


def unanswered() -> virtual.Cluster:
    """A gang that runs, with an edit that the server can't be asked about."""
    cluster = virtual.Cluster().running()
    cluster.server_gives_no_answer = True
    cluster.edit(dataclasses.replace(EDITED, workers=5))
    cluster.settle()
    return cluster


def test_while_an_edit_cannot_be_tried_the_gang_is_looked_after() -> None:
    cluster = unanswered()
    assert (len(living(cluster)), cluster.wake) == (3, 10.0)
    assert condition(cluster, conditions.ACCEPTED)[:2] == (True, "Valid"), "nothing is known against it"
    cluster.evict("tr-1-1")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert {pod.grace for pod in cluster.pods.values() if pod.deleting} == {28.0}
    cluster.server_gives_no_answer = False
    cluster.recovered()
    assert (cluster.status.phase, len(cluster.names_of(cluster.status.attempt))) == (status.Phase.RUNNING, 5)


def test_while_an_edit_cannot_be_tried_the_gang_may_complete() -> None:
    cluster = unanswered()
    finish(cluster)
    assert cluster.status.phase is status.Phase.COMPLETE


@pytest.mark.parametrize("unheard", [True, False])
def test_a_job_may_be_suspended_whatever_becomes_of_its_edit(unheard: bool) -> None:
    cluster = virtual.Cluster().running()
    cluster.server_gives_no_answer, cluster.server_says_no = unheard, NO
    cluster.edit(dataclasses.replace(EDITED, suspend=True))
    cluster.settle()
    for name in living(cluster):
        assert cluster.pods[name].deleting
    assert cluster.status.phase is status.Phase.SUSPENDED
