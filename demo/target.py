"""What the demo needs of a cluster, whichever it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from demo.kubectl import Programs
from demo.manifests import Store, Workers
from spottrain.api import clouds


@dataclass(frozen=True)
class OperatorImage:
    """`version` is any text that changes when the content behind the name does."""

    name: str
    version: str = ""

    @property
    def repository(self) -> str:
        """The name without its tag or digest."""
        return self._split()[0]

    @property
    def tag(self) -> str:
        """The tag; empty when there is none."""
        return self._split()[1]

    @property
    def digest(self) -> str:
        """sha256:..., or empty."""
        return self.name.partition("@")[2]

    def _split(self) -> tuple[str, str]:
        name = self.name.partition("@")[0]
        path, colon, tag = name.rpartition(":")
        return (path, tag) if colon and "/" not in tag else (name, "")


@dataclass(frozen=True)
class Node:
    """A node on which workers may run."""

    name: str
    capacity: clouds.Capacity
    zone: str = ""
    schedulable: bool = True
    taints: tuple[str, ...] = ()
    """Keys of taints that keep pods off."""


@dataclass(frozen=True)
class Site:
    """A cluster made ready for the demo."""

    programs: Programs
    operator: OperatorImage
    workers: Workers
    store: Store
    nodes: tuple[Node, ...] = field(default=())
    own_bucket: bool = False
    """The bucket is the demo's alone: it is made when it is missing, and emptied."""


class Target(Protocol):
    """The lab, or the current cluster. All methods raise DemoError when they cannot do it."""

    faults: tuple[str, str]
    """Kinds of the two losses, in order."""
    agent: str
    """The cloud whose notices are to be heard; empty: none will come."""

    def prepare(self) -> Site:
        """Have a cluster with healthy nodes, images and a store."""

    def strike(self, kind: str, *, node: str, pod: str) -> None:
        """Take the node away from the pod. Returns when that has begun."""

    def heal(self) -> None:
        """Bring back what `strike` did, in this run or an earlier one."""

    def farewell(self) -> str:
        """How to look around now, and how to end it."""


def nodes(items: Iterable[Mapping[str, Any]]) -> tuple[Node, ...]:
    """Nodes that may carry workers (no control plane), from the API's Node objects."""
    return tuple(_node(item) for item in items if not _controls(item))


def _node(item: Mapping[str, Any]) -> Node:
    labels = item["metadata"].get("labels") or {}
    spec = item.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint["effect"] in {"NoSchedule", "NoExecute"}]
    return Node(
        name=item["metadata"]["name"],
        capacity=clouds.capacity(labels, spec.get("providerID") or ""),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        schedulable=not spec.get("unschedulable"),
        taints=tuple(taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")),
    )


def _controls(item: Mapping[str, Any]) -> bool:
    taints = (item.get("spec") or {}).get("taints") or ()
    return any(taint["key"] == "node-role.kubernetes.io/control-plane" for taint in taints)


def common_tolerations(found: Iterable[Node]) -> tuple[Mapping[str, Any], ...]:
    """Tolerations for taints that every node carries: without them nothing could run at all."""
    keys = [set(node.taints) for node in found]
    shared = set.intersection(*keys) if keys else set()
    return tuple({"key": key, "operator": "Exists"} for key in sorted(shared))
