"""The objects of the demo as documents. Pure."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAMESPACE = "spottrain-demo"
SYSTEM_NAMESPACE = "spottrain-system"
PROGRAM_FOLDER = "/demo"
_SECRET = "store-keys"  # noqa: S105 - a name
TORCHRUN = ("python3", "-m", "torch.distributed.run")
_CONFIG = "program"


@dataclass(frozen=True)
class Store:
    """Where checkpoints go: below `uri`; the keys may be empty where pods have an identity of their own."""

    uri: str
    endpoint: str = ""
    region: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workers:
    """What the workers are made of."""

    image: str
    count: int = 3
    floor: int = 1
    gpus: int = 0
    host_path: str = ""
    """A folder of the nodes with torch, put on PYTHONPATH; empty: the image has it."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    spot: Mapping[str, Any] = field(default_factory=dict)
    """Further wishes in `spec.spot`."""


@dataclass(frozen=True)
class Pace:
    """How a job runs: seconds between saves, and the environment that sets the program's length and speed."""

    interval: float
    env: Mapping[str, str]


def namespace(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def secured_namespace(name: str, level: str) -> dict[str, Any]:
    """A Namespace that takes only pods that this level of the Pod Security Standards allows."""
    return namespace(name, {"pod-security.kubernetes.io/enforce": level})


def secret(store: Store) -> dict[str, Any]:
    """The store's keys, as environment of the workers."""
    data = {name: base64.b64encode(value.encode()).decode() for name, value in store.keys.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "namespace": NAMESPACE},
        "data": data,
    }


def program(files: Mapping[str, str]) -> dict[str, Any]:
    """The training program, so that one image does for all."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _CONFIG, "namespace": NAMESPACE},
        "data": dict(files),
    }


def job(name: str, workers: Workers, store: Store, pace: Pace) -> dict[str, Any]:
    """The SpotTrainingJob."""
    checkpoint = {
        "uri": f"{store.uri.rstrip('/')}/{name}",
        "endpoint": store.endpoint,
        "region": store.region,
        "interval": f"{pace.interval:g}s",
    }
    return {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workers": workers.count,
            "spot": {"onDemandFloor": workers.floor, "window": "30s", "spread": "zone", **workers.spot},
            "checkpoint": {key: value for key, value in checkpoint.items() if value},
            "template": {"spec": _pod(workers, store, pace)},
        },
    }


def _pod(workers: Workers, store: Store, pace: Pace) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "program", "configMap": {"name": _CONFIG}}]
    if workers.host_path:
        volumes.append({"name": "torch", "hostPath": {"path": workers.host_path, "type": "Directory"}})
    pod: dict[str, Any] = {"containers": [_container(workers, store, pace)], "volumes": volumes}
    if workers.tolerations:
        pod["tolerations"] = [dict(one) for one in workers.tolerations]
    if workers.node_selector:
        pod["nodeSelector"] = dict(workers.node_selector)
    return pod


def _container(workers: Workers, store: Store, pace: Pace) -> dict[str, Any]:
    env = {"OMP_NUM_THREADS": "1", **pace.env}
    mounts: list[dict[str, Any]] = [{"name": "program", "mountPath": PROGRAM_FOLDER, "readOnly": True}]
    limits: dict[str, Any] = {"memory": "3Gi"}
    if workers.host_path:
        env["PYTHONPATH"] = workers.host_path
        mounts.append({"name": "torch", "mountPath": workers.host_path, "readOnly": True})
    if workers.gpus:
        limits["nvidia.com/gpu"] = workers.gpus
    container: dict[str, Any] = {
        "name": "train",
        "image": workers.image,
        # torchrun: where to meet and how many there are it learns from the environment the operator sets. One
        # process however many GPUs are asked for: those are for the scheduler, the training is on the CPU.
        "command": [*TORCHRUN, "--nproc-per-node=1", f"{PROGRAM_FOLDER}/train.py"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": limits},
        "volumeMounts": mounts,
    }
    if store.keys:
        container["envFrom"] = [{"secretRef": {"name": _SECRET}}]
    return container
