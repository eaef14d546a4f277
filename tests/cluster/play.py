"""Plays users, kubelets and clouds against a real control plane, for one job in one namespace."""

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lab import clock
from lab.api import Answer, Api
from lab.errors import LabError
from lab.kwok import STAYS_TERMINATING, FakeNode, add, remove

Object = dict[str, Any]
T = TypeVar("T")

IMAGE = "docker.io/library/python:3.11-slim-bookworm"


def manifest(name: str = "tr", *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """A gang of four, with fields of its spec replaced."""
    template = {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "trainer", "image": IMAGE, "command": ["sleep", "3600"]}]},
    }
    whole = {
        "mode": "Gang",
        "workers": 4,
        "maxFailures": 3,
        "checkpoint": {"uri": "s3://ck/tr"},
        "template": template,
    }
    return {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": name},
        "spec": {**whole, **spec},
    }


# Pods of this template are ended by the test, as a kubelet with a slow or failing program would.
BY_HAND = STAYS_TERMINATING


def told(condition: Mapping[str, str]) -> str:
    """A condition of anything, in a line."""
    said = ": ".join(condition[key] for key in ("reason", "message") if condition.get(key))
    return f"{condition['type']}={condition['status']}" + (f" ({said})" if said else "")


class Job:
    """One SpotTrainingJob in the cluster."""

    def __init__(self, api: Api, namespace: str, name: str = "tr") -> None:
        self.api = api
        self.namespace = namespace
        self.name = name
        self._jobs = f"/apis/spottrain.dev/v1alpha1/namespaces/{namespace}/spottrainingjobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self.path = f"{self._jobs}/{name}"
        self.batch_path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"

    def create(self, document: Object) -> Answer:
        """POST, with strict field validation as kubectl does."""
        return self.api.call("POST", self._jobs + "?fieldValidation=Strict", document)

    def applied(self, document: Object) -> "Job":
        """Create it and expect that it is accepted."""
        self.create(document).expect("the job")
        return self

    def get(self) -> Object:
        return dict(self.api.get(f"{self._jobs}/{self.name}").expect("the job"))

    def status(self) -> Object:
        return dict(self.get().get("status") or {})

    def condition(self, kind: str) -> Object:
        found = [one for one in self.status().get("conditions", ()) if one["type"] == kind]
        return found[0] if found else {}

    def batch_job(self) -> Object:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.name}"
        return dict(self.api.get(path).expect("the Job"))

    def pods(self) -> dict[str, Object]:
        answer = self.api.get(f"{self._pods}?labelSelector=spottrain.dev/job%3D{self.name}").expect("pods")
        return {one["metadata"]["name"]: one for one in answer["items"]}

    def pod(self, name: str) -> Object:
        return dict(self.api.get(f"{self._pods}/{name}").expect(name))

    def events(self, reason: str) -> list[str]:
        path = (
            f"/api/v1/namespaces/{self.namespace}/events?fieldSelector=involvedObject.kind%3DSpotTrainingJob"
        )
        items = self.api.get(path).expect("events")["items"]
        return [one["message"] for one in items if one["reason"] == reason]

    # Waiting.

    def wait(self, what: str, probe: Callable[[], T | None], seconds: float = 30) -> T:
        """Poll until the probe says something true; running out of time tells the job's story."""
        answer = clock.poll(probe, seconds=seconds)
        if not answer:
            raise LabError(f"{what} did not happen within {seconds:g} s:\n" + "\n".join(self.story()))
        return answer

    def wait_phase(self, phase: str, seconds: float = 30) -> None:
        self.wait(f"phase {phase}", lambda: self.status().get("phase") == phase, seconds)

    def wait_running(self, attempt: int, seconds: float = 30) -> None:
        """All workers of that attempt run."""

        def runs() -> bool:
            status = self.status()
            return status.get("attempt") == attempt and status.get("phase") == "Running"

        self.wait(f"attempt {attempt} running", runs, seconds)

    def story(self) -> list[str]:
        """What a reader of a failed wait wants to see: the job, its pods, and the nodes."""
        status = self.api.get(self.path).body.get("status") or {}
        lines = [f"phase {status.get('phase')}, attempt {status.get('attempt')}"]
        lines += [f"condition {told(one)}" for one in status.get("conditions", ())]
        for name, pod in self.pods().items():
            said = ", ".join(told(one) for one in pod["status"].get("conditions", ()))
            lines.append(f"pod {name} on {pod['spec'].get('nodeName')}: {pod['status'].get('phase')} {said}")
        for node in self.api.get("/api/v1/nodes").expect("nodes")["items"]:
            taints = [one["key"] for one in node["spec"].get("taints", ())]
            lines.append(f"node {node['metadata']['name']}: taints {taints}")
        return lines

    # What kubelets, users and clouds do.

    def end(self, name: str, code: int, reason: str = "", *, disruption: str = "", message: str = "") -> None:
        """The pod's container ended, with that word from the kubelet."""
        text = reason or ("Completed" if code == 0 else "Error")
        now = timestamp()
        ended = {"exitCode": code, "reason": text, "finishedAt": now, "startedAt": now, "message": message}
        status: Object = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "containerStatuses": [
                {
                    "name": "trainer",
                    "image": "i",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": ended},
                }
            ],
        }
        if disruption:
            status["conditions"] = [
                *self.pod(name)["status"].get("conditions", ()),
                {"type": "DisruptionTarget", "status": "True", "reason": disruption},
            ]
        self.api.merge(f"{self._pods}/{name}/status", {"status": status}).expect(f"ending {name}")

    def reclaim(self, name: str) -> None:
        """It was evicted and killed."""
        self.end(name, 143, disruption="EvictionByEvictionAPI")

    def patch_pod(self, name: str, status: Object) -> None:
        """Any other word from the kubelet."""
        self.api.merge(f"{self._pods}/{name}/status", {"status": status}).expect(name)

    def run(self, name: str) -> None:
        """Its containers run, says the kubelet."""
        self.patch_pod(name, {"phase": "Running"})

    def crash(self, name: str) -> None:
        """It failed by itself."""
        self.end(name, 1)

    def delete_pod(self, name: str, grace: int | None = None) -> None:
        body = None if grace is None else {"gracePeriodSeconds": grace}
        self.api.call("DELETE", f"{self._pods}/{name}", body).expect(f"deleting {name}")

    def evict(self, name: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        self.api.call("POST", f"{self._pods}/{name}/eviction", body).expect(f"evicting {name}")

    def vanish(self, name: str) -> None:
        """The kubelet has finished with it."""
        self.api.call("DELETE", f"{self._pods}/{name}", {"gracePeriodSeconds": 0})

    def end_all_deleted(self, code: int) -> None:
        """Every pod that was asked to stop ends with that code."""
        for name, pod in self.pods().items():
            if "deletionTimestamp" in pod["metadata"]:
                with contextlib.suppress(AssertionError):
                    self.end(name, code)
                self.vanish(name)

    def patch(self, change: Object) -> Answer:
        return self.api.merge(f"{self._jobs}/{self.name}", change)


def node(
    api: Api,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Object, ...] = (),
    provider_id: str = "",
    gpus: int = 8,
) -> None:
    """A machine that kwok plays."""
    capacity = {"nvidia.com/gpu": str(gpus)}
    add(api, FakeNode(name, labels=labels or {}, taints=taints, capacity=capacity, provider_id=provider_id))


