"""What the notice agents take: memory and CPU, as the host's kernel counts them."""

import os
from collections.abc import Collection
from pathlib import Path

from demo.manifests import SYSTEM_NAMESPACE
from lab import clock, process
from lab.cluster import Lab

_PROGRAM = "spottrain-agent"
_TICKS = os.sysconf("SC_CLK_TCK")


def peak_mib(lab: Lab) -> float:
    """The most memory that any of them has had resident."""
    return max(process.peak_bytes(pid) for pid in _processes(lab).values()) / 2**20


def millicores(lab: Lab, nodes: Collection[str], seconds: float) -> float:
    """The most that one of those on these nodes uses during the next seconds."""
    pids = [pid for node, pid in _processes(lab).items() if node in nodes]
    before, begun = [_cpu_seconds(pid) for pid in pids], clock.now()
    clock.poll(lambda: clock.now() >= begun + seconds, seconds=2 * seconds, every=0.5)
    used = max(_cpu_seconds(pid) - earlier for pid, earlier in zip(pids, before, strict=True))
    return 1000 * used / (clock.now() - begun)


def _processes(lab: Lab) -> dict[str, int]:
    """By the names of their nodes."""
    pods = lab.api.get(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods").expect("pods")["items"]
    nodes = {pod["metadata"]["uid"]: str(pod["spec"].get("nodeName")) for pod in pods}
    found = [one for one in lab.pod_processes() if _PROGRAM in one.command]
    return {nodes[one.pod]: one.pid for one in found if one.pod in nodes}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
