"""Attempts: how one is begun (the intent, before any act), and how its cause is settled afterwards."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, indexes, status
from spottrain.plan import budget, completion, faults, grace, loss, storms
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap


def begin(
    draft: drafts.Draft,
    cause: status.Cause,
    lost: loss.Member | None = None,
    *,
    told: bool = False,
    on_demand: bool | None = None,
) -> None:
    """Record the next attempt with its ID and cause; a later pass replaces the pods of the one before.

    `told`: an Event of this pass has said so already. `on_demand`: where it is to run; None: as suits the
    job's deadline.
    """
    now = draft.snapshot.now
    ended = tuple(one if one.end else dataclasses.replace(one, end=now) for one in draft.status.attempts)
    retry = None
    if cause in {status.Cause.FAILED, status.Cause.UNDETERMINED}:
        retry = budget.next_try(draft.snapshot, ended)
    elif cause in {status.Cause.UNPLACED, status.Cause.REPLACED}:
        retry = budget.next_placement(draft.snapshot, ended, cause)
    elif cause is status.Cause.RECLAIMED:
        retry = storms.next_try(draft)
    new = status.Attempt(
        number=draft.status.attempt + 1,
        id=draft.snapshot.fresh_id,
        cause=cause,
        start=now,
        reason=lost.verdict.cause if lost else "",
        detail=lost.verdict.detail if lost else "",
        node=lost.node if lost else "",
        index=lost.index if lost else None,
        on_demand=completion.begins_on_demand(draft) if on_demand is None else on_demand,
    )
    draft.update(
        attempt=new.number,
        attempt_id=new.id,
        created=indexes.Indexes(),
        attempts=(*ended, new)[-status.ATTEMPTS_KEPT :],
        next_retry=retry,
    )
    if not told:
        why = f"{cause}: {new.detail}" if new.detail else str(cause)
        where = " on on-demand" if new.on_demand else ""
        draft.say(conditions.ATTEMPT_STARTED, f"attempt {new.number} starts{where} ({why})")
    _warn_of_capped_grace(draft)


def _warn_of_capped_grace(draft: drafts.Draft) -> None:
    if draft.status.attempt > 1:
        return
    given = grace.grace(draft.snapshot)
    if given.capped:
        draft.say(conditions.GRACE_CAPPED, given.sentence())


def count_reclaim(draft: drafts.Draft, lost: loss.Member, then: str = "") -> bool:
    """One more reclaim: status and Event; one machine that dies is one, whoever was put on it meanwhile.

    `then` is what follows, for the Event. Returns whether it was one more.
    """
    if _counted_already(draft, lost):
        return False
    record_reclaim(draft, lost)
    draft.say(conditions.RECLAIMED, f"worker {lost.index}: {lost.verdict.detail}{then}")
    if lost.verdict.cause in {loss.NODE_LOST, loss.NODE_GONE}:
        draft.say(conditions.NODE_LOST, f"node {lost.node} is lost")
    return True


def record_reclaim(draft: drafts.Draft, lost: loss.Member) -> None:
    """Put one more reclaim into the status, and what is known of it."""
    snapshot = draft.snapshot
    node = snapshot.nodes.get(lost.node) or snapshot.gone_nodes.get(lost.node)
    reclaim = status.Reclaim(
        time=snapshot.now,
        cause=lost.verdict.cause,
        node=lost.node,
        zone=node.zone if node else "",
        capacity=str(node.capacity) if node else "unknown",
        provider=node.provider if node else clouds.OTHER,
        instance_type=node.instance_type if node else "",
        index=lost.index,
        attempt=lost.pod.attempt if lost.pod else draft.status.attempt,
    )
    draft.update(reclaims=draft.status.reclaims + 1, last_reclaim=reclaim)
    draft.reclaims.append(reclaim)


def _counted_already(draft: drafts.Draft, lost: loss.Member) -> bool:
    """The newest reclaim named this very machine's end, no longer ago than that takes to be known."""
    snapshot, last = draft.snapshot, draft.status.last_reclaim
    if last is None or not lost.node or last.node != lost.node:
        return False
    node = snapshot.nodes.get(lost.node)
    of_this_machine = node is not None and lost.pod is not None and not snapshot.replaced(lost.pod)
    if of_this_machine and (last.cause == loss.NODE_GONE or _came_after(node, last.time)):
        return False
    ends = last.cause in loss.MACHINE_ENDS and lost.verdict.cause in loss.MACHINE_ENDS
    return ends and snapshot.now - last.time < dt.timedelta(seconds=snapshot.settings.settlement)


