"""The gang: all workers live and die together.

::

    attempt n runs ──a member is reclaimed or doomed──► intent: attempt n+1, its ID, its cause
                   ──a member fails────────────────────► the same, as Undetermined or Failed
    intent written ─► end the pods of n ─► create those of n+1 as places come free ─► go
    every member of one attempt finished ─► Complete
"""

import datetime as dt

from spottrain.api import conditions, status
from spottrain.plan import (
    actions,
    attempts,
    capacity,
    completion,
    deadline,
    ending,
    faults,
    hints,
    loss,
    pods,
    progress,
    storms,
)
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap


def start_first_attempt(draft: drafts.Draft) -> bool:
    """No attempt was ever recorded."""
    if draft.status.attempt > 0:
        return False
    draft.update(start=draft.snapshot.now)
    deadline.begin(draft)
    attempts.begin(draft, status.Cause.INITIAL)
    return True


def settle_causes(draft: drafts.Draft) -> bool:
    """An attempt was started before its cause could be known."""
    attempts.settle(draft)
    return False


def fail_when_budget_is_spent(draft: drafts.Draft) -> bool:
    """More application failures than `maxFailures` allows."""
    if not _budget_is_spent(draft):
        return False
    last = [one.detail for one in draft.status.attempts if one.cause is status.Cause.FAILED]
    _fail(draft, last[-1] if last else "")
    return True


def _budget_is_spent(draft: drafts.Draft) -> bool:
    limit = draft.snapshot.max_failures
    return limit is not None and draft.status.failures > limit


def _fail(draft: drafts.Draft, last: str) -> None:
    limit = draft.snapshot.max_failures
    count = draft.status.failures
    message = f"{count} failure{'' if count == 1 else 's'}, {limit} allowed"
    message += f"; the last one: {last}" if last else ""
    ending.fail(draft, conditions.TOO_MANY_FAILURES, message)


def complete_when_all_finished(draft: drafts.Draft) -> bool:
    """Every member of one attempt ended with its work done."""
    workers = draft.snapshot.workers
    finished = [one for one in draft.members if one.verdict.fate is loss.Fate.FINISHED]
    if len(finished) < workers or len(finished) < len(draft.members):
        return False
    who = "the worker" if workers == 1 else f"all {workers} workers"
    ending.complete(draft, f"{who} of attempt {draft.status.attempt} finished")
    return True


def restart_when_a_member_is_lost(draft: drafts.Draft) -> bool:
    """A member was reclaimed, is about to be, or failed: one cause for the whole gang, the strongest."""
    by_fate: dict[loss.Fate, list[loss.Member]] = {}
    for one in draft.members:
        by_fate.setdefault(one.verdict.fate, []).append(one)
    reclaimed = by_fate.get(loss.Fate.RECLAIMED, []) or by_fate.get(loss.Fate.DOOMED, [])
    if reclaimed:
        _restart_reclaimed(draft, reclaimed)
        return True
    refused = by_fate.get(loss.Fate.REFUSED, [])
    if refused:
        attempts.begin(draft, status.Cause.UNPLACED, refused[0])  # with a pause, and nothing is counted
        return True
    failed = by_fate.get(loss.Fate.FAILED, [])
    if failed:
        _restart_failed(draft, failed[0])
        return True
    return False


def restart_when_it_makes_no_progress(draft: drafts.Draft) -> bool:
    """Worker 0 has said the same step for longer than `progressTimeout`: a failure, whoever hangs."""
    stalled = progress.stalled(draft.snapshot)
    if stalled is None:
        return False
    _charge(draft, stalled)
    return True


def withdraw_who_waits_in_vain(draft: drafts.Draft) -> bool:
    """A worker without a node may go to others by now: its pod makes way for another of the same attempt.

    It goes only if it still has no node. Until it is gone none is made, and nobody gives a node back.
    """
    snapshot, current = draft.snapshot, draft.snapshot.current.values()
    in_vain = [pod for pod in current if capacity.waits_in_vain(snapshot, pod)]
    for pod in in_vain:
        draft.act(actions.DeletePod(pod.name, pod.uid, version=pod.version))
    if not in_vain and not any(capacity.withdrawn(pod) for pod in current):
        return False
    let_what_runs_go_on(draft)
    return True


