"""Independent: every index lives and dies by itself.

::

    pending ─► its pod runs ──finished───────────────► completed, for ever
       ▲            ├──reclaimed or doomed: next attempt at once, elsewhere
       │            └──failed: next attempt after a pause; over its budget: failed, for ever
       └────────────┘
    every index has ended ─► Complete, or Failed with the indexes that failed

What has become of an index is in the status before its pod may go; see
docs/decisions/0012-indexes-in-the-status.md.
"""

import collections.abc as cabc
import datetime as dt
import hashlib
import math

from spottrain.api import conditions, indexes, spec, status
from spottrain.api import shards as kept
from spottrain.plan import (
    actions,
    attempts,
    budget,
    capacity,
    deadline,
    ending,
    faults,
    hints,
    loss,
    shard_pods,
)
from spottrain.plan import draft as drafts
from spottrain.plan import shards as shard
from spottrain.plan import snapshot as snap

PAUSE = 30.0
"""Seconds before an index tries again whose pod never ran: between half and all of it."""
FREE_RECLAIMS = 20
USEFUL = dt.timedelta(minutes=2)
SOON, GRID = 30.0, 5.0
"""Seconds: moments further away than SOON are multiples of GRID, so that thousands of indexes share a few."""
NAMED = 200
"""Characters of a list of indexes in a sentence."""


def start(draft: drafts.Draft) -> bool:
    """It was never begun."""
    if draft.status.attempt > 0:
        return False
    draft.update(start=draft.snapshot.now, shards=kept.Shards())
    deadline.begin(draft)
    attempts.begin(draft, status.Cause.INITIAL)
    return True


def record_how_indexes_fare(draft: drafts.Draft) -> bool:
    """What ended, and how, is recorded before anything is done about it."""
    if draft.status.attempt == 0:
        return False
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    draft.update(shards=_adopted(shards, snapshot))
    ledger = shard.Ledger()
    _take_late_finishes(draft, ledger)
    losses: list[loss.Member] = []
    failures: list[loss.Member] = []
    for member in _members(draft):
        if member.index not in ledger.completed:
            _record(draft, ledger, member, losses, failures)
    _clear_machines(draft, ledger.completed)
    draft.update(shards=ledger.put_into(draft.status.shards or kept.Shards()))
    _give_up_indexes(draft)
    _count_reclaims(draft, losses)
    _count_failures(draft, failures)
    return False


def _adopted(shards: kept.Shards, snapshot: snap.Snapshot) -> kept.Shards:
    """A pod of a later attempt than is recorded: the status was lost. Attempts never go down."""
    ahead = {pod.index: pod.attempt - shards.attempt(pod.index) for pod in snapshot.pods}
    ledger = shard.Ledger()
    ledger.again = {index: more for index, more in ahead.items() if more > 0}
    return ledger.put_into(shards) if ledger.again else shards


def _take_late_finishes(draft: drafts.Draft, ledger: shard.Ledger) -> None:
    """Work is done once any attempt of an index says so, also one that was to be replaced."""
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    decided = shards.decided
    for pod in (*snapshot.pods, *snapshot.departed):
        if pod.outcome != "Succeeded" or pod.index in decided or pod.index >= snapshot.workers:
            continue
        if loss.classify(pod, snapshot).fate is loss.Fate.FINISHED:
            ledger.completed.add(pod.index)


def _members(draft: drafts.Draft) -> cabc.Iterator[loss.Member]:
    """Every index whose current attempt has, or had, a pod; an absent one is judged as it was last seen."""
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    decided, current = shards.decided, shard.places(draft).current
    for index, pod in sorted(current.items()):
        yield loss.Member(index, loss.classify(pod, snapshot), pod)
    last = {
        pod.index: pod
        for pod in snapshot.departed
        if pod.attempt == shards.attempt(pod.index) and pod.index not in decided and pod.index not in current
    }
    for index in (indexes.of(last) | shards.made) - indexes.of(current):
        yield loss.absent(snapshot, index, last.get(index))


def _record(
    draft: drafts.Draft,
    ledger: shard.Ledger,
    member: loss.Member,
    losses: list[loss.Member],
    failures: list[loss.Member],
) -> None:
    """One index's fate."""
    match member.verdict.fate:
        case loss.Fate.FINISHED:
            ledger.completed.add(member.index)
        case loss.Fate.ALIVE:
            ledger.made.add(member.index)
        case loss.Fate.RECLAIMED | loss.Fate.DOOMED:
            if member.pod is None or member.pod.node:
                losses.append(member)
                ledger.begin_again(member.index, _after_a_reclaim(draft, member))
            else:
                ledger.begin_again(member.index, _after_a_deletion(member.pod, draft.snapshot))
        case loss.Fate.REFUSED:
            ledger.begin_again(member.index, _jittered(draft.snapshot, member.index, PAUSE))
        case loss.Fate.FAILED:
            failures.append(member)
            _record_failure(draft, ledger, member)


