"""The control plane that everything is measured on: the lab `bench`, with machines that kwok plays."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab.cluster import Lab
from lab.config import DEFAULT_TIMINGS, Config
from lab.kwok import FakeNode

NODES = 64
GPUS = 16
ZONES = ("zone-a", "zone-b", "zone-c")


def up() -> Lab:
    """Bring it up with Kubernetes' own timings and limits, and no nodes."""
    lab = Lab("bench")
    lab.down()
    lab.up(Config(nodes=(), timings=DEFAULT_TIMINGS))
    return lab


@contextmanager
def fleet(lab: Lab, count: int = NODES, gpus: int = GPUS) -> Iterator[None]:
    """That many spot nodes of so many GPUs in AWS, for a while."""
    nodes = [_node(number, ZONES[number % len(ZONES)], gpus) for number in range(count)]
    lab.add_fake_nodes(nodes)
    try:
        yield
    finally:
        lab.remove_fake_nodes([node.name for node in nodes])


def _node(number: int, zone: str, gpus: int) -> FakeNode:
    return FakeNode(
        f"spot-{number}",
        labels={"karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": zone},
        capacity={"nvidia.com/gpu": str(gpus)},
        provider_id=f"aws:///{zone}/i-{number}",
    )
