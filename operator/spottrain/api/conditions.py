"""Conditions and reasons of a SpotTrainingJob; its Events use the same reasons.

The text below each word is what docs/reference.md says of it.
"""

import dataclasses
import datetime as dt
from typing import Final

ACCEPTED: Final = "Accepted"
"""The spec can be acted on, and the API server takes what it renders to. The message says what to mend."""
RUNNING: Final = "Running"
"""All workers run (in Independent, at least one). Else the message says what they wait for."""
FLOOR_MET: Final = "FloorMet"
"""As many workers as `spot.onDemandFloor` asks for are on on-demand nodes."""
SPOT_SUFFICIENT: Final = "SpotSufficient"
"""No worker is on an on-demand node because of `spot.fallback`. Not there before the first fallback."""
GRACE_SUFFICIENT: Final = "GraceSufficient"
"""A save on SIGTERM, as measured, fits the grace. Not there before the first save is known."""
WINDOW_HOLDS: Final = "WindowHolds"
"""Machines last as long after their notice as the grace counts on. Not there before one didn't."""
NOTICES_HEARD: Final = "NoticesHeard"
"""Each spot node of its workers has an armed agent. Not there before one heard nothing."""
CHECKPOINTS_STORED: Final = "CheckpointsStored"
"""The sidecar stores what the program writes to `checkpoint.directory`. Not there before it could not."""
DEADLINE_FEASIBLE: Final = "DeadlineFeasible"
"""`completeBy` can be met. Not there before one is set."""
SUSPENDED: Final = "Suspended"
"""The job is paused, and has no workers."""
COMPLETE: Final = "Complete"
"""The work is done. Not there before."""
FAILED: Final = "Failed"
"""The job has given up. Not there before."""

# Accepted
VALID: Final = "Valid"
"""It is accepted."""
INVALID_SPEC: Final = "InvalidSpec"
"""The spec says something that can't be acted on; the message names the field. Edit it."""
TEMPLATE_REJECTED: Final = "TemplateRejected"
"""The API server refuses the Job or a pod made from `template`; the message has its words. Edit it."""
UNSUPPORTED_CLUSTER: Final = "UnsupportedCluster"
"""The API server drops `managedBy` of Jobs: it is older than 1.32, or the feature is off."""
NAME_CONFLICT: Final = "NameConflict"
"""A Job, Service or pod of this name is somebody else's: rename the job, or delete that one."""
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
"""The namespace is being deleted, and nothing can be made in it any more."""

# Running
ALL_WORKERS_RUN: Final = "AllWorkersRun"
"""All workers of the gang run."""
WORKERS_RUN: Final = "WorkersRun"
"""Some indexes of an Independent job run; the message counts them."""
WAITING_FOR_WORKERS: Final = "WaitingForWorkers"
"""Some workers have no node yet, or are starting; the message has the scheduler's words."""
WAITING_FOR_PREDECESSORS: Final = "WaitingForPredecessors"
"""Workers of the attempt before, or of a deleted job of this name, are still saving and ending."""
CONTROL_PLANE_SUSPECT: Final = "ControlPlaneSuspect"
"""So many nodes are silent at once that the control plane is more likely at fault: nothing is deleted."""
BACKING_OFF: Final = "BackingOff"
"""A pause, after a failure or a try to place the workers; the message says until when."""
CREATION_REFUSED: Final = "CreationRefused"
"""A quota or an admission policy refuses pods; the message has the server's words. Tried again."""
RECLAIM_STORM: Final = "ReclaimStorm"
"""More than 20 reclaims in a row without progress between them: the next attempt waits."""
CANNOT_START: Final = "CannotStart"
"""A kubelet can't start a worker: an image, a Secret, a ConfigMap. The message has the kubelet's words."""
SPEC_REFUSED: Final = "SpecRefused"
"""No worker is made until the spec is mended: see `Accepted`."""
NOT_STARTED: Final = "NotStarted"
"""No attempt has begun, or the job is suspended."""
ENDED: Final = "Ended"
"""The job is over."""

