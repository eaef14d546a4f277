"""Nodes that exist in the API only, with pods that run in the API only: as many as a test wants.

kwok plays the kubelet for nodes with the annotation MANAGED; nodes made by hand without it are nobody's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import controlplane, process
from lab.api import Api
from lab.state import State

NAME = "kwok"
MANAGED = {"kwok.x-k8s.io/node": "fake"}
# On a pod: it is bound to its node, and never starts.
STAYS_PENDING = {"lab.spottrain.dev/stays-pending": "true"}
# On a pod: deletion is asked for and never carried out, as on a node that is cut off.
STAYS_TERMINATING = {"lab.spottrain.dev/stays-terminating": "true"}
# On a pod: it ends well, with exit code 0, as soon as it runs.
COMPLETES = {"lab.spottrain.dev/completes": "true"}
_STAGES = Path(__file__).parent / "kwok-stages.yaml"
_NICE = -10
_LEASE_SECONDS = 40


@dataclass(frozen=True)
class FakeNode:
    """A node to be made. `taints` as the API has them: {key, value, effect}."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    """On top of 32 CPUs, 256Gi of memory and 110 pods; `nvidia.com/gpu` for instance."""
    provider_id: str = ""
    """What a cloud says of it, as `aws:///us-east-1a/i-1`."""


def start(state: State) -> None:
    """Start kwok; it needs the API server.

    It goes before all others: the machines that it plays have CPUs of their own.
    """
    pid = process.spawn(
        [
            *(state.bin / NAME, "--kubeconfig", controlplane.busy_kubeconfig(state), "--config", _STAGES),
            "--manage-all-nodes=false",
            *("--v", "WARN"),
            *("--manage-nodes-with-annotation-selector", ",".join(f"{k}={v}" for k, v in MANAGED.items())),
            *("--node-lease-duration-seconds", _LEASE_SECONDS, "--cidr", str(state.addresses.fake_network)),
            *("--server-address", f"127.0.0.1:{state.addresses.port(4)}"),
        ],
        log=state.log / f"{NAME}.log",
        pid_file=state.pids / NAME,
        env=controlplane.FEWER_COLLECTIONS,
    )
    process.prefer(pid, _NICE)


def stop(state: State) -> None:
    """End it; fake nodes stay in the API and go NotReady."""
    process.stop(state.pids / NAME, grace=2)


def running(state: State) -> bool:
    """Whether the process lives."""
    return process.find(state.pids / NAME) is not None


def document(node: FakeNode) -> dict[str, Any]:
    """The Node object."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "annotations": dict(MANAGED),
            "labels": {"kubernetes.io/hostname": node.name, "type": "kwok", **node.labels},
        },
        "spec": {
            "taints": [dict(taint) for taint in node.taints],
            **({"providerID": node.provider_id} if node.provider_id else {}),
        },
    }


def status(node: FakeNode) -> dict[str, Any]:
    """What the node offers, for its status."""
    offered = {"cpu": "32", "memory": "256Gi", "pods": "110", **node.capacity}
    return {"status": {"capacity": offered, "allocatable": offered}}


def add(api: Api, node: FakeNode) -> None:
    """Make the node, or make it as described; kwok reports it Ready within about a second."""
    path = f"/api/v1/nodes/{node.name}"
    api.apply(path, document(node))
    api.merge(f"{path}/status", status(node)).expect(f"the status of node {node.name}")


def remove(api: Api, name: str) -> None:
    """Delete the node; it is no error when it is gone already."""
    answer = api.call("DELETE", f"/api/v1/nodes/{name}")
    if answer.status != 404:
        answer.expect(f"deleting node {name}")
