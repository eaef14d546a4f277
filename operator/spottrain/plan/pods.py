"""Pods as places of work: ending those of older attempts, creating those of the current one."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, indexes, status
from spottrain.plan import actions, capacity, faults, grace, loss, preferences, staying_on, storms
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

ATTEMPTS_WITH_LOGS = 2
TOGETHER = 5.0
"""Seconds after a reclaim (a whole second, so 4 to 5 s in truth) in which workers are rather made at once. It
delays no gang: until its last member has ended none may begin, and that one's successor is made last."""
UNRELEASED_GRACE = 2.0
"""Seconds for a worker that was never told to restore: it has done nothing that could be saved, and while it
imports its libraries it may not hear SIGTERM (PID 1 without a handler) and wait any grace out."""
_WITHOUT_NOTICE = {loss.NODE_LOST, loss.NODE_GONE, loss.NODE_RESTARTED, loss.POD_VANISHED}

LAST_ROUNDS = dt.timedelta(seconds=10)
"""A kubelet calls a pod ended about a second after its last container; a proxy that runs on is ended then."""


def end_older(draft: drafts.Draft) -> None:
    """End the pods of older attempts; those that have ended stay two attempts long, for their logs."""
    broken = draft.snapshot.settings.broken_grace
    staying = staying_on.see_to(draft)
    for pod in draft.snapshot.older:
        if pod.name in staying:
            continue
        if not pod.ended:
            short = broken if _gang_is_broken(draft.status, pod.attempt) else None
            end(draft, pod, short if pod.go else UNRELEASED_GRACE)
        elif pod.attempt < draft.status.attempt - ATTEMPTS_WITH_LOGS and pod.deleting is None:
            draft.act(actions.DeletePod(pod.name, pod.uid))


def _gang_is_broken(now: status.Status, attempt: int) -> bool:
    """No collective to save together with: it was lost without notice, or never came to be.

    The record of the attempt that followed says how this one ended: it may train on while that one fails.
    """
    after = next((one for one in now.attempts if one.number == attempt + 1), None)
    broken = {status.Cause.UNDETERMINED, status.Cause.FAILED, status.Cause.UNPLACED}
    return after is not None and (after.cause in broken or after.reason in _WITHOUT_NOTICE)


def end_all(draft: drafts.Draft) -> bool:
    """End every live pod of the job; returns whether there is still one."""
    living = [pod for pod in draft.snapshot.pods if not pod.ended]
    for pod in living:
        end(draft, pod)
    return bool(living)


def end(draft: drafts.Draft, pod: snap.Pod, limit: float | None = None) -> None:
    """Delete a live pod: with its own grace or less, by force where nobody is left to end it.

    One that is being deleted already keeps its grace, though its node's deadline comes nearer: the API server
    takes a second, shorter DELETE, and no kubelet of 1.22 to 1.34 acts on it (kubernetes/kubernetes#83916;
    60 s and then 20 s or 1 s were 60 s). All it would do is make the pod look given up on while it saves.
    """
    snapshot = draft.snapshot
    if snapshot.lost(pod):
        _force(draft, pod, f"node {pod.node} is lost")
        return
    if pod.deleting is None:
        ends = _ends_by_itself(pod, snapshot)
        if ends is not None:
            draft.wake_at(ends)
            return
        draft.act(actions.DeletePod(pod.name, pod.uid, _grace(pod, limit, snapshot)))
        return
    given_up = pod.deleting + dt.timedelta(seconds=snapshot.settings.give_up)
    if snapshot.now < given_up:
        draft.wake_at(given_up)
        return
    _force(draft, pod, f"{pod.name} did not end within its grace")


def _ends_by_itself(pod: snap.Pod, snapshot: snap.Snapshot) -> dt.datetime | None:
    """Until when a pod is left alone whose main container has ended: its kubelet may be about to say so.

    A pod that ended by itself stays, with its log; one that was deleted a second before that is gone.
    """
    if not pod.outcome or pod.exit is None or pod.exit.finished is None:
        return None
    limit = pod.exit.finished + LAST_ROUNDS
    return limit if pod.exit.finished <= snapshot.now < limit else None


def _force(draft: drafts.Draft, pod: snap.Pod, why: str) -> None:
    draft.act(actions.DeletePod(pod.name, pod.uid, 0))
    draft.say(conditions.FORCE_DELETED, f"{pod.name} is force-deleted: {why}")


def _grace(pod: snap.Pod, limit: float | None, snapshot: snap.Snapshot) -> int | None:
    """Seconds for the DELETE; None lets the pod's own stand."""
    limits = [pod.grace] if limit is None else [pod.grace, limit]
    node = snapshot.nodes.get(pod.node)
    if node is not None and node.deadline is not None:
        left = (node.deadline - snapshot.now).total_seconds()
        limits.append(left - grace.LEAST_MARGIN - grace.beyond(snapshot))
    least = max(1, int(min(limits)))  # 0 would be a force-delete, before the kubelet has even been asked
    return None if least >= pod.grace else least


def create_missing(draft: drafts.Draft) -> None:
    """Create each worker whose place is free, and at once those whose predecessor's node is leaving.

    All others wait for their predecessor to end: creating them together would make autoscalers buy a second
    fleet, and break quotas, host ports and volumes that one pod may mount.
    """
    now = draft.status
    if now.created_attempt == now.attempt:
        return
    if now.next_retry is not None and draft.snapshot.now < now.next_retry:
        draft.wake_at(now.next_retry)
        return
    snapshot = draft.snapshot
    taken = snapshot.current.keys() | _held_places(snapshot) | _soon_together(draft) | _deleted_early(draft)
    wanted = [index for index in range(snapshot.valid_spec.workers) if index not in taken]
    if wanted and not snapshot.current:
        draft.act(actions.EnsureService())  # somebody may have deleted it, and workers meet by its names
        storms.say_which_pools_rest(draft, storms.resting(snapshot))
    for overlay in _overlays(snapshot, wanted):
        draft.act(actions.CreatePod(overlay))