class HandMade:
    """A node that neither kwok nor a kubelet handles: the test renews its lease and plays its kubelet."""

    def __init__(
        self, api: Api, name: str, labels: Mapping[str, str] | None = None, duration: int = 10
    ) -> None:
        self._api = api
        self.name = name
        self._duration = duration
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        api.apply(
            f"/api/v1/nodes/{name}",
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels or {})}},
        )
        self.say_ready("True")
        self._thread.start()

    def say_ready(self, status: str, reason: str = "KubeletReady", message: str = "") -> None:
        """The node's Ready condition, as the kubelet or the node controller writes it."""
        now = timestamp()
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        room = {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
        said = {"status": {"conditions": [condition], "capacity": room, "allocatable": room}}
        self._api.merge(f"/api/v1/nodes/{self.name}/status", said).expect(self.name)

    def _renew(self) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{self.name}"
        while not self._stop.is_set():
            now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name},
                "spec": {
                    "holderIdentity": self.name,
                    "leaseDurationSeconds": self._duration,
                    "renewTime": now,
                },
            }
            self._api.apply(path, lease)
            self._stop.wait(self._duration / 4)

    def fall_silent(self) -> None:
        """The machine is gone: its lease is not renewed any more."""
        self._stop.set()
        self._thread.join()

    def vanish(self) -> None:
        """The Node object goes, as a cloud's controller does it."""
        self.fall_silent()
        remove(self._api, self.name)


@contextlib.contextmanager
def hand_made(api: Api, name: str, labels: Mapping[str, str] | None = None) -> Iterator[HandMade]:
    """A hand-made node, for a while."""
    one = HandMade(api, name, labels)
    clock.wait_for(f"{name} ready", lambda: name in ready(api), seconds=30)
    try:
        yield one
    finally:
        one.vanish()


def timestamp() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ready(api: Api) -> set[str]:
    """Names of the nodes that are Ready, and that the node controller lets pods onto."""
    items = api.get("/api/v1/nodes").expect("nodes")["items"]
    return {
        one["metadata"]["name"]
        for one in items
        if "node.kubernetes.io/not-ready" not in {taint["key"] for taint in one["spec"].get("taints", ())}
        for condition in one["status"].get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] == "True"
    }


def quota(job: Job, pods: int) -> Callable[[int], None]:
    """No more than so many pods in the job's namespace; returns what changes the number."""
    path = f"/api/v1/namespaces/{job.namespace}/resourcequotas"
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": str(pods)}},
    }
    job.api.call("POST", path, body).expect("the quota")
    job.wait("the quota counted", lambda: job.api.get(f"{path}/few").body["status"].get("hard"))

    def change(wanted: int) -> None:
        job.api.merge(f"{path}/few", {"spec": {"hard": {"pods": str(wanted)}}}).expect("another quota")

    return change


@contextlib.contextmanager
def machines(api: Api, *made: Mapping[str, Any]) -> Iterator[None]:
    """These nodes and no others, for a while."""
    for one in made:
        node(api, **one)
    names = {one["name"] for one in made}
    clock.wait_for(f"nodes {sorted(names)} ready", lambda: names <= ready(api), seconds=30)
    try:
        yield
    finally:
        for name in names:
            remove(api, name)


SPOT = {"karpenter.sh/capacity-type": "spot"}
ON_DEMAND = {"karpenter.sh/capacity-type": "on-demand"}