def _record_failure(draft: drafts.Draft, ledger: shard.Ledger, member: loss.Member) -> None:
    shards, limit = draft.status.shards or kept.Shards(), _limit(draft.snapshot)
    count = shards.failures[member.index] + 1
    ledger.failures[member.index] = 1
    if limit is not None and count > limit:
        ledger.failed.add(member.index)
        return
    ledger.begin_again(member.index, _next_try(draft.snapshot, member, count))


def _limit(snapshot: snap.Snapshot) -> int | None:
    """Failures that each index may have; None while the spec can't be read: nothing is decided on it then."""
    return None if isinstance(snapshot.spec, spec.InvalidSpecError) else snapshot.spec.max_failures_per_index


def _next_try(snapshot: snap.Snapshot, member: loss.Member, failures: int) -> dt.datetime:
    """10 s after an index's first failure, doubling to 10 min, and between half and all of that.

    One that ran for ten minutes has shown that it can: its pause is the first one's.
    """
    settings, pod = snapshot.settings, member.pod
    ended = pod.exit.finished if pod and pod.exit and pod.exit.finished else snapshot.now
    ran = ended - (pod.bound or pod.created) if pod else dt.timedelta()
    doublings = 0 if ran >= budget.FORGIVEN_AFTER else min(failures - 1, 30)
    return _jittered(snapshot, member.index, min(settings.backoff * 2**doublings, settings.backoff_limit))


def _jittered(snapshot: snap.Snapshot, index: int, seconds: float) -> dt.datetime:
    """Between half and all of these seconds from now: indexes that ended together don't come back so."""
    digest = hashlib.sha256(f"{snapshot.fresh_id}-{index}".encode()).digest()
    share = 0.5 + int.from_bytes(digest[:4]) / 2**33
    return _moment(snapshot, seconds * share)


def _moment(snapshot: snap.Snapshot, seconds: float) -> dt.datetime:
    """So many seconds from now, or a little later: in whole seconds, and few different ones."""
    grid = GRID if seconds > SOON else 1.0
    rounded = math.ceil((snapshot.now.timestamp() + seconds) / grid) * grid
    return dt.datetime.fromtimestamp(rounded, dt.UTC)


def _after_a_reclaim(draft: drafts.Draft, member: loss.Member) -> dt.datetime | None:
    """At once, the twentieth time as the first; past that only what ran for a while comes back at once.

    A node that evicts whatever is put on it would else be given one pod after the other.
    """
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    pod, restarts = member.pod, shards.restarts[member.index]
    ran = snapshot.now - (pod.bound or pod.created) if pod else dt.timedelta()
    if restarts < FREE_RECLAIMS or ran >= USEFUL:
        return None
    seconds = min(PAUSE * 2.0 ** min(restarts - FREE_RECLAIMS, 30), snapshot.settings.backoff_limit)
    return _jittered(snapshot, member.index, seconds)


def _after_a_deletion(pod: snap.Pod, snapshot: snap.Snapshot) -> dt.datetime | None:
    seconds = capacity.pause(snapshot, pod)
    return _moment(snapshot, seconds) if seconds else None


def _give_up_indexes(draft: drafts.Draft) -> None:
    """Failures were counted while the budget couldn't be read, or the budget is smaller now."""
    shards, limit = draft.status.shards or kept.Shards(), _limit(draft.snapshot)
    over = NONE if limit is None else shards.failures.over(limit) - shards.decided
    if over:
        ledger = shard.Ledger()
        ledger.failed.update(over)
        draft.update(shards=ledger.put_into(shards))


NONE = indexes.Indexes()


def _count_reclaims(draft: drafts.Draft, losses: list[loss.Member]) -> None:
    """Each index's loss is one; Events are for each cause, whoever it hit."""
    by_cause: dict[str, list[loss.Member]] = {}
    for one in losses:
        attempts.record_reclaim(draft, one)
        by_cause.setdefault(one.verdict.cause, []).append(one)
    for cause, hit in by_cause.items():
        draft.say(conditions.RECLAIMED, _who(hit))
        if cause in {loss.NODE_LOST, loss.NODE_GONE}:
            for node in sorted({one.node for one in hit}):
                draft.say(conditions.NODE_LOST, f"node {node} is lost")


def _count_failures(draft: drafts.Draft, failures: list[loss.Member]) -> None:
    if failures:
        draft.update(failures=draft.status.failures + len(failures))
        for one in failures:
            if one.pod is not None and one.verdict.cause != loss.OUT_OF_MEMORY:
                faults.blame(draft, [one.pod])
        draft.say(conditions.WORKER_FAILED, _who(failures))


def _clear_machines(draft: drafts.Draft, finished: set[int]) -> None:
    """Where an index has just finished the machine is well: what failed there had reasons of its own."""
    if not finished or not draft.status.failed_nodes:
        return
    pods = (*draft.snapshot.pods, *draft.snapshot.departed)
    faults.clear(draft, {pod.node for pod in pods if pod.index in finished and pod.outcome == "Succeeded"})


