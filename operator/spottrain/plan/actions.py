"""What a plan may ask for. Rendering and sending are others' business."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, status
from spottrain.plan import snapshot as snap


@dataclasses.dataclass(frozen=True)
class EnsureService:
    """The headless Service that gives workers their DNS names exists."""


@dataclasses.dataclass(frozen=True)
class CreateJob:
    """Create our Job, suspended, so that `managedBy` can be read back before anything runs."""


@dataclasses.dataclass(frozen=True)
class DeleteJob:
    """Delete our Job by UID; its pods follow by garbage collection."""

    uid: str


@dataclasses.dataclass(frozen=True)
class SuspendJob:
    """Set the Job's `suspend`."""

    suspend: bool


@dataclasses.dataclass(frozen=True)
class ScaleJob:
    """Set the Job's `parallelism`: an Independent job's may be edited while it runs."""

    parallelism: int


@dataclasses.dataclass(frozen=True)
class ReportJob:
    """Write the Job's status. `outcome` is None, Complete or Failed; `reason` says why it failed.

    `indexes` are the completed and the failed ones of an Independent job; None for a gang, which has none
    before it is complete.
    """

    active: int
    ready: int
    terminating: int
    succeeded: int
    failed: int
    started: bool = True
    outcome: str | None = None
    message: str = ""
    reason: str = conditions.TOO_MANY_FAILURES
    indexes: tuple[str, str] | None = None


@dataclasses.dataclass(frozen=True)
class Overlay:
    """What a pod gets on top of the live Job's template, known when it is made. `grace` is in seconds.

    `avoid` are nodes that it must not run on, `resting` pools where it would rather not, `preferred` those
    where it had best be, the best one first. `home` is the zone in which a gang keeps together, where that is
    known; `providers` are those of the nodes that there are.
    """

    index: int
    attempt: int
    attempt_id: str
    ask: clouds.Ask
    grace: int
    avoid: tuple[str, ...] = ()
    resting: tuple[snap.Pool, ...] = ()
    preferred: tuple[snap.Pool, ...] = ()
    home: str = ""
    providers: frozenset[str] = frozenset()
    go: bool = False


@dataclasses.dataclass(frozen=True)
class TryJob:
    """Ask the API server whether it would take the Job of the edited spec, without making it."""


@dataclasses.dataclass(frozen=True)
class CreatePod:
    """Create one worker."""

    overlay: Overlay


@dataclasses.dataclass(frozen=True)
class DeletePod:
    """Delete one worker by name and UID. `grace` in seconds, None for its own, 0 to force.

    `version`: only if it is still as it was seen; empty: however it is.
    """

    name: str
    uid: str
    grace: int | None = None
    version: str = ""


@dataclasses.dataclass(frozen=True)
class SayGo:
    """Tell a worker that every worker of the attempt before has ended."""

    name: str
    attempt_id: str


@dataclasses.dataclass(frozen=True)
class TrainUntil:
    """Say on a pod until when it is left to train, for whoever would stop it in the operator's place."""

    name: str
    moment: dt.datetime


@dataclasses.dataclass(frozen=True)
class AskToSave:
    """Ask a worker for a checkpoint because of a hint that came at that moment; nobody is stopped."""

    name: str
    moment: dt.datetime


@dataclasses.dataclass(frozen=True)
class DeleteSelf:
    """The job's time to live is over: delete the SpotTrainingJob."""


Action = (
    EnsureService
    | CreateJob
    | DeleteJob
    | SuspendJob
    | ScaleJob
    | TryJob
    | ReportJob
    | CreatePod
    | DeletePod
    | SayGo
    | AskToSave
    | TrainUntil
    | DeleteSelf
)


@dataclasses.dataclass(frozen=True)
class Event:
    """A Kubernetes Event on the SpotTrainingJob, sent once the status write has succeeded."""

    reason: str
    message: str
    warning: bool = False
    with_status: bool = False
    """What it tells of is known by the status alone: it is found anew in every pass until that is written."""


Reclaims = tuple[status.Reclaim, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """One pass's outcome: the whole status, then the acts, then the events.

    `wake` is how many seconds from now the job must be looked at again although nothing changed. `reclaims`
    are those that the status counts from this pass on. `slack`: seconds to spare until the job's deadline.
    """

    status: status.Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake: float | None = None
    reclaims: Reclaims = ()
    slack: float | None = None

    def unwritten(self) -> "Plan":
        """As it is carried out while its status waits to be written."""
        return dataclasses.replace(self, events=tuple(one for one in self.events if not one.with_status))

    @property
    def makes_pods(self) -> bool:
        """It creates workers."""
        return any(isinstance(one, CreatePod) for one in self.actions)
