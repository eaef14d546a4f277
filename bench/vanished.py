"""How soon the replacement of a worker is created whose node has stopped renewing its lease.

The node is made by hand: the test renews its lease every 10 s, as a kubelet does, until it stops. Time counts
from the last renewal, so the figure is the longest that a machine's death can take; on average it dies 5 s
after one. Beside ours a stock Indexed Job has a worker on the same node.
"""

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bench.systems import Spottrain, template
from lab import clock
from lab.api import Api
from lab.cluster import Lab
from lab.kwok import FakeNode

Object = dict[str, Any]
NODE: Final = "by-hand"
NAMESPACE: Final = "vanished"
RENEW_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 40
WORKERS: Final = 4
SPOT: Final = {"karpenter.sh/capacity-type": "spot"}
STOCK_SECONDS: Final = 90.0
"""How long the stock Job's replacement is waited for, from the lease's end."""
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
_JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


@dataclass(frozen=True)
class Found:
    """Seconds from the last renewal to a replacement; None: none came while it was waited for."""

    ours: float
    stock: float | None

    def stock_words(self) -> str:
        """For the report."""
        return f"not within {STOCK_SECONDS:.0f} s" if self.stock is None else f"{self.stock:.1f} s"


class Machine:
    """A Node object and its kubelet, as far as the API sees: Ready, a lease, and pods that run."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._stop = threading.Event()
        self.renewed = 0.0
        labels = {**SPOT, "kubernetes.io/hostname": NODE}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}
        api.apply(f"/api/v1/nodes/{NODE}", node)
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def report(self, gpus: int) -> None:
        """Ready, and what there is room for."""
        room = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        ready |= dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), _now("%Y-%m-%dT%H:%M:%SZ"))
        status = {"status": {"conditions": [ready], "capacity": room, "allocatable": room}}
        self._api.merge(f"/api/v1/nodes/{NODE}/status", status).expect(NODE)

    def _renew(self) -> None:
        while not self._stop.is_set():
            spec = {
                "holderIdentity": NODE,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": _now("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": NODE},
                "spec": spec,
            }
            self._api.apply(_LEASE, lease)
            self.renewed = clock.now()
            self._stop.wait(RENEW_SECONDS)

    def run_pods(self) -> None:
        """The kubelet's part: what is bound here runs."""
        listed = self._api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}").expect("pods")
        for pod in listed["items"]:
            if pod["status"]["phase"] == "Pending":
                self._api.merge(f"{_PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Running"}})

    def die_at_next_renewal(self) -> float:
        """The lease is renewed once more and never again; returns when that was."""
        last = self.renewed
        clock.wait_for("a renewal", lambda: self.renewed > last, seconds=2 * RENEW_SECONDS, every=0.02)
        self._stop.set()
        self._thread.join()
        return self.renewed

    def remove(self) -> None:
        """The Node object goes too."""
        self._stop.set()
        for path in (_LEASE, f"/api/v1/nodes/{NODE}"):
            self._api.call("DELETE", path)


def measure(lab: Lab) -> Found:
    """One death."""
    api = lab.api
    lab.kubectl("create", "namespace", NAMESPACE)
    lab.wait_namespace(NAMESPACE)
    machine = Machine(api)
    try:
        _start(lab, machine)
        lab.add_fake_nodes([FakeNode("b", labels=SPOT, capacity={"nvidia.com/gpu": "16"})])
        return _death(api, machine)
    finally:
        machine.remove()
        api.call("DELETE", Spottrain().collection(NAMESPACE))
        api.call("DELETE", f"{_JOBS}?propagationPolicy=Background")
        lab.remove_fake_nodes(["a", "b"])
        clock.wait_for("no pods", lambda: _emptied(api), seconds=120, every=1.0)
        lab.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def _start(lab: Lab, machine: Machine) -> None:
    ours = Spottrain().gang("ours", WORKERS)
    stock = {
        "parallelism": WORKERS,
        "completions": WORKERS,
        "completionMode": "Indexed",
        "template": template(),
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "stock"}, "spec": stock}
    gangs = ((Spottrain().collection(NAMESPACE), ours), (_JOBS, job))
    for number, (collection, document) in enumerate(gangs, start=1):
        # Room for exactly one more gang, and one worker of it on the machine that will die.
        there = {"nvidia.com/gpu": str(number * (WORKERS - 1))}
        lab.add_fake_nodes([FakeNode("a", labels=SPOT, capacity=there)])
        machine.report(gpus=number)
        lab.api.call("POST", collection, document).expect("a gang")
        _wait_running(lab.api, machine, document["metadata"]["name"])


def _wait_running(api: Api, machine: Machine, job: str) -> None:
    def runs() -> bool:
        machine.run_pods()
        return len([one for one in _pods(api, job) if one["status"]["phase"] == "Running"]) == WORKERS

    clock.wait_for(f"{job} running", runs, seconds=60)


def _death(api: Api, machine: Machine) -> Found:
    before = {job: _uids(api, job) for job in ("ours", "stock")}
    clock.wait_for(
        "a pod of each on the machine", lambda: all(_on_machine(api, job) for job in before), seconds=5
    )
    died = machine.die_at_next_renewal()
    ours = _replaced(api, "ours", before["ours"], died + 120.0)
    if ours is None:
        raise AssertionError("no replacement within 120 s")
    stock = _replaced(api, "stock", before["stock"], died + STOCK_SECONDS)
    return Found(ours - died, None if stock is None else stock - died)


def _replaced(api: Api, job: str, before: set[str], deadline: float) -> float | None:
    seconds = max(0.0, deadline - clock.now())
    found: Callable[[], bool] = lambda: bool(_uids(api, job) - before)  # noqa: E731
    return clock.now() if clock.poll(found, seconds=seconds, every=0.1) else None


def _pods(api: Api, job: str) -> list[Object]:
    path = f"{_PODS}?labelSelector=batch.kubernetes.io/job-name%3D{job}"
    return list(api.get(path).expect("pods")["items"])


def _uids(api: Api, job: str) -> set[str]:
    return {one["metadata"]["uid"] for one in _pods(api, job)}


def _on_machine(api: Api, job: str) -> bool:
    return any(one["spec"].get("nodeName") == NODE for one in _pods(api, job))


def _emptied(api: Api) -> bool:
    api.call("DELETE", _PODS, {"gracePeriodSeconds": 0})
    return len(api.get(_PODS).expect("pods")["items"]) == 0


def _now(form: str) -> str:
    return dt.datetime.now(dt.UTC).strftime(form)