# FloorMet
FLOOR_HELD: Final = "FloorHeld"
"""The floor holds."""
NO_FLOOR: Final = "NoFloor"
"""None is asked for."""
FLOOR_UNMET: Final = "FloorUnmet"
"""The scheduler finds no on-demand node for a worker of the floor."""

# SpotSufficient
FELL_BACK: Final = "FellBack"
"""Spot has no room: workers may go to on-demand nodes for a while; the message says until when."""
FALLBACK_OVER: Final = "FallbackOver"
"""New workers are for spot again; some that went to on-demand nodes are still there."""
SPOT_FOUND: Final = "SpotFound"
"""All workers have a place without the fallback again."""

# GraceSufficient
SAVE_FITS: Final = "SaveFits"
"""The save fits."""
SAVE_TOO_SLOW: Final = "SaveTooSlow"
"""A save takes longer than the grace: an announced reclaim loses what came since the last save."""

# WindowHolds
WINDOW_LASTS: Final = "WindowLasts"
"""They do again, or the spec counts on less now."""
WINDOW_TOO_SHORT: Final = "WindowTooShort"
"""Of the last 20 machines of a cloud three ended within the grace: set `spot.window` to what holds."""

# NoticesHeard
AGENTS_LISTEN: Final = "AgentsListen"
"""Each has one again."""
AGENT_MISSING: Final = "AgentMissing"
"""Some spot nodes of its workers have no armed agent; the message names them."""
NO_CLOUD: Final = "NoCloud"
"""The agents of some spot nodes of its workers know no cloud to hear notices from; the message names them."""
NOT_ON_SPOT: Final = "NotOnSpot"
"""What was missed is over: none of its workers runs on a spot node."""

# CheckpointsStored
STORED: Final = "Stored"
"""They are stored again."""
NOT_STORED: Final = "NotStored"
"""Something that should be stored is not; the message says why."""

# DeadlineFeasible
ON_TIME: Final = "OnTime"
"""There is time to spare, or the work was done in time."""
TOO_LATE: Final = "TooLate"
"""It will be late, or was, on on-demand nodes too; the message says by how much."""
WORK_UNKNOWN: Final = "WorkUnknown"
"""Nobody has told how much work is left; the message says what to do."""
NO_DEADLINE: Final = "NoDeadline"
"""The deadline was taken away."""

# Suspended
BY_SPEC: Final = "SuspendedBySpec"
"""By `suspend: true`."""
BY_QUEUE: Final = "SuspendedByQueue"
"""The queue (Kueue) has not admitted it."""
NOT_SUSPENDED: Final = "NotSuspended"
"""It may run."""

# Complete, Failed
ALL_WORKERS_FINISHED: Final = "AllWorkersFinished"
"""All workers of one attempt finished, or all indexes."""
TOO_MANY_FAILURES: Final = "TooManyFailures"
"""The program failed more than `maxFailures` times; the message has the last exit and the end of its log."""
# As the Job controller words them for an Indexed Job.
MAX_FAILED_INDEXES_EXCEEDED: Final = "MaxFailedIndexesExceeded"
"""More than `maxFailedIndexes` indexes failed."""
FAILED_INDEXES: Final = "FailedIndexes"
"""All indexes have ended, and those of `status.failedIndexes` failed."""
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
"""`activeDeadline` is over."""

# Events that have no condition of their own
ATTEMPT_STARTED: Final = "AttemptStarted"
"""A new attempt begins; the message has its cause."""
RECLAIMED: Final = "Reclaimed"
"""A worker was lost with its node or by eviction."""
WORKER_FAILED: Final = "WorkerFailed"
"""The program failed, and that was counted."""
GRACE_CAPPED: Final = "GraceCapped"
"""Workers get less grace than was asked for, because the window is shorter."""
NODE_LOST: Final = "NodeLost"
"""A node has fallen silent or is gone."""
NODE_AVOIDED: Final = "NodeAvoided"
"""The job failed twice on a node, and its next workers are kept off it."""
POOL_RESTS: Final = "PoolRests"
"""A spot pool has lost several machines: new workers prefer other places for a while."""
FORCE_DELETED: Final = "ForceDeleted"
"""A pod that did not end was deleted without waiting for its kubelet."""
SPEC_CHANGED: Final = "SpecChanged"
"""`template` or `workers` was edited: all save and begin anew."""
RECLAIM_HINT: Final = "ReclaimHint"
"""A node may be taken soon: a checkpoint is asked for, and nobody is stopped."""
TRAINS_ON: Final = "TrainsOn"
"""After a notice the gang trains on; the message says until when (`spot.keepTraining`)."""
PRICE_UNREADABLE: Final = "PriceUnreadable"
"""A Node's price is no number: its hours are reckoned without it."""

