"""What is said of the job as it stands: phase, counts, conditions, and their mirror in our Job."""

import collections.abc as cabc
import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, duration, status
from spottrain.plan import (
    actions,
    agents,
    capacity,
    completion,
    fallback,
    faults,
    loss,
    preferences,
    progress,
    storms,
    windows,
)
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap


def describe(draft: drafts.Draft) -> None:
    """Runs last in every pass, whatever stopped the policies before."""
    if draft.snapshot.deleting:
        return
    draft.update(observed_generation=draft.snapshot.generation)
    _count_workers(draft)
    if not draft.snapshot.status.over:
        progress.tell(draft)
    _mark_running(draft)
    completion.describe(draft)
    if not draft.status.over:
        _phase(draft)
        _running_condition(draft)
        _floor_condition(draft)
        fallback.describe(draft)
        windows.describe(draft)
        agents.describe(draft)
        _mirror(draft)
    else:
        draft.condition(conditions.RUNNING, False, conditions.ENDED, "the job is over")


def _count_workers(draft: drafts.Draft) -> None:
    snapshot = draft.snapshot
    if snapshot.status.over:
        return
    begun = _just_begun(draft)
    current = [] if begun else list(snapshot.current.values())
    members = () if begun else draft.members  # one whose pod was removed has finished all the same
    running = [pod for pod in current if pod.running and pod.deleting is None]
    spot = [pod for pod in running if snapshot.capacity_of(pod) is clouds.Capacity.SPOT]
    on_demand = [pod for pod in running if snapshot.capacity_of(pod).fills_floor]
    draft.update(
        workers=status.Workers(
            desired=snapshot.workers,
            running=len(running),
            on_demand=len(on_demand),
            spot=len(spot),
            succeeded=sum(one.verdict.fate is loss.Fate.FINISHED for one in members),
            fallback=capacity.fallen_back(snapshot, running),
        )
    )


def _just_begun(draft: drafts.Draft) -> bool:
    return draft.status.attempt != draft.snapshot.status.attempt


def _mark_running(draft: drafts.Draft) -> None:
    """Note once when all workers of the attempt ran."""
    attempts = draft.status.attempts
    if attempts and attempts[-1].running is None and _all_run(draft.status):
        last = dataclasses.replace(attempts[-1], running=draft.snapshot.now)
        draft.update(attempts=(*attempts[:-1], last), next_retry=None)


def _all_run(now: status.Status) -> bool:
    workers = now.workers
    return (
        workers.desired > 0 and workers.running > 0 and workers.running + workers.succeeded == workers.desired
    )


def _phase(draft: drafts.Draft) -> None:
    suspended = conditions.find(draft.status.conditions, conditions.SUSPENDED)
    if suspended is not None and suspended.status:
        phase = status.Phase.SUSPENDED
    elif _all_run(draft.status):
        phase = status.Phase.RUNNING
    else:
        phase = status.Phase.RESTARTING if draft.status.attempt > 1 else status.Phase.PENDING
    draft.update(phase=phase)


def _running_condition(draft: drafts.Draft) -> None:
    now, snapshot = draft.status, draft.snapshot
    if snapshot.suspicion and now.attempt > 0:
        draft.condition(conditions.RUNNING, None, conditions.CONTROL_PLANE_SUSPECT, snapshot.suspicion)
        return
    if _all_run(now):
        problem = progress.problem(snapshot)
        blind = f"; progress cannot be read, so it is not watched: {problem}" if problem else ""
        draft.condition(conditions.RUNNING, True, conditions.ALL_WORKERS_RUN, f"all workers run{blind}")
        return
    count = f"{now.workers.running} of {now.workers.desired} workers run"
    if snapshot.refusal is not None and not snapshot.refusal.permanent:
        draft.condition(conditions.RUNNING, False, conditions.CREATION_REFUSED, snapshot.refusal.message)
    elif snapshot.job is None and snapshot.leftover:
        message = "workers of a deleted Job of this name are still ending"
        draft.condition(conditions.RUNNING, False, conditions.WAITING_FOR_PREDECESSORS, message)
    elif now.attempt == 0 or now.phase is status.Phase.SUSPENDED:
        draft.condition(conditions.RUNNING, False, conditions.NOT_STARTED, "no worker runs")
    elif snapshot.refused and not _namespace_ends(snapshot):
        message = f"{count}; no other is made until the spec is mended: {snapshot.refused}"
        draft.condition(conditions.RUNNING, False, conditions.SPEC_REFUSED, message)
    elif now.next_retry is not None and snapshot.now < now.next_retry:
        storm = bool(now.attempts) and now.attempts[-1].cause is status.Cause.RECLAIMED
        reason = conditions.RECLAIM_STORM if storm else conditions.BACKING_OFF
        draft.condition(conditions.RUNNING, False, reason, _why_later(now))
    elif any(not pod.ended for pod in snapshot.older) and not _just_begun(draft):
        message = f"{count}; workers of the attempt before are still ending"
        draft.condition(conditions.RUNNING, False, conditions.WAITING_FOR_PREDECESSORS, message)
    else:
        reason, texts = what_is_missing(draft, snapshot.current)
        draft.condition(conditions.RUNNING, False, reason, "; ".join([count, *texts]))