def _came_after(node: snap.Node | None, moment: dt.datetime) -> bool:
    return node is not None and node.created is not None and node.created > moment


def count_failure(draft: drafts.Draft, detail: str) -> None:
    """One more application failure: status and Event."""
    draft.update(failures=draft.status.failures + 1)
    limit = draft.snapshot.max_failures
    allowed = "" if limit is None else f" of {limit} allowed"
    draft.say(conditions.WORKER_FAILED, f"failure {draft.status.failures}{allowed}: {detail}")


def unsettled(now: status.Status) -> bool:
    """The cause of some attempt isn't known yet."""
    return any(one.cause is status.Cause.UNDETERMINED for one in now.attempts)


def settle(draft: drafts.Draft) -> None:
    """Decide what stood behind each attempt that was started as Undetermined, once it can be known.

    A reclaim, if a member of the attempt before turns out to be disrupted, or its node lost, gone or under
    notice. A failure, as soon as every member has been seen to end by itself (its own kubelet said so, so no
    node was dead), and at the latest when the settlement time is over.
    """
    for attempt in draft.status.attempts:
        if attempt.cause is status.Cause.UNDETERMINED:
            _settle_one(draft, attempt)


def _settle_one(draft: drafts.Draft, attempt: status.Attempt) -> None:
    snapshot = draft.snapshot
    seen = (*snapshot.pods, *snapshot.departed)
    members = [pod for pod in seen if pod.attempt == attempt.number - 1]
    for pod in members:
        evidence = _late_evidence(pod, snapshot)
        if evidence is not None:
            count_reclaim(draft, loss.Member(pod.index, loss.Verdict(loss.Fate.RECLAIMED, *evidence), pod))
            _rewrite(draft, attempt, status.Cause.RECLAIMED, evidence, pod)
            return
    deadline = attempt.start + dt.timedelta(seconds=snapshot.settings.settlement)
    ended = {pod.index for pod in members if pod.outcome}
    if snapshot.now < deadline and len(ended) < snapshot.workers:
        draft.wake_at(deadline)
        return
    count_failure(draft, attempt.detail)
    faults.blame(draft, (pod for pod in members if pod.outcome == "Failed" and not pod.asked_to_stop))
    _rewrite(draft, attempt, status.Cause.FAILED, (attempt.reason, attempt.detail), None)


def _late_evidence(pod: snap.Pod, snapshot: snap.Snapshot) -> tuple[str, str] | None:
    """Evidence that isn't our own deletion. A node that has just turned NotReady is enough here."""
    node = snapshot.nodes.get(pod.node)
    not_ready = node is not None and not node.ready and not node.doubtful
    if not_ready and not pod.outcome and not snapshot.suspicion:
        return loss.NODE_LOST, f"node {pod.node} is not ready"
    evidence = loss.reclaim_cause(pod, snapshot)
    return None if evidence is None or evidence[0] == loss.POD_DELETED else evidence


def _rewrite(
    draft: drafts.Draft,
    attempt: status.Attempt,
    cause: status.Cause,
    words: tuple[str, str],
    pod: snap.Pod | None,
) -> None:
    settled = dataclasses.replace(
        attempt,
        cause=cause,
        reason=words[0],
        detail=words[1],
        node=pod.node if pod else attempt.node,
        index=pod.index if pod else attempt.index,
    )
    draft.update(attempts=tuple(settled if one == attempt else one for one in draft.status.attempts))