def give_back_what_cannot_be_completed(draft: drafts.Draft) -> bool:
    """Some workers hold nodes while others find none: after `placementTimeout` all give way.

    Or two gangs could hold half of the room each, for ever.
    """
    snapshot = draft.snapshot
    bound = [pod for pod in snapshot.current.values() if pod.node]
    unplaced = _unplaced(snapshot)
    if not bound or unplaced is None or not draft.status.attempts or draft.status.attempts[-1].running:
        return False
    limit = max(pod.created for pod in snapshot.current.values())
    limit += dt.timedelta(seconds=snapshot.placement_timeout)
    if snapshot.now < limit:
        draft.wake_at(limit)
        return False
    attempts.begin(draft, status.Cause.UNPLACED, unplaced)
    return True


def move_for_the_deadline(draft: drafts.Draft) -> bool:
    """Waiting for spot would risk `completeBy`, or cost more than it saves; or spot pays again."""
    move = completion.move(draft)
    if move is None:
        return False
    where = "to on-demand" if move.on_demand else "back to spot"
    verdict = loss.Verdict(loss.Fate.ALIVE, completion.MOVED, f"{where}: {move.why}")
    member = loss.Member(0, verdict, None)
    attempts.begin(draft, status.Cause.MOVED, member, on_demand=move.on_demand)
    return True


def forgive_nodes_when_nothing_else_fits(draft: drafts.Draft) -> bool:
    """A worker has found no other place within `placementTimeout`: a doubtful one is better than none."""
    snapshot = draft.snapshot
    waiting = [pod for pod in snapshot.current.values() if not pod.node and pod.unschedulable]
    if not faults.nothing_else_fits(draft, waiting):
        return False
    avoided = faults.avoided(snapshot)
    text = f"no place but {', '.join(avoided)}, where this job failed twice: no longer avoided"
    faults.forgive(draft)
    verdict = loss.Verdict(loss.Fate.ALIVE, "Unplaced", text)
    attempts.begin(draft, status.Cause.UNPLACED, loss.Member(waiting[0].index, verdict, None))
    return True


def _unplaced(snapshot: snap.Snapshot) -> loss.Member | None:
    """The first worker that found no node, or that can't be made (a quota, a refused spec), if there is one.

    One that still waits for its predecessor's place is neither.
    """
    workers, refused = snapshot.workers, snapshot.refused
    if not refused and snapshot.refusal is not None and not snapshot.refusal.permanent:
        refused = snapshot.refusal.message
    waiting = [pod for pod in snapshot.current.values() if not pod.node]
    missing = [index for index in range(workers) if index not in snapshot.current]
    if missing and refused:
        index, text = missing[0], f"{len(missing)} of {workers} workers are refused; {refused}"
    elif waiting and not missing:
        index, text = waiting[0].index, f"{len(waiting)} of {workers} workers found no node"
        text = f"{text}; {waiting[0].unschedulable}".rstrip("; ")
    else:
        return None
    return loss.Member(index, loss.Verdict(loss.Fate.ALIVE, "Unplaced", text), None)


def run_the_attempt(draft: drafts.Draft) -> bool:
    """Pods of older attempts end, those of this one come to be, and restore is told when it may look."""
    let_what_runs_go_on(draft)
    pods.create_missing(draft)
    return False


def let_what_runs_go_on(draft: drafts.Draft) -> bool:
    """All of running the attempt but making pods."""
    pods.acknowledge(draft)
    pods.end_older(draft)
    pods.say_go(draft)
    pods.watch_machines(draft)
    hints.pass_on(draft, draft.snapshot.current.values())
    return False


def _restart_reclaimed(draft: drafts.Draft, lost: list[loss.Member]) -> None:
    counted = [one for one in lost if one.pod is None or one.pod.node]
    if not counted:
        attempts.begin(draft, status.Cause.REPLACED, lost[0])
        return
    told = attempts.count_reclaim(draft, counted[0], f"; attempt {draft.status.attempt + 1} starts")
    storms.count(draft)
    attempts.begin(draft, status.Cause.RECLAIMED, counted[0], told=told)


def _restart_failed(draft: drafts.Draft, failed: loss.Member) -> None:
    """A gang's failure may be the shadow of a node that died; a single worker's, or OOM, is its own."""
    if draft.snapshot.workers > 1 and failed.verdict.cause != loss.OUT_OF_MEMORY:
        attempts.begin(draft, status.Cause.UNDETERMINED, failed)
        return
    if failed.pod is not None and failed.verdict.cause != loss.OUT_OF_MEMORY:
        faults.blame(draft, [failed.pod])
    _charge(draft, failed)


def _charge(draft: drafts.Draft, failed: loss.Member) -> None:
    """The failure is the program's: count it, and begin anew or give up."""
    attempts.count_failure(draft, failed.verdict.detail)
    if _budget_is_spent(draft):
        _fail(draft, failed.verdict.detail)
        return
    attempts.begin(draft, status.Cause.FAILED, failed)
