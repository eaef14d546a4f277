"""Carries faults out on the lab, and ends them. One at a time, in the order of the schedule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chaos.facts import OVER, Window
from chaos.faults import Fault, Kind
from chaos.schedule import Act
from chaos.seen import JOBS
from demo import clock
from demo.manifests import NAMESPACE, SYSTEM_NAMESPACE
from lab import clock as lab_clock
from lab import process
from lab.cluster import Lab
from lab.errors import LabError
from spottrain.api import names

OPERATOR: Final = "spottrain-operator"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/spottrain"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
AFTERWARDS: Final = 15.0
"""Seconds in which a machine that was cut off may still go on with what it was told to end."""


@dataclass(frozen=True)
class Done:
    """What was done for an act: when (Unix seconds), to what, and why not, if it could not be done."""

    at: float
    act: Act
    target: str = ""
    problem: str = ""

    def words(self) -> str:
        """For people."""
        verb = "" if self.act.begins else "end of "
        target = f" ({self.target})" if self.target else ""
        problem = f": could not be done: {self.problem}" if self.problem else ""
        return f"{verb}{self.act.fault.words()}{target}{problem}"


class Harm:
    """Does it, and remembers what was done."""

    def __init__(self, lab: Lab, cancelled: Callable[[str], None]) -> None:
        """`cancelled` is told the name of a job that is about to be deleted."""
        self._lab = lab
        self._cancelled = cancelled
        self.done: list[Done] = []
        self._begin: Mapping[Kind, Callable[[Fault], str]] = {
            Kind.KILL: lambda fault: self._node(lab.node_kill, fault),
            Kind.REPLACE: lambda fault: self._node(lab.node_back, fault),
            Kind.PARTITION: lambda fault: self._node(lab.node_partition, fault),
            Kind.DRAIN: self._drain,
            Kind.DELETE: lambda fault: self._delete(fault, {}),
            Kind.FORCE: lambda fault: self._delete(fault, {"gracePeriodSeconds": 0}),
            Kind.CANCEL: self._cancel,
            Kind.OPERATOR: self._kill_operator,
            Kind.API_STOP: lambda _: self._plain(lab.api_stop),
            Kind.API_PAUSE: lambda _: self._plain(lab.api_pause),
            Kind.STORE: lambda _: self._plain(lab.store_stop),
        }
        self._end: Mapping[Kind, Callable[[Fault], str]] = {
            Kind.KILL: lambda fault: self._node(lab.node_start, fault),
            Kind.PARTITION: lambda fault: self._node(lab.node_heal, fault),
            Kind.DRAIN: lambda fault: self._node(lab.node_start, fault),
            Kind.API_STOP: lambda _: self._plain(lab.api_start),
            Kind.API_PAUSE: lambda _: self._plain(lab.api_resume),
            Kind.STORE: lambda _: self._plain(lab.store_start),
        }

    def carry_out(self, act: Act) -> Done:
        """Do it; what stands in the way is noted, not raised: the next act is due."""
        at = clock.wall()
        table = self._begin if act.begins else self._end
        try:
            done = Done(at, act, target=table[act.fault.kind](act.fault))
        except LabError as error:
            done = Done(at, act, problem=str(error))
        self.done.append(done)
        return done

    def _node(self, do: Callable[[str], object], fault: Fault) -> str:
        do(fault.node)
        return ""

    def _plain(self, do: Callable[[], object]) -> str:
        do()
        return ""

    def _drain(self, fault: Fault) -> str:
        """As `kubectl drain`, but without waiting for the pods to be gone."""
        api, node = self._lab.api, fault.node
        api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}}).expect(f"cordoning {node}")
        listed = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}").expect("pods")["items"]
        evicted = []
        for pod in listed:
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            answer = api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)
            evicted += [name] if answer.ok else []
        return ", ".join(evicted) or "empty"

    def _delete(self, fault: Fault, body: dict[str, Any]) -> str:
        listed = self._lab.api.get(f"{PODS}?labelSelector={names.LABEL_JOB}").expect("pods")["items"]
        pod = chosen([one for one in listed if alive(one)], fault.pick)
        if pod is None:
            return "no pod was there"
        name = pod["metadata"]["name"]
        self._lab.api.call("DELETE", f"{PODS}/{name}", body).expect(f"deleting {name}")
        return f"{name} on {pod['spec'].get('nodeName') or 'no node'}"

    def _cancel(self, fault: Fault) -> str:
        listed = self._lab.api.get(JOBS).expect("jobs")["items"]
        job = chosen([one for one in listed if not over(one)], fault.pick)
        if job is None:
            return "no job was there"
        name = str(job["metadata"]["name"])
        self._cancelled(name)
        self._lab.api.call("DELETE", f"{JOBS}/{name}").expect(f"deleting {name}")
        return name

    def _kill_operator(self, _: Fault) -> str:
        lease = self._lab.api.get(LEASE).expect("the operator's Lease")
        # It goes by the name of its pod.
        holder = str(lease["spec"].get("holderIdentity") or "")
        listed = self._lab.api.get(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods").expect("pods")["items"]
        names_by_uid = {one["metadata"]["uid"]: str(one["metadata"]["name"]) for one in listed}
        running = [one for one in self._lab.pod_processes() if OPERATOR in one.command]
        leading = [one for one in running if names_by_uid.get(one.pod) == holder]
        # The one that led may lie dead of an earlier fault: then whoever is about to follow it.
        for one in leading or running:
            process.kill(one.pid)
        killed = ", ".join(sorted({names_by_uid.get(one.pod, one.pod) for one in leading or running}))
        return f"{killed or 'none runs'}; {holder or 'nobody'} held the Lease"


def chosen(objects: Sequence[Mapping[str, Any]], pick: float) -> Mapping[str, Any] | None:
    """The one at this place (0 to 1) of their order by name."""
    ordered = sorted(objects, key=lambda one: str(one["metadata"]["name"]))
    return ordered[min(int(pick * len(ordered)), len(ordered) - 1)] if ordered else None


def over(job: Mapping[str, Any]) -> bool:
    """Whether it is complete or has failed."""
    return (job.get("status") or {}).get("phase") in OVER


def alive(pod: Mapping[str, Any]) -> bool:
    """Whether it has not ended, and nobody has asked it to."""
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and "deletionTimestamp" not in pod["metadata"]


def windows(done: Sequence[Done]) -> tuple[Window, ...]:
    """When which node's processes may have lived on: it was cut off, or a pod's object was taken away."""
    found = []
    for one in done:
        fault = one.act.fault
        if not one.act.begins or one.problem or fault.kind not in {Kind.PARTITION, Kind.FORCE}:
            continue
        ended = next(
            (other.at for other in done if other.act.fault == fault and not other.act.begins), one.at
        )
        node = fault.node or one.target.rpartition(" on ")[2]
        found.append(Window(node, one.at, ended + AFTERWARDS))
    return tuple(found)


def wait_until(moment: float) -> None:
    """On the clock that only goes forward."""
    lab_clock.poll(lambda: clock.now() >= moment, seconds=max(0.0, moment - clock.now()) + 1.0, every=0.05)