REASONS: Final[dict[str, dict[bool | None, tuple[str, ...]]]] = {
    ACCEPTED: {
        True: (VALID,),
        False: (
            INVALID_SPEC,
            TEMPLATE_REJECTED,
            NAME_CONFLICT,
            UNSUPPORTED_CLUSTER,
            CREATION_REFUSED,
            NAMESPACE_TERMINATING,
        ),
    },
    RUNNING: {
        True: (ALL_WORKERS_RUN, WORKERS_RUN),
        False: (
            NOT_STARTED,
            WAITING_FOR_WORKERS,
            WAITING_FOR_PREDECESSORS,
            CANNOT_START,
            CREATION_REFUSED,
            BACKING_OFF,
            RECLAIM_STORM,
            SPEC_REFUSED,
            ENDED,
        ),
        None: (CONTROL_PLANE_SUSPECT,),
    },
    FLOOR_MET: {
        True: (FLOOR_HELD, NO_FLOOR),
        False: (FLOOR_UNMET,),
        None: (WAITING_FOR_WORKERS, INVALID_SPEC),
    },
    SPOT_SUFFICIENT: {True: (SPOT_FOUND,), False: (FELL_BACK, FALLBACK_OVER)},
    GRACE_SUFFICIENT: {True: (SAVE_FITS,), False: (SAVE_TOO_SLOW,)},
    WINDOW_HOLDS: {True: (WINDOW_LASTS,), False: (WINDOW_TOO_SHORT,)},
    NOTICES_HEARD: {
        True: (AGENTS_LISTEN,),
        False: (AGENT_MISSING,),
        None: (NO_CLOUD, NOT_ON_SPOT),
    },
    CHECKPOINTS_STORED: {True: (STORED,), False: (NOT_STORED,)},
    DEADLINE_FEASIBLE: {
        True: (ON_TIME,),
        False: (TOO_LATE,),
        None: (WORK_UNKNOWN, NO_DEADLINE, ENDED),
    },
    SUSPENDED: {True: (BY_SPEC, BY_QUEUE), False: (NOT_SUSPENDED,)},
    COMPLETE: {True: (ALL_WORKERS_FINISHED,)},
    FAILED: {True: (TOO_MANY_FAILURES, MAX_FAILED_INDEXES_EXCEEDED, FAILED_INDEXES, DEADLINE_EXCEEDED)},
}
"""Condition → its status (None: Unknown) → the reasons for it."""

EVENTS: Final = {
    False: (
        ATTEMPT_STARTED,
        SPEC_CHANGED,
        RECLAIM_HINT,
        TRAINS_ON,
        POOL_RESTS,
        FALLBACK_OVER,
        SPOT_FOUND,
        ALL_WORKERS_FINISHED,
    ),
    True: (
        RECLAIMED,
        NODE_LOST,
        WORKER_FAILED,
        NODE_AVOIDED,
        FORCE_DELETED,
        GRACE_CAPPED,
        RECLAIM_STORM,
        FELL_BACK,
        FLOOR_UNMET,
        SAVE_TOO_SLOW,
        WINDOW_TOO_SHORT,
        AGENT_MISSING,
        NOT_STORED,
        TOO_LATE,
        PRICE_UNREADABLE,
        TOO_MANY_FAILURES,
        MAX_FAILED_INDEXES_EXCEEDED,
        FAILED_INDEXES,
        DEADLINE_EXCEEDED,
    ),
}
"""Whether an Event on the job is a warning → the reasons of such."""

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
