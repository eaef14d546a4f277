"""What a lab is made of: its nodes, its timings, and the addresses that keep two labs apart. All pure."""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any, Final

from lab.errors import LabError

CAPACITIES: Final = ("on-demand", "spot")
GPUS_PER_NODE: Final = 4
SLOTS: Final = 16
MAX_NODES: Final = 100
MAIN: Final = "main"
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True)
class NodeSpec:
    """One machine of the lab."""

    name: str
    capacity: str
    """on-demand or spot."""
    zone: str

    def labels(self) -> dict[str, str]:
        """What cloud, autoscaler and GPU operator would put on such a node."""
        return {
            "karpenter.sh/capacity-type": self.capacity,
            "topology.kubernetes.io/region": "lab",
            "topology.kubernetes.io/zone": self.zone,
            "node.kubernetes.io/instance-type": "lab.4gpu",
        }


DEFAULT_NODES: Final = (
    NodeSpec("od-1", "on-demand", "zone-a"),
    NodeSpec("spot-1", "spot", "zone-a"),
    NodeSpec("spot-2", "spot", "zone-b"),
    NodeSpec("spot-3", "spot", "zone-c"),
)


@dataclass(frozen=True)
class Timings:
    """How soon the control plane notices a silent node; all in seconds.

    Shorter than Kubernetes' own (DEFAULT_TIMINGS), so that a test need not wait a minute.
    """

    status_update: int = 4
    lease: int = 16
    monitor_grace: int = 16
    monitor_period: int = 2


DEFAULT_TIMINGS: Final = Timings(status_update=10, lease=40, monitor_grace=50, monitor_period=5)
"""Kubernetes' own."""


@dataclass(frozen=True)
class Config:
    """Everything that distinguishes one `up` from another. No nodes: control plane, store and kwok alone."""

    nodes: tuple[NodeSpec, ...] = DEFAULT_NODES
    timings: Timings = field(default_factory=Timings)
    kcm_qps: int | None = None
    """Requests per second that kube-controller-manager allows itself; None: its default, 20."""
    kcm_burst: int | None = None
    """How many of them at once; None: its default, 30."""
    audit: bool = False
    """Whether the API server notes in log/audit.jsonl what was asked of it; see lab/audit.py."""


def parse_node(text: str) -> NodeSpec:
    """`spot-1=spot/zone-a` → NodeSpec; raises LabError with the expected form."""
    found = re.fullmatch(r"([^=]+)=([^/]+)/([a-z0-9-]+)", text)
    if found is None or found.group(2) not in CAPACITIES:
        raise LabError(f"node {text!r} must be written NAME=on-demand/ZONE or NAME=spot/ZONE")
    return NodeSpec(check_name(found.group(1)), found.group(2), found.group(3))


def check_name(name: str) -> str:
    """The name itself when a lab or node may be called so; raises LabError otherwise."""
    if _NAME.fullmatch(name) is None:
        raise LabError(f"name {name!r} must be 1-20 characters of a-z, 0-9 and -, beginning with a letter")
    return name


def command(lab: str) -> str:
    """What to type before what that lab is to do."""
    return "python -m lab" if lab == MAIN else f"python -m lab --name {lab}"


def check(config: Config) -> Config:
    """The configuration itself when it can be started; raises LabError otherwise."""
    names = [node.name for node in config.nodes]
    if len(names) > MAX_NODES:
        raise LabError(f"a lab has at most {MAX_NODES} nodes, not {len(names)}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"node name used twice: {', '.join(twice)}")
    return config


def to_json(config: Config) -> dict[str, Any]:
    """The configuration as it is kept in the lab's state."""
    return {**vars(config), "nodes": [vars(node) for node in config.nodes], "timings": vars(config.timings)}


def from_json(data: dict[str, Any]) -> Config:
    """The inverse of `to_json`."""
    nodes = tuple(NodeSpec(**node) for node in data["nodes"])
    return Config(**{**data, "nodes": nodes, "timings": Timings(**data["timings"])})


def choose_slot(name: str, taken: dict[str, int]) -> int:
    """The slot of the lab `name` given those of the labs that exist; `main` always has 0.

    Raises LabError when all are in use.
    """
    if name in taken:
        return taken[name]
    if name == "main":
        return 0
    free = sorted(set(range(1, SLOTS)) - set(taken.values()))
    if not free:
        raise LabError(f"all {SLOTS} lab slots are taken: remove one with `python -m lab --name NAME remove`")
    return free[0]


@dataclass(frozen=True)
class Addresses:
    """Networks, ports and kernel object names of one lab; no two slots share any of them."""

    slot: int

    @property
    def node_network(self) -> ipaddress.IPv4Network:
        """Where machines and the host's bridge live."""
        return ipaddress.IPv4Network(f"10.98.{self.slot}.0/24")

    @property
    def pod_network(self) -> ipaddress.IPv4Network:
        """Pods of real nodes: one /24 each."""
        return ipaddress.IPv4Network(f"10.{224 + self.slot}.0.0/16")

    @property
    def fake_network(self) -> ipaddress.IPv4Network:
        """Addresses that kwok gives to its pods; nothing answers there."""
        return ipaddress.IPv4Network(f"10.{224 + self.slot}.128.0/17")

    @property
    def service_network(self) -> ipaddress.IPv4Network:
        """Cluster IPs."""
        return ipaddress.IPv4Network(f"10.{240 + self.slot}.0.0/16")

    @property
    def gateway(self) -> str:
        """The host as pods and machines reach it: API server, DNS and object store listen here."""
        return str(self.node_network[1])

    def node(self, index: int) -> str:
        """Address of the machine number `index` (from 0)."""
        return str(self.node_network[10 + index])

    def pods(self, index: int) -> str:
        """Pod network of the machine number `index` (from 0)."""
        return f"10.{224 + self.slot}.{1 + index}.0/24"

    @property
    def api_service(self) -> str:
        """Cluster IP of `kubernetes.default`."""
        return str(self.service_network[1])

    @property
    def dns(self) -> str:
        """Cluster IP of the DNS service."""
        return str(self.service_network[10])

    @property
    def api_url(self) -> str:
        """The API server for host and machines alike."""
        return f"https://{self.gateway}:6443"

    @property
    def store_url(self) -> str:
        """The S3 server for host, machines and pods alike."""
        return f"http://{self.gateway}:7070"

    @property
    def bridge(self) -> str:
        """The host's end of the machines' network."""
        return f"stlab{self.slot}"

    def veth(self, index: int) -> str:
        """The host's end of a machine's cable."""
        return f"stlab{self.slot}-{index}"

    def namespace(self, node: str) -> str:
        """Network namespace of a machine."""
        return f"stlab{self.slot}-{node}"

    @property
    def cgroup(self) -> str:
        """The group that holds a group for each machine."""
        return f"stlab{self.slot}"

    def port(self, offset: int) -> int:
        """Ports on the loopback interface: etcd 0 and 1, controller-manager 2, scheduler 3, kwok 4."""
        return 16440 + 10 * self.slot + offset
