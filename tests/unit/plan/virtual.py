"""A cluster in virtual time for stories about `decide`: it carries plans out as the API server would.

It refuses what the real one refuses (a second pod of a name, a status whose attempt goes down), and it checks
after every pass that deciding again changes nothing once all acts are done.
"""

import collections
import dataclasses
import datetime as dt
from typing import Any, cast

from spottrain.api import allowed, clouds, conditions, fields, names, prices, spec, status
from spottrain.plan import actions, decide
from spottrain.plan import snapshot as snap
from spottrain.policy import deadline, hazard

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MOST_PASSES = 50


def wishes(**changes: object) -> spec.Spec:
    """A gang of three with a floor of none."""
    base = spec.Spec(
        workers=3,
        template={"spec": {"containers": [{"name": "trainer", "image": "i"}]}},
        checkpoint=spec.Checkpoint(uri="s3://ck/tr"),
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def shards(**changes: object) -> spec.Spec:
    """Three indexes that run by themselves."""
    base = {"mode": spec.Mode.INDEPENDENT, "max_failures": None, "spot": spec.Spot(spread=spec.Spread.ZONE)}
    return wishes(**{**base, **changes})


class Cluster:
    """One job, its pods and the nodes, with a clock that moves only when told."""

    def __init__(self, job: spec.Spec | None = None, settings: snap.Settings | None = None) -> None:
        self.spec: spec.Spec | spec.InvalidSpecError = job or wishes()
        self.settings = settings or snap.Settings()
        self.status = status.Status()
        self.generation = 1
        self.server_says_no = ""
        """The API server's words for every pod that it is asked to make, if it refuses them for good."""
        self.refusal: snap.Refusal | None = None
        self.tried = ""
        self.server_gives_no_answer = False
        """To trials: a webhook that can't be called."""
        self.job: snap.Job | None = None
        self.pods: dict[str, snap.Pod] = {}
        self.departed: list[snap.Pod] = []
        self.nodes: dict[str, snap.Node] = {}
        self.overlays: dict[str, actions.Overlay] = {}
        self.now = EPOCH
        self.events: list[actions.Event] = []
        self.done: list[actions.Action] = []
        self.wake: float | None = None
        self.progress: snap.Progress | None = None
        self.losses: tuple[snap.Loss, ...] = ()
        self.windows: tuple[snap.Window, ...] = ()
        self.known: dict[snap.Pool, hazard.Record] = {}
        self.prices = prices.Table()
        self.plan: deadline.Plan | None = None
        self.lacking: frozenset[str] = frozenset()
        """Fields that the resource is too old for: the API server drops them."""
        self.words_wait = False
        """What decides nothing is not written into the status."""
        self.deleted = False
        self.succeeded: set[int] = set()
        """The indexes of which a pod ended with 0."""
        self.crashed: collections.Counter[int] = collections.Counter()
        """How often the program of each index ended badly unasked."""
        self.placed: set[tuple[str, str]] = set()
        """Name and attempt ID of every pod that was ever given a node."""
        self.drawn: set[tuple[int, str]] = set()
        """Every index and attempt ID that a pod was made for."""
        self.quota: int | None = None
        """The most pods that may exist, ended or not."""
        self._serial = 0
        self.id_prefix = "id"
        for name in ("n1", "n2", "n3", "n4", "n5"):
            self.nodes[name] = snap.Node(name, f"u-{name}", clouds.Capacity.SPOT, "other", ready_since=EPOCH)
        self.nodes["od"] = snap.Node("od", "u-od", clouds.Capacity.ON_DEMAND, "other", ready_since=EPOCH)

    # What the operator does.

    def snapshot(self) -> snap.Snapshot:
        return snap.Snapshot(
            namespace="t",
            name="tr",
            uid="u",
            generation=self.generation,
            spec=self.spec,
            status=self.status,
            job=self.job,
            pods=tuple(self.pods.values()),
            departed=tuple(self.departed),
            nodes={name: self._seen(node) for name, node in self.nodes.items()},
            now=self.now,
            fresh_id=f"{self.id_prefix}{self._serial}",
            template_hash=str(hash(str(self.spec.template) + str(self.spec.workers)))
            if isinstance(self.spec, spec.Spec)
            else "",
            settings=self.settings,
            refusal=self.refusal,
            tried=self.tried,
            losses=self.losses,
            windows=self.windows,
            known=self.known,
            plan=self.plan,
            progress=self.progress,
            prices=self.prices,
            lacking=self.lacking,
        )

    def _seen(self, node: snap.Node) -> snap.Node:
        """The nodes that carry workers are watched."""
        carries = any(pod.node == node.name and not pod.ended for pod in self.pods.values())
        return dataclasses.replace(node, watched=carries)

    def step(self) -> actions.Plan:
        """One pass."""
        before = self.status
        snapshot = self.snapshot()
        plan = decide.decide(snapshot)
        self._serial += 1
        makes = any(isinstance(one, actions.CreateJob | actions.CreatePod) for one in plan.actions)
        assert not (makes and snapshot.refused), "something is made of a spec that is refused"
        assert plan.status.attempt >= before.attempt, "an attempt went down"
        assert plan.status.attempt <= before.attempt + 1, "attempts were skipped"
        _says_declared_words(plan)
        # The real thing loses fractions of a second on the way through the API server; so do we.
        if self.words_wait and plan.status.decides_as(before):
            plan = plan.unwritten()
        else:
            written = fields.kept(status.render(plan.status), "status", self.lacking)
            self.status = status.parse(cast("dict[str, Any]", written))
        if self.refusal is not None and self.refusal.generation != self.generation:
            self.refusal = None
        if self.refusal is not None and not self.refusal.permanent:
            self.refusal = None  # said again if it still holds
        self.wake = plan.wake
        for action in plan.actions:
            self._carry_out(action)
        if self.refusal is not None and not self.refusal.permanent:
            self.wake = min(self.wake or 60.0, 60.0)  # the queue's own pause
        self.events += plan.events
        self.done += plan.actions
        return plan

    def settle(self) -> None:
        """Passes until nothing is left to do."""
        for _ in range(MOST_PASSES):
            before = self.status
            plan = self.step()
            if self.status == before and not self._did_anything(plan):
                return
        raise AssertionError(f"still busy after {MOST_PASSES} passes: {plan}")

    def _did_anything(self, plan: actions.Plan) -> bool:
        in_vain = self.server_gives_no_answer
        full = self.refusal is not None and not self.refusal.permanent
        return any(
            not (in_vain and isinstance(one, actions.TryJob))
            and not (full and isinstance(one, actions.CreatePod))
            for one in plan.actions
        )

    def _carry_out(self, action: actions.Action) -> None:  # noqa: C901, PLR0912 - one per kind
        match action:
            case actions.CreateJob():
                assert self.job is None, "a second Job"
                template = self.snapshot().template_hash
                workers = self.spec.workers if isinstance(self.spec, spec.Spec) else 0
                at_once = self.spec.at_once if isinstance(self.spec, spec.Spec) else 0
                self.job = snap.Job(
                    f"j{self._serial}", names.MANAGED_BY, True, template, workers, parallelism=at_once
                )
            case actions.DeleteJob():
                self.delete_job()  # only the pods of the live Job count
            case actions.TryJob():
                self._try_job()
            case actions.SuspendJob(suspend):
                assert self.job is not None
                self.job = dataclasses.replace(self.job, suspended=suspend)
            case actions.ScaleJob(parallelism):
                assert self.job is not None
                self.job = dataclasses.replace(self.job, parallelism=parallelism)
            case actions.ReportJob():
                self._report(action)
            case actions.CreatePod(overlay):
                self._create(overlay)
            case actions.DeletePod(name, uid, grace):
                self._delete(name, uid, grace)
            case actions.SayGo(name, attempt_id):
                self._change(name, go=attempt_id)
            case actions.AskToSave(name, moment):
                self._change(name, save_asked=moment)
            case actions.TrainUntil(name, moment):
                self._change(name, train_until=moment)
            case actions.DeleteSelf():
                self.deleted = True
            case actions.EnsureService():
                assert not self.snapshot().independent, "a Service that nobody needs"

    def _try_job(self) -> None:
        assert self.tried != self.snapshot().template_hash, "asked again"
        if self.server_gives_no_answer:
            self.wake = min(self.wake or 10.0, 10.0)
            return
        if self.server_says_no:
            words = self.server_says_no
            self.refusal = snap.Refusal(conditions.TEMPLATE_REJECTED, words, self.generation, permanent=True)
            return
        self.tried = self.snapshot().template_hash

    def _report(self, report: actions.ReportJob) -> None:
        assert self.job is not None
        assert self.job.suspended != report.started, "a Job has a start time unless it is suspended"
        if report.outcome:
            assert report.active == report.terminating == report.ready == 0
            assert all(pod.ended for pod in self.pods.values()), "the Job ended before its pods"
        assert report.ready <= report.active
        assert report.failed >= self.job.counts[4], "the failed counter went down"
        self.job = dataclasses.replace(
            self.job,
            started=(self.job.started or self.now) if report.started else None,
            finished=report.outcome is not None,
            counts=(report.active, report.ready, report.terminating, report.succeeded, report.failed),
        )

    def _create(self, overlay: actions.Overlay) -> None:
        name = names.pod_name("tr", overlay.index, overlay.attempt)
        if self.server_says_no:
            words = self.server_says_no
            self.refusal = snap.Refusal(conditions.TEMPLATE_REJECTED, words, self.generation, permanent=True)
            return
        if self.quota is not None and len(self.pods) >= self.quota:
            self.refusal = snap.Refusal(
                conditions.CREATION_REFUSED, "exceeded quota", self.generation, permanent=False
            )
            return
        assert name not in self.pods, f"{name} was created twice"
        assert (name, overlay.attempt_id) not in self.placed, f"{name} may have a twin that lives on"
        if self.status.shards is not None:
            assert (overlay.index, overlay.attempt_id) not in self.drawn, "an attempt ID was used again"
            self.drawn.add((overlay.index, overlay.attempt_id))
            assert overlay.index not in self.status.shards.decided, f"{name} had ended for good"
        living = [pod for pod in self.pods.values() if pod.index == overlay.index and not pod.ended]
        leaving = self.snapshot().leaving
        assert all(leaving(pod) for pod in living), f"{name} was created beside its predecessor"
        self.overlays[name] = overlay
        self.pods[name] = snap.Pod(
            name=name,
            uid=f"p{len(self.overlays)}-{self._serial}",
            index=overlay.index,
            attempt=overlay.attempt,
            attempt_id=overlay.attempt_id,
            created=self.now,
            grace=float(overlay.grace),
            go=overlay.attempt_id if overlay.go else "",
            ask=overlay.ask,
            pools=self._digest(overlay.ask),
        )

    def _digest(self, ask: clouds.Ask) -> str:
        """Of the pools that the pod is rendered with."""
        return "" if ask is clouds.Ask.ON_DEMAND else allowed.digest(self.snapshot().pools)

    def _delete(self, name: str, uid: str, grace: int | None) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.uid != uid:
            return
        if not pod.node:
            self._change(name, deleting=self.now, grace=0.0)
        if grace == 0 or pod.ended or not pod.node:
            self.remove(name)
            return
        seconds = pod.grace if grace is None else float(grace)
        if pod.deleting is None:
            self._change(name, deleting=self.now + dt.timedelta(seconds=seconds), grace=seconds)

    # What everybody else does.

    def _change(self, name: str, **changes: object) -> None:
        self.pods[name] = dataclasses.replace(self.pods[name], **changes)  # type: ignore[arg-type]

    def remove(self, name: str) -> None:
        """The pod object goes."""
        self.departed.append(dataclasses.replace(self.pods.pop(name), left=self.now))

    def bind(self, name: str, node: str) -> None:
        self.placed.add((name, self.pods[name].attempt_id))
        self._change(name, node=node, unschedulable="")

    def bound_at(self, name: str, moment: dt.datetime) -> None:
        """When the scheduler bound it, as its condition says."""
        self._change(name, bound=moment)

    def find_no_node(self, name: str) -> None:
        """The scheduler says so."""
        self._change(name, unschedulable="no node fits")

    def run(self, name: str) -> None:
        self._change(name, phase="Running", running=True, ip="10.0.0.1")

    def run_all(self) -> None:
        """Every pending pod that finds a node where it was asked to run is bound and runs."""
        for pod in list(self.pods.values()):
            if pod.phase == "Pending" and pod.deleting is None:
                free = self._places(self.overlays[pod.name])
                if free:
                    self.bind(pod.name, free[pod.index % len(free)])
                    self.run(pod.name)
                else:
                    self.find_no_node(pod.name)

    def _places(self, overlay: actions.Overlay) -> list[str]:
        """Names of the nodes for it: spot ones as long as there are any, unless it must not run there."""
        there = [name for name in self.nodes if self._usable(name) and name not in overlay.avoid]
        usable = [self.nodes[name] for name in there]
        spot = [one.name for one in usable if one.capacity is clouds.Capacity.SPOT]
        bought = [one.name for one in usable if one.capacity.fills_floor]
        match overlay.ask:
            case clouds.Ask.ONLY_SPOT:
                return spot
            case clouds.Ask.SPOT:
                return spot or bought
            case clouds.Ask.ON_DEMAND:
                return bought

    def _usable(self, name: str) -> bool:
        node = self.nodes[name]
        return node.ready and not node.notice and not node.unschedulable

    def end(self, name: str, code: int, reason: str = "", said: snap.Words | None = None) -> None:
        """Its containers end; a pod under deletion goes with them, as with a kubelet."""
        text = reason or ("Completed" if code == 0 else "Error")
        self._tell(name, code)
        self._change(
            name,
            phase="Succeeded" if code == 0 else "Failed",
            running=False,
            exit=snap.Exit(code, text, self.now, reason == "OOMKilled"),
            said=said,
        )
        if self.pods[name].deleting is not None:
            self.remove(name)

    def forget(self, name: str, *, ran: bool) -> None:
        """Its kubelet removes the deleted pod, and knows nothing of its container: started or not."""
        end = snap.Exit(137, snap.FORGOTTEN, ran=ran)
        self._change(name, phase="Failed", running=False, exit=end)
        self.remove(name)

    def fail_on(self, name: str, node: str) -> None:
        """It is given that node, runs there and fails."""
        self.bind(name, node)
        self.run(name)
        self.settle()
        self.end(name, 1)
        self.settle()

    def cannot_start(self, name: str, words: str) -> None:
        """Its kubelet tries in vain to start a container."""
        self._change(name, waiting=words)

    def strand(self, name: str) -> None:
        """Its machine went down and came back between making and starting its container."""
        self._change(name, stranded=self.now)

    def _tell(self, name: str, code: int) -> None:
        """Note what a program did, whatever is made of it."""
        pod = self.pods[name]
        if code == 0:
            self.succeeded.add(pod.index)
        elif not pod.asked_to_stop:
            self.crashed[pod.index] += 1

    def finish_main(self, name: str, code: int) -> None:
        """Its main container ends, and a mesh's proxy beside it runs on."""
        self._tell(name, code)
        self._change(
            name, running=False, exit=snap.Exit(code, "Completed" if code == 0 else "Error", self.now)
        )

    def evict(self, name: str, reason: str = "EvictionByEvictionAPI") -> None:
        """The Eviction API, or another disruption. A pod without a node is gone at once."""
        if not self.pods[name].node:
            self.delete(name)
            return
        self._change(name, disruption=reason)
        if self.pods[name].deleting is None:
            self._change(name, deleting=self.now + dt.timedelta(seconds=self.pods[name].grace))

    def delete(self, name: str) -> None:
        """A plain DELETE by somebody."""
        self._delete(name, self.pods[name].uid, None)

    def edit(self, wished: spec.Spec | spec.InvalidSpecError) -> None:
        """The user applies another spec."""
        self.spec = wished
        self.generation += 1

    def change_node(self, name: str, **changes: object) -> None:
        self.nodes[name] = dataclasses.replace(self.nodes[name], **changes)  # type: ignore[arg-type]

    def silence(self, name: str) -> None:
        """Kubernetes says NotReady."""
        self.change_node(name, ready=False, ready_since=self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)

    # What stories ask.

    def names_of(self, attempt: int) -> list[str]:
        return sorted(pod.name for pod in self.pods.values() if pod.attempt == attempt)

    def pod(self, index: int) -> snap.Pod:
        """The pod of that index in the current attempt."""
        if self.status.shards is not None:
            return self.pods[names.pod_name("tr", index, self.status.shards.attempt(index))]
        return self.snapshot().current[index]

    def live(self) -> list[str]:
        """Names of the pods that have not ended and are not told to stop."""
        return sorted(pod.name for pod in self.pods.values() if not pod.ended and pod.deleting is None)

    def delete_job(self) -> None:
        """Somebody deletes our Job, and garbage collection its pods."""
        self.job = None
        self.departed.clear()
        self.pods.clear()

    def running(self) -> "Cluster":
        """Up to an attempt whose workers all run."""
        self.settle()
        self.run_all()
        self.settle()
        assert self.status.phase is status.Phase.RUNNING
        return self

    def recovered(self) -> "Cluster":
        """Old workers end as asked, and the new attempt's all run."""
        for _ in range(3):
            self.settle()
            for pod in list(self.pods.values()):
                if pod.deleting is not None and self._usable_or_gone(pod):
                    self.end(pod.name, 143)
            self.settle()
            self.run_all()
        self.settle()
        return self

    def _usable_or_gone(self, pod: snap.Pod) -> bool:
        node = self.nodes.get(pod.node)
        return node is not None and node.ready


def _says_declared_words(plan: actions.Plan) -> None:
    """What docs/reference.md is made of is all that is ever said."""
    for one in plan.status.conditions:
        declared = conditions.REASONS[one.type].get(one.status, ())
        assert one.reason in declared, f"{one.type} is {one.status} for {one.reason}: add it to REASONS"
    for event in plan.events:
        declared = conditions.EVENTS[event.warning]
        assert event.reason in declared, f"an Event says {event.reason}: add it to EVENTS"
