"""What `decide` sees of one job: frozen views, taken at one moment from caches that are all synced."""

import collections.abc as cabc
import dataclasses
import datetime as dt
import functools

from spottrain.api import allowed, clouds, fields, notices
from spottrain.api import prices as price
from spottrain.api import spec as specs
from spottrain.api import status as statuses
from spottrain.policy import deadline, hazard

MOST_LOST_TOGETHER = 2
STRANDED_AFTER = dt.timedelta(seconds=60)


@dataclasses.dataclass(frozen=True)
class Settings:
    """The operator's settings that decisions depend on; durations are seconds.

    `node_loss`: how long a node may be NotReady before its workers are given up (also their toleration).
    `settlement`: how long after a member's failure a node's loss may still explain it; Kubernetes' own
    node-monitor-grace-period (50 s by default) and its period, one lease renewal, and some slack.
    `give_up`: how long past its grace a deleted pod may linger before it is force-deleted.
    `backoff` doubles with every failure in a row, up to `backoff_limit`.
    `broken_grace`: what survivors of a loss without notice get, whose collective is broken already.
    `progress`: how often at most a job's progress goes into its status; 0: only jobs with a `progressTimeout`
    are asked for theirs.
    `agents`: notice agents are installed, so a spot node without one is worth a word.
    `helper_image`: of the containers beside a program that doesn't use the library; it holds ours.
    """

    node_loss: float = 5.0
    settlement: float = 75.0
    broken_grace: float = 10.0
    give_up: float = 30.0
    backoff: float = 10.0
    backoff_limit: float = 600.0
    progress: float = 30.0
    agents: bool = False
    helper_image: str = "docker.io/spottrain/operator:0.1.0"
    spot_marks: tuple[clouds.Mark, ...] = ()
    on_demand_marks: tuple[clouds.Mark, ...] = ()
    notice_marks: tuple[notices.Mark, ...] = notices.BUILT_IN


UNSAVED = "unsaved"
"""A sidecar's last word when the newest complete checkpoint is not in the store."""


@dataclasses.dataclass(frozen=True)
class Words:
    """A worker's termination message, written by the library (`{"spottrain": 1, "state": …, "step": …}`)."""

    state: str
    step: int | None = None
    saved_step: int | None = None
    save_seconds: float | None = None
    """None where it saved nothing in its life: `saved_step` is then what it began with."""
    saved_time: dt.datetime | None = None
    resumed_from: int | None = None

    @property
    def first(self) -> int | None:
        """The first step of its life."""
        return statuses.first_step(self.resumed_from, self.step)


FORGOTTEN = "ContainerStatusUnknown"
"""A kubelet's reason for the end of a container of which it knows nothing."""


@dataclasses.dataclass(frozen=True)
class Exit:
    """How the container that decides ended. `out_of_memory`: it failed, and some container was OOMKilled.

    `ran` is False where its kubelet was told to remove the pod before it had started that container.
    """

    code: int
    reason: str
    finished: dt.datetime | None = None
    out_of_memory: bool = False
    started: dt.datetime | None = None
    ran: bool = True


@dataclasses.dataclass(frozen=True)
class Pod:
    """A worker's pod. `deleting` is its deletionTimestamp (when the grace ends), `grace` that grace in s."""

    name: str
    uid: str
    index: int
    attempt: int
    attempt_id: str
    created: dt.datetime
    bound: dt.datetime | None = None
    node: str = ""
    ip: str = ""
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
    ask: clouds.Ask = clouds.Ask.SPOT
    """What it was made to run on."""
    pools: str = ""
    """Digest of the pools that it was made to run in."""
    version: str = dataclasses.field(default="", compare=False)
    """Of this state of it, as the API server counts."""
    waiting: str = ""
    """Why its kubelet can't start a container: a missing Secret, an image that can't be pulled."""
    stranded: dt.datetime | None = None
    """Since when a container of it that was made could not be started, because its machine went down."""
    save_asked: dt.datetime | None = None
    """The hint for which it has been asked for a checkpoint."""
    train_until: dt.datetime | None = None
    """Until when it is left to train, as it has been told."""
    tail: str = ""
    """The last lines of its log, read when it failed."""
    flushing: bool = False
    """Its main container has ended well, and what that saved last may still be on its way to the store."""
    first_asked: dt.datetime | None = None
    """When it was told to stop, as an earlier state of it had it: a kubelet's last DELETE, without grace,
    moves deletionTimestamp to its own moment, which is after the end."""
    stopped: dt.datetime | None = None
    """When the last of its containers ended."""
    left: dt.datetime | None = None
    """When it was seen to be gone."""

    @property
    def ended(self) -> bool:
        """All its containers have ended for good: it holds no place any more."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def outcome(self) -> str:
        """Succeeded or Failed once its main container has ended, though others may run on; empty before.

        A pod's own reason (`DeadlineExceeded`, `Terminated`) is its kubelet's: what exits 0 then was stopped.
        """
        if self.exit is None or self.phase == "Succeeded":
            return self.phase if self.ended else ""
        if self.flushing:
            return ""
        return "Failed" if self.exit.code or self.reason else "Succeeded"

    @property
    def asked_to_stop(self) -> bool:
        """It was deleted or evicted before it ended. A notice for its node alone asks for nothing."""
        if self.disruption:
            return True
        if self.asked is None:
            return False
        finished = self.exit.finished if self.exit else None
        return finished is None or self.asked <= finished

    @property
    def asked(self) -> dt.datetime | None:
        """When it was told to stop; None if it wasn't."""
        if self.deleting is None:
            return None
        moment = self.deleting - dt.timedelta(seconds=self.grace)
        return moment if self.first_asked is None else min(moment, self.first_asked)


