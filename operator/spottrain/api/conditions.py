"""Conditions and reasons of a SpotTrainingJob; its Events use the same reasons."""

import dataclasses
import datetime as dt
from typing import Final

ACCEPTED: Final = "Accepted"
RUNNING: Final = "Running"
FLOOR_MET: Final = "FloorMet"
SPOT_SUFFICIENT: Final = "SpotSufficient"
GRACE_SUFFICIENT: Final = "GraceSufficient"
WINDOW_HOLDS: Final = "WindowHolds"
NOTICES_HEARD: Final = "NoticesHeard"
CHECKPOINTS_STORED: Final = "CheckpointsStored"
DEADLINE_FEASIBLE: Final = "DeadlineFeasible"
SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"

# Accepted
VALID: Final = "Valid"
INVALID_SPEC: Final = "InvalidSpec"
TEMPLATE_REJECTED: Final = "TemplateRejected"
UNSUPPORTED_CLUSTER: Final = "UnsupportedCluster"
NAME_CONFLICT: Final = "NameConflict"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"

# Running
ALL_WORKERS_RUN: Final = "AllWorkersRun"
WORKERS_RUN: Final = "WorkersRun"
WAITING_FOR_WORKERS: Final = "WaitingForWorkers"
WAITING_FOR_PREDECESSORS: Final = "WaitingForPredecessors"
CONTROL_PLANE_SUSPECT: Final = "ControlPlaneSuspect"
BACKING_OFF: Final = "BackingOff"
CREATION_REFUSED: Final = "CreationRefused"
RECLAIM_STORM: Final = "ReclaimStorm"
CANNOT_START: Final = "CannotStart"
SPEC_REFUSED: Final = "SpecRefused"
NOT_STARTED: Final = "NotStarted"
ENDED: Final = "Ended"

# FloorMet
FLOOR_HELD: Final = "FloorHeld"
NO_FLOOR: Final = "NoFloor"
FLOOR_UNMET: Final = "FloorUnmet"

# SpotSufficient
FELL_BACK: Final = "FellBack"
FALLBACK_OVER: Final = "FallbackOver"
SPOT_FOUND: Final = "SpotFound"

# GraceSufficient
SAVE_FITS: Final = "SaveFits"
SAVE_TOO_SLOW: Final = "SaveTooSlow"

# WindowHolds
WINDOW_LASTS: Final = "WindowLasts"
WINDOW_TOO_SHORT: Final = "WindowTooShort"

# NoticesHeard
AGENTS_LISTEN: Final = "AgentsListen"
AGENT_MISSING: Final = "AgentMissing"

# CheckpointsStored
STORED: Final = "Stored"
NOT_STORED: Final = "NotStored"

# DeadlineFeasible
ON_TIME: Final = "OnTime"
TOO_LATE: Final = "TooLate"
WORK_UNKNOWN: Final = "WorkUnknown"
NO_DEADLINE: Final = "NoDeadline"

# Suspended
BY_SPEC: Final = "SuspendedBySpec"
BY_QUEUE: Final = "SuspendedByQueue"
NOT_SUSPENDED: Final = "NotSuspended"

# Complete, Failed
ALL_WORKERS_FINISHED: Final = "AllWorkersFinished"
NOT_YET: Final = "NotYet"
TOO_MANY_FAILURES: Final = "TooManyFailures"
# As the Job controller words them for an Indexed Job.
MAX_FAILED_INDEXES_EXCEEDED: Final = "MaxFailedIndexesExceeded"
FAILED_INDEXES: Final = "FailedIndexes"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"

# Events that have no condition of their own
ATTEMPT_STARTED: Final = "AttemptStarted"
RECLAIMED: Final = "Reclaimed"
WORKER_FAILED: Final = "WorkerFailed"
GRACE_CAPPED: Final = "GraceCapped"
NODE_LOST: Final = "NodeLost"
NODE_AVOIDED: Final = "NodeAvoided"
POOL_RESTS: Final = "PoolRests"
FORCE_DELETED: Final = "ForceDeleted"
SPEC_CHANGED: Final = "SpecChanged"
RECLAIM_HINT: Final = "ReclaimHint"
TRAINS_ON: Final = "TrainsOn"
PRICE_UNREADABLE: Final = "PriceUnreadable"

PASSING: Final = {WAITING_FOR_WORKERS, WAITING_FOR_PREDECESSORS}
"""Reasons that come and go by themselves while a gang is replaced; no decision is made on them."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """One entry of `status.conditions`, in the shape of `metav1.Condition`.

    `status` is None for Unknown.
    """

    type: str
    status: bool | None
    reason: str
    message: str
    since: dt.datetime
    generation: int


def decided(conditions: tuple[Condition, ...]) -> dict[str, tuple[bool | None, str, int]]:
    """What they hold true, by type, without what is only said of it: words, moments, and passing reasons."""
    return {
        one.type: (one.status, "" if one.reason in PASSING else one.reason, one.generation)
        for one in conditions
    }


def merged(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with `new` set; `since` moves only when its status does."""
    old = find(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status is new.status:
        new = dataclasses.replace(new, since=old.since)
    return tuple(new if one.type == new.type else one for one in conditions)


def find(conditions: tuple[Condition, ...], type: str) -> Condition | None:  # noqa: A002
    """The condition of that type, if it is there."""
    return next((one for one in conditions if one.type == type), None)
