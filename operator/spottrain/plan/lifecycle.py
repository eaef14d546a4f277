"""The life of the object around the attempts: refusals, our Job, suspension, edits, the end.

**A spec that is refused**, by us (InvalidSpec) or by the API server for good, until it is mended:

- Nothing is made, and `Accepted` says in our words or the server's what to mend. Every edit is tried;
  no refusal is tried again without one.
- What runs goes on, may finish, and may complete the job. A suspended job stays suspended.
- When a member is lost, the loss is judged and counted as ever, and the next attempt is recorded. That ends
  the pods of the broken one with their grace, and then the job waits: an attempt that has no pods can lose
  none, so nothing is counted twice. Mended, the spec starts that recorded attempt.
- `maxFailures` can't be read from an invalid spec: failures are counted, and whether they are too many is
  decided when it can be.
- A gang that isn't whole when its spec is refused holds its nodes for `placementTimeout` (the default of it,
  from an invalid spec), as when a quota refuses the rest.

An edited template is tried first (a dry run of its Job), so that one which is refused ends nothing. What only
a pod would be refused for shows later, when the old Job is gone.
"""

import datetime as dt

from spottrain.api import conditions, last_words, names, spec, status
from spottrain.plan import actions, attempts, deadline, pods
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap


def leave_a_deleted_job_to_garbage_collection(draft: drafts.Draft) -> bool:
    """It is being deleted: its Job, pods and Service follow by their owner references."""
    return draft.snapshot.deleting


def clean_up_after_the_end(draft: drafts.Draft) -> bool:
    """It is decided: end what still runs, then close the Job, then wait for the time to live."""
    if not draft.status.over:
        return False
    _add_last_words(draft)
    if pods.end_all(draft):
        return True
    job = draft.snapshot.job
    if job is not None and job.ours and not job.finished:
        draft.act(_closing_report(draft.status))
    _expire(draft)
    return True


def _add_last_words(draft: drafts.Draft) -> None:
    """The end of the last failed worker's log goes into the condition once it has been read."""
    failed = conditions.find(draft.status.conditions, conditions.FAILED)
    tails = [pod for pod in draft.snapshot.pods if pod.tail]
    if failed is None or not failed.status or failed.reason == conditions.DEADLINE_EXCEEDED:
        return
    if not tails or last_words.parted(failed.message)[1]:
        return
    last = max(tails, key=lambda pod: (pod.attempt, -pod.index))
    message = f"{failed.message}{last_words.LastWords(last.name, last.tail)}"
    draft.condition(conditions.FAILED, True, failed.reason, message)


def _closing_report(now: status.Status) -> actions.ReportJob:
    condition = conditions.find(now.conditions, conditions.COMPLETE)
    complete = condition is not None and condition.status is True
    if not complete:
        condition = conditions.find(now.conditions, conditions.FAILED)
    return actions.ReportJob(
        active=0,
        ready=0,
        terminating=0,
        succeeded=now.workers.succeeded if complete or now.shards else 0,
        failed=now.failures,
        outcome="Complete" if complete else "Failed",
        message=condition.message if condition else "",
        reason=condition.reason if condition else "",
        indexes=now.shards.texts(now.workers.indexes) if now.shards else None,
    )


def _expire(draft: drafts.Draft) -> None:
    job_spec, ended = draft.snapshot.spec, draft.status.completion
    if isinstance(job_spec, spec.InvalidSpecError) or job_spec.ttl is None or ended is None:
        return
    expiry = ended + dt.timedelta(seconds=job_spec.ttl)
    if draft.snapshot.now >= expiry:
        draft.act(actions.DeleteSelf())
    else:
        draft.wake_at(expiry)


def say_what_to_mend(draft: drafts.Draft) -> bool:
    """The spec can't be acted on, or the API server refused what it renders to: tried again after an edit."""
    snapshot = draft.snapshot
    reason = conditions.INVALID_SPEC
    if not isinstance(snapshot.spec, spec.InvalidSpecError) and snapshot.refusal is not None:
        reason = snapshot.refusal.reason
    draft.condition(conditions.ACCEPTED, False, reason, snapshot.refused)
    return reason == conditions.NAMESPACE_TERMINATING  # everything in it goes, which is no loss of ours


def have_nothing_that_could_go_on(draft: drafts.Draft) -> bool:
    """No attempt was begun, or there is no Job of ours whose pods they could be."""
    job = draft.snapshot.job
    if draft.status.attempt == 0 or draft.snapshot.workers == 0:
        return True
    return job is None or not job.ours or job.managed_by != names.MANAGED_BY


def stay_suspended(draft: drafts.Draft) -> bool:
    """By its spec where that can be read, by its queue, or as it was before its spec was refused."""
    snapshot, job = draft.snapshot, draft.snapshot.job
    if isinstance(snapshot.spec, spec.Spec) and snapshot.spec.suspend:
        _suspend(draft, conditions.BY_SPEC)
        return True
    if job is not None and job.queued and job.suspended:
        _suspend(draft, conditions.BY_QUEUE)
        return True
    was = conditions.find(draft.status.conditions, conditions.SUSPENDED)
    if was is None or not was.status:
        return False
    pods.end_all(draft)
    return True


def wait_for_a_newer_cluster(draft: drafts.Draft) -> bool:
    """The API server dropped what we need of this very spec, and the Job made from it is gone."""
    unsupported = conditions.find(draft.status.conditions, conditions.ACCEPTED)
    return (
        unsupported is not None
        and unsupported.reason == conditions.UNSUPPORTED_CLUSTER
        and unsupported.generation == draft.snapshot.generation
        and draft.snapshot.job is None
    )