def _held_places(snapshot: snap.Snapshot) -> set[int]:
    """The indexes whose worker of an older attempt still has its place, and keeps it until it ends."""
    return {pod.index for pod in snapshot.older if not pod.ended and not snapshot.leaving(pod)}


def _soon_together(draft: drafts.Draft) -> set[int]:
    """The indexes whose worker has ended while others are still about to, in the first moment of a reclaim.

    Most gangs that have nothing to save end within a second. Their successors are then made together, with
    `go` from the start: no write for each of them later, and no wait for it. Those of workers that were lost
    themselves are not among them: their places are asked for at once.
    """
    snapshot, attempts = draft.snapshot, draft.status.attempts
    living = {pod.index for pod in snapshot.older if not pod.ended}
    if not living or not attempts or attempts[-1].cause is not status.Cause.RECLAIMED:
        return set()
    until = attempts[-1].start + dt.timedelta(seconds=TOGETHER)
    if snapshot.now >= until:
        return set()
    draft.wake_at(until)
    before = [one for one in (*snapshot.older, *snapshot.departed) if one.attempt == draft.status.attempt - 1]
    moving = {one.index for one in before if snapshot.leaving(one)}
    return set(range(snapshot.valid_spec.workers)) - living - moving - {attempts[-1].index}


def _deleted_early(draft: drafts.Draft) -> set[int]:
    """The indexes whose waiting worker somebody has just deleted: each waits a little for its next pod."""
    found = capacity.withdrawn_members(draft.snapshot).items()
    pauses = {index: seconds for index, pod in found if (seconds := capacity.pause(draft.snapshot, pod))}
    for seconds in pauses.values():
        draft.wake_at(draft.snapshot.now + dt.timedelta(seconds=seconds))
    return set(pauses)


def _overlays(snapshot: snap.Snapshot, wanted: list[int]) -> list[actions.Overlay]:
    """What the next pods of these indexes get, from what is known now; worked out once for all."""
    now, preferred = snapshot.status, preferences.preferred(snapshot, snapshot.status.attempt_id)
    common = actions.Overlay(
        index=0,
        attempt=now.attempt,
        attempt_id=now.attempt_id,
        ask=clouds.Ask.SPOT,
        grace=grace.grace(snapshot).seconds,
        avoid=tuple(sorted({*_shunned(snapshot), *_suspects(snapshot), *faults.avoided(snapshot)})),
        resting=storms.resting(snapshot),
        preferred=preferred,
        home=preferences.home(snapshot, preferred),
        providers=snapshot.providers,
        go=all(pod.ended for pod in snapshot.older),
    )
    return [
        dataclasses.replace(common, index=index, ask=capacity.of_member(snapshot, index).ask)
        for index in wanted
    ]


def _shunned(snapshot: snap.Snapshot) -> set[str]:
    return {name for name in snapshot.nodes if snapshot.shunned(name)}


def _suspects(snapshot: snap.Snapshot) -> set[str]:
    """Where a member failed and nobody knows why yet: the nodes of which no member has been seen to end.

    One of them may be dead, which its lease shows only later, and a worker put there would cost an attempt.
    The node of a worker's own predecessor is never among them, so nobody is left without the place it had.
    """
    attempts = snapshot.status.attempts
    if not attempts or attempts[-1].cause is not status.Cause.UNDETERMINED:
        return set()
    living = {pod.node for pod in snapshot.older if pod.node and not pod.outcome}
    ended = (*(pod for pod in snapshot.older if pod.outcome), *snapshot.departed)
    heard = {pod.node for pod in ended if pod.attempt == attempts[-1].number - 1}
    return living - heard


def acknowledge(draft: drafts.Draft) -> None:
    """A worker of the attempt that has been seen is a lost one when it is absent.

    One that was withdrawn is still to be made.
    """
    current, now = draft.snapshot.current, draft.status
    if len(current) == draft.snapshot.workers:
        draft.update(created_attempt=now.attempt, created=indexes.Indexes())
    elif capacity.withdrawn_members(draft.snapshot):
        draft.update(created_attempt=now.attempt - 1, created=indexes.of(current))
    elif now.created_attempt < now.attempt:
        draft.update(created=now.created | indexes.of(current))


def watch_machines(draft: drafts.Draft) -> None:
    """A node that has just turned NotReady is lost a little later, with no event of its own.

    So is a worker that its kubelet has left unstarted.
    """
    snapshot = draft.snapshot
    for pod in snapshot.pods:
        node = snapshot.nodes.get(pod.node)
        if pod.stranded is not None and not snapshot.stranded(pod):
            draft.wake_at(pod.stranded + snap.STRANDED_AFTER)
        if pod.ended or node is None or node.ready or node.ready_since is None:
            continue
        lost = node.ready_since + dt.timedelta(seconds=snapshot.settings.node_loss)
        if lost > snapshot.now:
            draft.wake_at(lost)


def say_go(draft: drafts.Draft) -> None:
    """Let restore begin once every worker of the attempt before has ended: no save is under way any more."""
    if any(not pod.ended for pod in draft.snapshot.older):
        return
    draft.update(go_attempt=draft.status.attempt)
    deleted = draft.deletes
    for pod in draft.snapshot.current.values():
        if pod.go != draft.status.attempt_id and not pod.ended and pod.uid not in deleted:
            draft.act(actions.SayGo(pod.name, draft.status.attempt_id))