SLOW_START = dt.timedelta(minutes=3)
"""An image of some GB takes that long; a volume that another node still holds takes longer."""


NEVER_SEEN = "no spot node was ever seen in spec.spot.pools: compare its names with the nodes' labels"


def what_is_missing(draft: drafts.Draft, current: cabc.Mapping[int, snap.Pod]) -> tuple[str, list[str]]:
    """Why some workers don't run yet, of these by index: a reason, and what is known of it."""
    snapshot = draft.snapshot
    pods = [pod for _, pod in sorted(current.items()) if not pod.ended and pod.deleting is None]
    stuck = next((pod for pod in pods if pod.waiting), None)
    if stuck is not None:
        return conditions.CANNOT_START, [f"{stuck.name} on node {stuck.node}: {stuck.waiting}"]
    texts = sorted({pod.unschedulable for pod in pods if pod.unschedulable})[:1]
    avoided = faults.avoided(snapshot)
    if texts and avoided:
        texts.append(f"kept off {', '.join(avoided)}, where this job failed twice")
    if any(pod.unschedulable and pod.pools for pod in pods) and not preferences.on_offer(snapshot):
        texts.append(NEVER_SEEN)
    if ahead := fallback.ahead(snapshot, pods):
        texts.append(ahead)
    return conditions.WAITING_FOR_WORKERS, texts or _slow_start(draft, pods)


def _slow_start(draft: drafts.Draft, pods: list[snap.Pod]) -> list[str]:
    """A volume that can't be mounted shows in the pod's Events alone: say where to look."""
    starting = [pod for pod in pods if pod.bound is not None and not pod.running and not pod.outcome]
    for pod in starting:
        due = (pod.bound or draft.snapshot.now) + SLOW_START
        if draft.snapshot.now >= due:
            begun = duration.format_time(pod.bound or due)
            text = f"{pod.name} has been starting on node {pod.node} since {begun}"
            return [f"{text}: `kubectl describe pod {pod.name}` says what its kubelet waits for"]
        draft.wake_at(due)
    return []


def _namespace_ends(snapshot: snap.Snapshot) -> bool:
    return snapshot.refusal is not None and snapshot.refusal.reason == conditions.NAMESPACE_TERMINATING


def _why_later(now: status.Status) -> str:
    moment = duration.format_time(now.next_retry) if now.next_retry else ""
    if now.attempts and now.attempts[-1].cause is status.Cause.RECLAIMED:
        return f"{storms.sentence(now)}; next try at {moment}"
    if now.attempts and now.attempts[-1].cause is status.Cause.UNPLACED:
        return f"its workers could not all be placed and gave their nodes back; next try at {moment}"
    if now.attempts and now.attempts[-1].cause is status.Cause.REPLACED:
        return f"somebody deletes its workers before they have a node; next try at {moment}"
    return f"waiting after a failure; next try at {moment}"


def _floor_condition(draft: drafts.Draft) -> None:
    snapshot = draft.snapshot
    if draft.status.attempt == 0:
        return
    if isinstance(snapshot.spec, Exception):
        message = "how many are wanted cannot be read from the spec"
        draft.condition(conditions.FLOOR_MET, None, conditions.INVALID_SPEC, message)
        return
    floor = snapshot.spec.spot.floor
    if floor == 0:
        draft.condition(conditions.FLOOR_MET, True, conditions.NO_FLOOR, "no floor is asked for")
        return
    current = [] if _just_begun(draft) else list(snapshot.current.values())
    found = sum(snapshot.capacity_of(pod).fills_floor and not pod.ended for pod in current)
    text = f"workers on on-demand nodes: wanted {floor}, found {found}"
    if found >= floor:
        draft.condition(conditions.FLOOR_MET, True, conditions.FLOOR_HELD, text)
    elif any(pod.unschedulable for pod in current if pod.index < floor):
        draft.fault(conditions.FLOOR_MET, conditions.FLOOR_UNMET, text)
    else:
        draft.condition(conditions.FLOOR_MET, None, conditions.WAITING_FOR_WORKERS, text)


def _mirror(draft: drafts.Draft) -> None:
    """Our Job shows what tools expect of a Job; while suspended it has no start time."""
    if draft.status.attempt > 0:
        mirror(draft)


def mirror(draft: drafts.Draft, indexes: tuple[str, str] | None = None) -> None:
    """Write the counts into our Job where they differ; `indexes`: the completed and the failed, if any."""
    snapshot, job = draft.snapshot, draft.snapshot.job
    if job is None or not job.ours or job.finished or draft.changes_job:
        return
    living = [pod for pod in snapshot.pods if not pod.ended]
    active = [pod for pod in living if pod.deleting is None]
    report = actions.ReportJob(
        active=len(active),
        ready=sum(pod.running for pod in active),
        terminating=len(living) - len(active),
        succeeded=draft.status.workers.succeeded,
        failed=draft.status.failures,
        started=not job.suspended,
        indexes=indexes,
    )
    counts = (report.active, report.ready, report.terminating, report.succeeded, report.failed)
    if (job.started is not None) != report.started or job.counts != counts:
        draft.act(report)