@dataclasses.dataclass(frozen=True)
class Pool:
    """Machines that a cloud gives and takes alike. Empty parts are not known."""

    capacity: clouds.Capacity
    zone: str
    instance_type: str

    @property
    def named(self) -> bool:
        """It can be told from others by the labels of its nodes."""
        return bool(self.zone or self.instance_type)

    @property
    def key(self) -> str:
        """As the records of pools name it."""
        return f"{self.capacity}/{self.zone}/{self.instance_type}"

    def __str__(self) -> str:
        """For people."""
        return " ".join(part for part in (self.capacity, self.instance_type, self.zone) if part)


@dataclasses.dataclass(frozen=True)
class Loss:
    """A machine of a pool was taken away, from whichever job."""

    pool: Pool
    node: str
    time: dt.datetime


@dataclasses.dataclass(frozen=True)
class Window:
    """How many seconds a machine lasted after its notice; `cut_off`: a worker was still at work on it."""

    provider: str
    seconds: float
    cut_off: bool


@dataclasses.dataclass(frozen=True)
class Node:
    """A node. `ready_since` is when its Ready condition last changed; `notice` says who warns of its end.

    `watched`: it carries workers, so its lease is read; `silent`: the lease has not changed for too long, on
    our own clock and only while our reads went well. `hint`: when it was said that it may be taken soon;
    `noticed`: when the notice came, where it says so.
    """

    name: str
    uid: str
    capacity: clouds.Capacity
    provider: str
    created: dt.datetime | None = None
    zone: str = ""
    instance_type: str = ""
    watched: bool = False
    silent: bool = False
    doubtful: bool = False
    """After an outage of the API its lease has not been watched for long enough: that it is NotReady may only
    mean that its kubelet could not say otherwise."""
    ready: bool = True
    ready_since: dt.datetime | None = None
    unschedulable: bool = False
    notice: str = ""
    deadline: dt.datetime | None = None
    listens: str = ""
    """What its notice agent said last of itself (`Armed`, `Blind`, …); empty: it has none."""
    listened: dt.datetime | None = dataclasses.field(default=None, compare=False)
    """When that was. It is said anew every few minutes, which is no change to decide on."""
    noticed: dt.datetime | None = None
    hint: dt.datetime | None = None
    rate: price.Rate | None = None
    """What a worker on it costs, by its own marks."""
    rate_problem: str = ""
    """What is wrong with those marks, and what to write."""

    @property
    def pool(self) -> Pool:
        """Where it comes from."""
        return Pool(self.capacity, self.zone, self.instance_type)

    def unheard(self, now: dt.datetime, patience: float) -> bool:
        """Silent, or NotReady for `patience` seconds or longer."""
        if self.silent:
            return True
        if self.ready or self.ready_since is None or self.doubtful:
            return False
        return (now - self.ready_since).total_seconds() >= patience


@dataclasses.dataclass(frozen=True)
class Job:
    """Our batch/v1 Job as it is in the cluster."""

    uid: str
    managed_by: str
    suspended: bool
    template_hash: str
    workers: int = 0
    parallelism: int = 0
    started: dt.datetime | None = None
    finished: bool = False
    queued: bool = False
    """Kueue decides on its `suspend`."""
    ours: bool = True
    """It is owned by this SpotTrainingJob."""
    counts: tuple[int, ...] = (0, 0, 0, 0, 0)
    """active, ready, terminating, succeeded, failed, as its status says."""


