"""What is said of an Independent job as it stands: phase, counts, conditions, and their mirror in our Job."""

import dataclasses

from spottrain.api import clouds, conditions, indexes, spec, status
from spottrain.api import shards as kept
from spottrain.plan import agents, capacity, fallback, report, windows
from spottrain.plan import draft as drafts
from spottrain.plan import shards as shard
from spottrain.plan import snapshot as snap


def describe(draft: drafts.Draft) -> None:
    """Runs last in every pass, whatever stopped the policies before."""
    if draft.snapshot.deleting:
        return
    draft.update(observed_generation=draft.snapshot.generation)
    if not draft.status.over:
        shard.release_what_is_deleted(draft)
    if not draft.snapshot.status.over:
        _count_workers(draft)
        _mark_running(draft)
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


def _running(draft: drafts.Draft) -> list[snap.Pod]:
    live = shard.places(draft).live
    return [pod for pod in live.values() if pod.running and pod.deleting is None]


def _count_workers(draft: drafts.Draft) -> None:
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    running = _running(draft)
    bought = [snapshot.capacity_of(pod) for pod in running]
    draft.update(
        workers=status.Workers(
            desired=shard.wanted(draft),
            running=len(running),
            on_demand=sum(one.fills_floor for one in bought),
            spot=bought.count(clouds.Capacity.SPOT),
            succeeded=len(shards.completed & indexes.below(snapshot.workers)),
            indexes=snapshot.workers,
            fallback=capacity.fallen_back(snapshot, running),
        )
    )


def _mark_running(draft: drafts.Draft) -> None:
    """Note once when the first worker ran since the job was begun, resumed or edited."""
    attempts = draft.status.attempts
    if attempts and attempts[-1].running is None and draft.status.workers.running:
        last = dataclasses.replace(attempts[-1], running=draft.snapshot.now)
        draft.update(attempts=(*attempts[:-1], last))


def _phase(draft: drafts.Draft) -> None:
    suspended = conditions.find(draft.status.conditions, conditions.SUSPENDED)
    attempts = draft.status.attempts
    if suspended is not None and suspended.status:
        phase = status.Phase.SUSPENDED
    elif draft.status.workers.running:
        phase = status.Phase.RUNNING
    else:
        ran = any(one.running for one in attempts)
        phase = status.Phase.RESTARTING if ran else status.Phase.PENDING
    draft.update(phase=phase)


def _running_condition(draft: drafts.Draft) -> None:
    now, snapshot = draft.status, draft.snapshot
    text = f"{now.workers.running} of {now.workers.desired} workers run"
    refused = snapshot.refusal is not None and not snapshot.refusal.permanent
    if refused and snapshot.refusal is not None:
        text = f"{text}; {snapshot.refusal.message}"
    if snapshot.suspicion and now.attempt > 0:
        draft.condition(conditions.RUNNING, None, conditions.CONTROL_PLANE_SUSPECT, snapshot.suspicion)
    elif now.workers.running and now.phase is not status.Phase.SUSPENDED:
        draft.condition(conditions.RUNNING, True, conditions.WORKERS_RUN, text)
    elif refused:
        draft.condition(conditions.RUNNING, False, conditions.CREATION_REFUSED, text)
    else:
        draft.condition(conditions.RUNNING, False, *_why_none_runs(draft, text))


def _why_none_runs(draft: drafts.Draft, text: str) -> tuple[str, str]:
    """Reason and message."""
    now, snapshot = draft.status, draft.snapshot
    if snapshot.job is None and snapshot.leftover:
        return conditions.WAITING_FOR_PREDECESSORS, "workers of a deleted Job of this name are still ending"
    if now.attempt == 0 or now.phase is status.Phase.SUSPENDED:
        return conditions.NOT_STARTED, "no worker runs"
    if snapshot.refused:
        return conditions.SPEC_REFUSED, (
            f"{text}; no other is made until the spec is mended: {snapshot.refused}"
        )
    live = shard.places(draft).live
    shards = now.shards or kept.Shards()
    if not live and shards.waiting(snapshot.now):
        return conditions.BACKING_OFF, f"{text}; indexes that failed are tried again after a pause"
    reason, texts = report.what_is_missing(draft, live)
    return reason, "; ".join([text, *texts])


def _floor_condition(draft: drafts.Draft) -> None:
    """The floor is one of those that run together; at the end there may be none left to put on it."""
    snapshot = draft.snapshot
    if draft.status.attempt == 0:
        return
    if isinstance(snapshot.spec, spec.InvalidSpecError):
        message = "how many are wanted cannot be read from the spec"
        draft.condition(conditions.FLOOR_MET, None, conditions.INVALID_SPEC, message)
        return
    if snapshot.spec.spot.floor == 0:
        draft.condition(conditions.FLOOR_MET, True, conditions.NO_FLOOR, "no floor is asked for")
        return
    live = list(shard.places(draft).live.values())
    found = sum(snapshot.capacity_of(pod).fills_floor for pod in live)
    wanted = min(snapshot.spec.spot.floor, shard.wanted(draft))
    text = f"workers on on-demand nodes: wanted {wanted}, found {found}"
    if found >= wanted:
        draft.condition(conditions.FLOOR_MET, True, conditions.FLOOR_HELD, text)
    elif _none_is_left_to_make(draft):
        text = f"{text}; all that are left run, and one that is lost is made again there"
        draft.condition(conditions.FLOOR_MET, True, conditions.FLOOR_HELD, text)
    elif any(pod.unschedulable for pod in live if pod.ask is clouds.Ask.ON_DEMAND):
        draft.fault(conditions.FLOOR_MET, conditions.FLOOR_UNMET, text)
    else:
        draft.condition(conditions.FLOOR_MET, None, conditions.WAITING_FOR_WORKERS, text)


def _none_is_left_to_make(draft: drafts.Draft) -> bool:
    """Every index that has not ended runs."""
    shards = draft.status.shards or kept.Shards()
    running = indexes.of(pod.index for pod in _running(draft))
    return not indexes.below(draft.snapshot.workers) - shards.decided - running


def _mirror(draft: drafts.Draft) -> None:
    """Our Job shows what tools expect of an Indexed Job; while suspended it has no start time."""
    shards = draft.status.shards
    if shards is not None and not draft.snapshot.edited:
        report.mirror(draft, shards.texts(draft.snapshot.workers))