def _who(members: list[loss.Member]) -> str:
    """`worker 3: detail`, or all of them with the first one's detail."""
    detail = members[0].verdict.detail
    if len(members) == 1:
        return f"worker {members[0].index}: {detail}"
    return f"workers {named(indexes.of(one.index for one in members))} ({len(members)}): {detail}, …"


def named(some: indexes.Indexes) -> str:
    """The indexes for a sentence: as many as fit into it."""
    text = some.text
    return text if len(text) <= NAMED else text[: text.rindex(",", 0, NAMED)] + ",…"


def fail_when_failures_are_too_many(draft: drafts.Draft) -> bool:
    """More than the job's own limits allow, in all or in indexes that failed for good."""
    wishes, shards = draft.snapshot.spec, draft.status.shards
    if isinstance(wishes, spec.InvalidSpecError) or shards is None:
        return False
    failures = draft.status.failures
    failed = shards.failed & indexes.below(draft.snapshot.workers)
    if wishes.max_failures is not None and failures > wishes.max_failures:
        message = f"{failures} failures, {wishes.max_failures} allowed"
        _fail(draft, conditions.TOO_MANY_FAILURES, message)
        return True
    limit = wishes.max_failed_indexes
    if limit is not None and len(failed) > limit:
        message = f"{len(failed)} indexes failed, {limit} allowed: {named(failed)}"
        _fail(draft, conditions.MAX_FAILED_INDEXES_EXCEEDED, message)
        return True
    return False


def end_when_every_index_has_ended(draft: drafts.Draft) -> bool:
    """Each has finished, or failed for good."""
    shards, workers = draft.status.shards, draft.snapshot.workers
    if shards is None or workers == 0 or indexes.below(workers) - shards.decided:
        return False
    failed = shards.failed & indexes.below(workers)
    if failed:
        message = f"{len(failed)} of {workers} indexes failed: {named(failed)}"
        _fail(draft, conditions.FAILED_INDEXES, message)
        return True
    message = f"all {workers} indexes finished"
    ending.complete(draft, message)
    return True


def _fail(draft: drafts.Draft, reason: str, message: str) -> None:
    last = _last_failure(draft.snapshot)
    message = f"{message}; the last one: {last}" if last else message
    ending.fail(draft, reason, message)


def _last_failure(snapshot: snap.Snapshot) -> str:
    """How the pod ended that failed last, of those that are kept."""
    ended = [pod for pod in snapshot.pods if pod.outcome == "Failed"]
    for pod in sorted(ended, key=shard_pods.end_of, reverse=True):
        verdict = loss.classify(pod, snapshot)
        if verdict.fate is loss.Fate.FAILED:
            return verdict.detail
    return ""


def keep_few_ended_pods(draft: drafts.Draft) -> bool:
    """The newest stay for their logs; 10,000 would fill every cache that watches pods."""
    shard_pods.tidy(draft)
    return False


def forgive_nodes_when_nothing_else_fits(draft: drafts.Draft) -> bool:
    """No index runs, and one has found no other place: a doubtful one is better than none."""
    live = shard.places(draft).live
    waiting = {index: pod for index, pod in live.items() if pod.unschedulable}
    if any(pod.node for pod in live.values()) or not faults.nothing_else_fits(draft, waiting.values()):
        return False
    faults.forgive(draft)
    ledger = shard.Ledger()
    for index in waiting:  # what keeps a pod away from a node is in the pod
        ledger.begin_again(index)
    draft.update(shards=ledger.put_into(draft.status.shards or kept.Shards()))
    return False


def withdraw_who_waits_in_vain(draft: drafts.Draft) -> bool:
    """An index without a node may go to others by now: its pod makes way for another.

    It goes only if it still has no node.
    """
    for pod in shard.places(draft).live.values():
        if capacity.waits_in_vain(draft.snapshot, pod):
            draft.act(actions.DeletePod(pod.name, pod.uid, version=pod.version))
    return False


def run_the_indexes(draft: drafts.Draft) -> bool:
    """As many indexes as may run have a pod, and each has one at most that is not told to stop."""
    draft.update(created_attempt=draft.status.attempt)
    job, wishes = draft.snapshot.job, draft.snapshot.valid_spec
    if job is not None and job.parallelism != wishes.at_once:
        draft.act(actions.ScaleJob(wishes.at_once))
    let_what_runs_go_on(draft)
    shard_pods.make(draft)
    return False


def let_what_runs_go_on(draft: drafts.Draft) -> bool:
    """All of running the indexes but making pods."""
    shard_pods.end_older(draft)
    shard_pods.say_go(draft)
    shard_pods.watch(draft)
    for pod in shard.places(draft).live.values():
        hints.pass_on(draft, [pod])
    return False