@dataclasses.dataclass(frozen=True)
class Stop:
    """What a stop would take until its save is committed, as the worker measured it, and its grace in s."""

    seconds: float
    grace: float
    fits: bool


@dataclasses.dataclass(frozen=True)
class Report:
    """What worker 0 told of itself at `time`, for the status; the same until the next one is due."""

    step: int | None
    time: dt.datetime
    total: int | None = None
    per_second: float | None = None
    saved: statuses.Checkpoint | None = None
    stop: Stop | None = None
    problem: str = ""
    """Why the sidecar doesn't store the newest checkpoint; empty if it does, or if there is none."""
    began: dt.datetime | None = None
    """When it had restored and went on training, in this life."""
    resumed_from: int | None = None
    """The step of the checkpoint that it went on from."""

    @property
    def first(self) -> int | None:
        """The first step of this life."""
        return statuses.first_step(self.resumed_from, self.step, began=self.began is not None)


@dataclasses.dataclass(frozen=True)
class Progress:
    """What worker 0 of an attempt says of itself.

    `still` is how many seconds the first and the last answer with this step lie apart; `problem` says why the
    last try came to nothing.
    """

    attempt_id: str
    step: int | None
    still: float
    problem: str = ""
    report: Report | None = None


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
    tried: str = ""
    """The template's digest that the API server would take, when it was last asked."""
    departed: tuple[Pod, ...] = ()
    losses: tuple[Loss, ...] = ()
    """Machines that were lately taken from any job, as far back as this process remembers: a help as well."""
    windows: tuple[Window, ...] = ()
    """What machines of each cloud lately had between notice and end: a help as well."""
    known: cabc.Mapping[Pool, hazard.Record] = dataclasses.field(default_factory=dict)
    """What has been learnt of pools, from all jobs: a help too."""
    prices: price.Table = price.NO_PRICES
    """Of workers by capacity, instance type and zone, for jobs that name none."""
    gone_nodes: cabc.Mapping[str, Node] = dataclasses.field(default_factory=dict)
    """What the machines of its pods were that are gone, as far as this process remembers."""
    plan: deadline.Plan | None = None
    """What to do until the job's deadline; None where there is none, or it isn't solved yet."""
    progress: Progress | None = None
    """Of a gang whose first worker is asked for it, and answers."""
    leftover: tuple[Pod, ...] = ()
    """Pods under our labels that have not ended and were made by another Job: one that is deleted."""
    deleting: bool = False
    lacking: frozenset[str] = frozenset()
    """Fields that the API server drops, where its resource is older than this version."""

    def is_news(self, new: statuses.Status) -> bool:
        """It says something that the stored status doesn't, and that the API server would keep.

        The intent to begin an attempt is news whatever is kept: what isn't stored must not pass for it.
        """
        if new.attempt_id != self.status.attempt_id:
            return True
        return self._as_kept(new) != self._stored

    @functools.cached_property
    def _stored(self) -> object:
        """The status that there is; asked for several times in a pass."""
        return self._as_kept(self.status)

    def _as_kept(self, one: statuses.Status) -> object:
        return fields.kept(statuses.render(one), "status", self.lacking)

    @property
    def valid_spec(self) -> specs.Spec:
        """The spec, past the policy that stops at an invalid one."""
        if isinstance(self.spec, specs.InvalidSpecError):
            raise self.spec
        return self.spec

    @property
    def independent(self) -> bool:
        """Each index runs by itself; known of a job that was begun although its spec can't be read."""
        if isinstance(self.spec, specs.InvalidSpecError):
            return self.status.shards is not None
        return self.spec.independent

    @property
    def refused(self) -> str:
        """Why no worker can be made until the spec is mended, in a sentence; empty where one can."""
        if isinstance(self.spec, specs.InvalidSpecError):
            return str(self.spec)
        refusal = self.refusal
        if refusal is None or not refusal.permanent or refusal.generation != self.generation:
            return ""
        return refusal.message or refusal.reason

    @property
    def edited(self) -> bool:
        """The Job that there is was made from another template or size than the spec's."""
        return self.job is not None and self.job.template_hash != self.template_hash

    @property
    def workers(self) -> int:
        """The size of the gang that there is; an edit of it counts once there is a Job of that size."""
        if self.job is not None and self.job.ours and self.edited and self.job.workers:
            return self.job.workers
        known = self.status.workers
        if isinstance(self.spec, specs.InvalidSpecError):
            return known.indexes or known.desired
        return self.spec.workers

    @property
    def pools(self) -> allowed.Entries:
        """Where on spot workers may run; none: in every pool."""
        return () if isinstance(self.spec, specs.InvalidSpecError) else self.spec.spot.pools

    def weight(self, pool: Pool) -> int:
        """What the pool is worth to the user; 0: no worker is to run there."""
        return allowed.weight(self.pools, pool.zone, pool.instance_type)

    @property
    def providers(self) -> frozenset[str]:
        """Of the nodes that there are."""
        return frozenset(node.provider for node in self.nodes.values())

    def offers(self, pool: Pool) -> bool:
        """It is a spot pool that can be told from others, and workers may run there."""
        return pool.capacity is clouds.Capacity.SPOT and pool.named and self.weight(pool) > 0

    @property
    def max_failures(self) -> int | None:
        """How many failures are allowed; None while the spec can't be read: nothing is decided on it then."""
        return None if isinstance(self.spec, specs.InvalidSpecError) else self.spec.max_failures

    @property
    def placement_timeout(self) -> float:
        """Seconds that a gang may hold nodes and not be whole; the default while the spec can't be read."""
        if isinstance(self.spec, specs.InvalidSpecError):
            return specs.Spec.placement_timeout
        return self.spec.placement_timeout

    @functools.cached_property
    def suspicion(self) -> str:
        """Why the control plane itself is suspect, in a sentence; empty if it isn't.

        More than two of the nodes that carry workers unheard at once, and a third of them or all of a zone:
        that looks like a fault of the control plane, and deleting would make an outage of it.
        """
        ours = [node for node in self.nodes.values() if node.watched]
        unheard = [one for one in ours if one.unheard(self.now, self.settings.node_loss)]
        zones = {one.zone for one in unheard}
        whole_zone = any(all(one in unheard for one in ours if one.zone == zone) for zone in zones)
        if len(unheard) <= MOST_LOST_TOGETHER or not (len(unheard) * 3 >= len(ours) or whole_zone):
            return ""
        return (
            f"{len(unheard)} of {len(ours)} nodes that carry workers are silent at once: waiting for "
            "Kubernetes' own verdict before anything is given up"
        )

    def capacity_of(self, pod: Pod) -> clouds.Capacity:
        """What the pod's node is bought as."""
        node = self.nodes.get(pod.node)
        return node.capacity if node else clouds.Capacity.UNKNOWN

    def machine(self, pod: Pod) -> Node | None:
        """The pod's node, or what it was."""
        return self.nodes.get(pod.node) or self.gone_nodes.get(pod.node)

    def lost(self, pod: Pod) -> bool:
        """The pod's machine is gone, or unheard of for too long and not under suspicion of being well."""
        if not pod.node:
            return False
        node = self.nodes.get(pod.node)
        if node is None or self.replaced(pod):
            return True
        if not node.unheard(self.now, self.settings.node_loss):
            return False
        return bool(pod.disruption) or not self.suspicion

    def shunned(self, name: str) -> bool:
        """The node takes no new worker: it is under notice, or unheard of (Kubernetes may call it Ready)."""
        node = self.nodes[name]
        unheard = node.unheard(self.now, self.settings.node_loss)
        return bool(node.notice) or (unheard and not self.suspicion)

    def replaced(self, pod: Pod) -> bool:
        """Another machine has taken the node's name since the pod was bound to it."""
        node = self.nodes.get(pod.node)
        if node is None or node.created is None or pod.bound is None:
            return False
        return node.created > pod.bound

    def stranded(self, pod: Pod) -> bool:
        """Its kubelet will never start it; one that is only about to gets a minute."""
        return pod.stranded is not None and self.now >= pod.stranded + STRANDED_AFTER

    def leaving(self, pod: Pod) -> bool:
        """The pod's node is lost, under notice or cordoned: its successor needs another place."""
        if not pod.node:
            return False
        node = self.nodes.get(pod.node)
        return node is None or bool(node.notice) or node.unschedulable or self.lost(pod)

    @property
    def hours(self) -> float:
        """The moment, as what is learnt of pools counts it: hours since 1970."""
        return self.now.timestamp() / 3600

    @functools.cached_property
    def current(self) -> dict[int, Pod]:
        """The pods of the current attempt by index."""
        return {
            pod.index: pod
            for pod in self.pods
            if pod.attempt == self.status.attempt and pod.attempt_id == self.status.attempt_id
        }

    @functools.cached_property
    def older(self) -> tuple[Pod, ...]:
        """The pods of every attempt before the current one."""
        current = {id(pod) for pod in self.current.values()}
        return tuple(pod for pod in self.pods if id(pod) not in current)
