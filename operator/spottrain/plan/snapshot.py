"""What `decide` sees of one job: frozen views, taken at one moment from caches that are all synced."""

import collections.abc as cabc
import dataclasses
import datetime as dt

from spottrain.api import clouds
from spottrain.api import spec as specs
from spottrain.api import status as statuses


@dataclasses.dataclass(frozen=True)
class Settings:
    """The operator's settings that decisions depend on; durations are seconds.

    `node_loss`: how long a node may be NotReady before its workers are given up (also their toleration).
    `settlement`: how long after a member's failure a node's loss may still explain it; Kubernetes' own
    node-monitor-grace-period (50 s by default) and its period, one lease renewal, and some slack.
    `give_up`: how long past its grace a deleted pod may linger before it is force-deleted.
    `backoff` doubles with every failure in a row, up to `backoff_limit`.
    `broken_grace`: what survivors of a loss without notice get, whose collective is broken already.
    """

    node_loss: float = 5.0
    settlement: float = 75.0
    broken_grace: float = 10.0
    give_up: float = 30.0
    backoff: float = 10.0
    backoff_limit: float = 600.0
    spot_marks: tuple[clouds.Mark, ...] = ()
    on_demand_marks: tuple[clouds.Mark, ...] = ()


@dataclasses.dataclass(frozen=True)
class Words:
    """A worker's termination message, written by the library (`{"spottrain": 1, "state": …, "step": …}`)."""

    state: str
    step: int | None = None


@dataclasses.dataclass(frozen=True)
class Exit:
    """How a pod's containers ended: the first bad one's code and reason, and when the last one ended."""

    code: int
    reason: str
    finished: dt.datetime | None = None
    out_of_memory: bool = False


@dataclasses.dataclass(frozen=True)
class Pod:
    """A worker's pod. `deleting` is its deletionTimestamp (when the grace ends), `grace` that grace in s."""

    name: str
    uid: str
    index: int
    attempt: int
    attempt_id: str
    created: dt.datetime
    node: str = ""
    phase: str = "Pending"
    running: bool = False
    deleting: dt.datetime | None = None
    grace: float = 0.0
    disruption: str = ""
    reason: str = ""
    exit: Exit | None = None
    said: Words | None = None
    go: str = ""
    unschedulable: str = ""

    @property
    def ended(self) -> bool:
        """Its containers have ended for good."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def asked_to_stop(self) -> bool:
        """It was deleted or evicted before it ended. A notice for its node alone asks for nothing."""
        if self.disruption:
            return True
        if self.deleting is None:
            return False
        finished = self.exit.finished if self.exit else None
        return finished is None or self.deleting - dt.timedelta(seconds=self.grace) <= finished


@dataclasses.dataclass(frozen=True)
class Node:
    """A node. `ready_since` is when its Ready condition last changed; `notice` says who warns of its end."""

    name: str
    uid: str
    capacity: clouds.Capacity
    provider: str
    zone: str = ""
    ready: bool = True
    ready_since: dt.datetime | None = None
    unschedulable: bool = False
    notice: str = ""
    deadline: dt.datetime | None = None

    def lost(self, now: dt.datetime, patience: float) -> bool:
        """NotReady for `patience` seconds or longer."""
        if self.ready or self.ready_since is None:
            return False
        return (now - self.ready_since).total_seconds() >= patience


@dataclasses.dataclass(frozen=True)
class Job:
    """Our batch/v1 Job as it is in the cluster."""

    uid: str
    managed_by: str
    suspended: bool
    template_hash: str
    started: dt.datetime | None = None
    finished: bool = False
    queued: bool = False
    """Kueue decides on its `suspend`."""
    ours: bool = True
    """It is owned by this SpotTrainingJob."""
    counts: tuple[int, ...] = (0, 0, 0, 0, 0)
    """active, ready, terminating, succeeded, failed, as its status says."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The API server's own words for a create that it refused, and for which generation of the spec."""

    reason: str
    message: str
    generation: int
    permanent: bool


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """One job at one moment.

    `fresh_id` is the ID that the next attempt will have, should one start. `departed` are pods that are gone,
    as they were last seen, as far back as this process remembers: a help, never needed for safety.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    spec: specs.Spec | specs.InvalidSpecError
    status: statuses.Status
    job: Job | None
    pods: tuple[Pod, ...]
    nodes: cabc.Mapping[str, Node]
    now: dt.datetime
    fresh_id: str
    template_hash: str
    settings: Settings = Settings()
    refusal: Refusal | None = None
    departed: tuple[Pod, ...] = ()
    deleting: bool = False

    @property
    def valid_spec(self) -> specs.Spec:
        """The spec, past the policy that stops at an invalid one."""
        if isinstance(self.spec, specs.InvalidSpecError):
            raise self.spec
        return self.spec

    def node_lost(self, name: str) -> bool:
        """The node is gone or has been NotReady too long. An unbound pod's empty name is no lost node."""
        if not name:
            return False
        node = self.nodes.get(name)
        return node is None or node.lost(self.now, self.settings.node_loss)

    def node_leaving(self, name: str) -> bool:
        """The node is lost, under notice or cordoned: a worker's successor needs another place."""
        if not name:
            return False
        node = self.nodes.get(name)
        return node is None or bool(node.notice) or node.unschedulable or self.node_lost(name)

    @property
    def current(self) -> dict[int, Pod]:
        """The pods of the current attempt by index."""
        return {
            pod.index: pod
            for pod in self.pods
            if pod.attempt == self.status.attempt and pod.attempt_id == self.status.attempt_id
        }

    @property
    def older(self) -> tuple[Pod, ...]:
        """The pods of every attempt before the current one."""
        current = set(self.current.values())
        return tuple(pod for pod in self.pods if pod not in current)