def let_the_pods_of_a_deleted_job_end(draft: drafts.Draft) -> bool:
    """Somebody deleted our Job, or this job's namesake: garbage collection ends the pods, and they may save.

    A new attempt that began meanwhile would go on from the checkpoint before.
    """
    snapshot = draft.snapshot
    if snapshot.job is not None:
        return False
    patience = dt.timedelta(seconds=snapshot.settings.give_up)
    ends = [(pod.deleting or snapshot.now) + patience for pod in snapshot.leftover if not snapshot.lost(pod)]
    waits = [end for end in ends if end > snapshot.now]
    for end in waits:
        draft.wake_at(end)
    return bool(waits)


def have_a_job(draft: drafts.Draft) -> bool:
    """There is one Job, ours, and the stock Job controller leaves it alone."""
    job = draft.snapshot.job
    if job is None:
        refusal = draft.snapshot.refusal
        if refusal is not None and refusal.reason == conditions.NAME_CONFLICT:
            draft.condition(conditions.ACCEPTED, False, refusal.reason, refusal.message)
        if not draft.snapshot.independent:  # whose workers never meet
            draft.act(actions.EnsureService())
        draft.act(actions.CreateJob())
        return True
    name = draft.snapshot.name
    if not job.ours:
        message = f"a Job named {name} exists that is not this job's; rename one of them, or delete that Job"
        draft.condition(conditions.ACCEPTED, False, conditions.NAME_CONFLICT, message)
        draft.wake_at(draft.snapshot.now + dt.timedelta(seconds=10))
        return True
    if job.managed_by != names.MANAGED_BY:
        message = (
            "the API server dropped spec.managedBy of the Job: Kubernetes 1.32 or newer with the "
            "JobManagedBy feature is needed; upgrade, then edit or re-apply this job"
        )
        draft.condition(conditions.ACCEPTED, False, conditions.UNSUPPORTED_CLUSTER, message)
        draft.act(actions.DeleteJob(job.uid))
        return True
    draft.condition(conditions.ACCEPTED, True, conditions.VALID, "the spec is accepted")
    return False


def on_trial(snapshot: snap.Snapshot) -> bool:
    """The gang's template or size was edited, and the API server has not said yet that it would take it."""
    job = snapshot.job
    if job is None or not job.ours or job.managed_by != names.MANAGED_BY or not snapshot.edited:
        return False
    return snapshot.tried != snapshot.template_hash and _has_the_old_job(snapshot)


def try_the_edit(draft: drafts.Draft) -> bool:
    """A slip of the pen, or a server that gives no answer, ends no training: the gang goes on as it is."""
    refusal = draft.snapshot.refusal
    if refusal is not None and refusal.generation == draft.snapshot.generation:
        draft.condition(conditions.ACCEPTED, False, refusal.reason, refusal.message)
    draft.act(actions.TryJob())
    return False


def start_anew_when_the_template_changed(draft: drafts.Draft) -> bool:
    """What the spec renders to differs from our Job, which can't be edited: let all end, then replace it."""
    job, snapshot = draft.snapshot.job, draft.snapshot
    if job is None or not snapshot.edited:
        return False
    if _has_the_old_job(snapshot):
        attempts.begin(draft, status.Cause.SPEC_CHANGED)
        draft.say(conditions.SPEC_CHANGED, "workers or template changed: all workers save and start anew")
        return True
    # With the Job goes what is known of its pods, and with that the cause of an attempt that is not settled.
    if not pods.end_all(draft) and not attempts.unsettled(draft.status):
        draft.act(actions.DeleteJob(job.uid))
    return True


def _has_the_old_job(snapshot: snap.Snapshot) -> bool:
    """Its attempt is one of the Job that there is, and not the first of the Job that is still to come."""
    now = snapshot.status
    changed = bool(now.attempts) and now.attempts[-1].cause is status.Cause.SPEC_CHANGED
    still_to_come = changed and now.created_attempt < now.attempt and not snapshot.current
    return now.attempt > 0 and not still_to_come


def obey_suspend(draft: drafts.Draft) -> bool:
    """Suspended by its spec, or by a queue that holds its Job."""
    snapshot, job = draft.snapshot, draft.snapshot.job
    if job is None:
        return True
    by_queue = job.queued and job.suspended
    if snapshot.valid_spec.suspend or by_queue:
        reason = conditions.BY_SPEC if snapshot.valid_spec.suspend else conditions.BY_QUEUE
        _suspend(draft, reason)
        return True
    if job.suspended:
        draft.act(actions.SuspendJob(suspend=False))
    was = conditions.find(draft.status.conditions, conditions.SUSPENDED)
    draft.condition(conditions.SUSPENDED, False, conditions.NOT_SUSPENDED, "it may run")
    if was is not None and was.status and draft.status.attempt > 0:
        deadline.begin(draft)
        attempts.begin(draft, status.Cause.RESUMED)
        return True
    return False


def _suspend(draft: drafts.Draft, reason: str) -> None:
    job = draft.snapshot.job
    if job is not None and not job.suspended and not job.queued:
        draft.act(actions.SuspendJob(suspend=True))
    pods.end_all(draft)
    message = "spec.suspend is true" if reason == conditions.BY_SPEC else "the queue has not admitted it"
    draft.condition(conditions.SUSPENDED, True, reason, message)
    draft.update(phase=status.Phase.SUSPENDED, next_retry=None)
