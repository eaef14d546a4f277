"""The configuration files on a machine's disk. All pure but `write`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import kubeconfig, pki
from lab.config import NodeSpec, Timings
from lab.state import State

PAUSE_IMAGE = "docker.io/lab/pause:1"

# restrict_oom_score_adj: a host without CAP_SYS_RESOURCE may not lower any process's score.
_CONTAINERD = """\
version = 2
root = "{disk}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{pause}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{disk}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{slow}]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{slow}.options]
        BinaryName = "{disk}/{slow}-runc"
"""

# The handler of a RuntimeClass: between making a container and starting it, time for a test to do harm.
SLOW = "slow"
_SLOW_RUNC = """#!/bin/sh
case " $* " in *" start "*) sleep 5 ;; esac
exec runc "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A node of a lab with its place among the others."""

    state: State
    spec: NodeSpec
    index: int

    @property
    def disk(self) -> Path:
        """The folder that is this machine's disk."""
        return self.state.node(self.spec.name)

    @property
    def ip(self) -> str:
        """Its address."""
        return self.state.addresses.node(self.index)

    @property
    def pid_file(self) -> Path:
        """Of the process whose only child is the machine's PID 1."""
        return self.state.pids / f"node-{self.spec.name}"

    @property
    def metadata_file(self) -> Path:
        """Of the process that serves a cloud's metadata in it; there is none while it is of no cloud."""
        return self.disk / "metadata.pid"


def containerd(disk: Path) -> str:
    """The container runtime's settings."""
    return _CONTAINERD.format(disk=disk, pause=PAUSE_IMAGE, slow=SLOW)


def cni(pods: str) -> dict[str, Any]:
    """The pod network on one machine: a bridge, addresses from `pods`, no masquerading."""
    ipam = {
        "type": "host-local",
        "dataDir": "/run/cni-ipam",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge, portmap]}


def kubelet(*, ca: Path, pair: pki.Pair, dns: str, resolv_conf: Path, timings: Timings) -> dict[str, Any]:
    """The kubelet's settings."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pair.cert),
        "tlsPrivateKeyFile": str(pair.key),
        "clusterDNS": [dns],
        "clusterDomain": "cluster.local",
        "resolvConf": str(resolv_conf),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "podLogsDir": "/var/log/pods",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        # All machines share one host: nothing is reserved, measured or collected on behalf of one.
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi"},
        "failSwapOn": False,
        "serializeImagePulls": False,
        "nodeStatusUpdateFrequency": f"{timings.status_update}s",
        "nodeLeaseDurationSeconds": timings.lease,
    }


def write(machine: Machine, timings: Timings) -> None:
    """Put all of them on the machine's disk, with the folders that its PID 1 mounts."""
    disk, state, name = machine.disk, machine.state, machine.spec.name
    for folder in ("cni", "log", "kubelet", "cni-state"):
        (disk / folder).mkdir(parents=True, exist_ok=True)
    subject = f"/O=system:nodes/CN=system:node:{name}"
    pair = pki.certificate(state.pki, f"node-{name}", subject, f"DNS:{name},IP:{machine.ip}")
    ca, addresses = state.pki / "ca.crt", state.addresses
    kubeconfig.write(disk / "kubeconfig", lab=f"lab-{state.name}", server=addresses.api_url, ca=ca, user=pair)
    resolv_conf = disk / "resolv.conf"
    resolv_conf.write_text(f"nameserver {addresses.dns}\n")
    settings = kubelet(ca=ca, pair=pair, dns=addresses.dns, resolv_conf=resolv_conf, timings=timings)
    (disk / "kubelet.json").write_text(json.dumps(settings, indent=1))
    (disk / "cni" / "10-lab.conflist").write_text(json.dumps(cni(addresses.pods(machine.index)), indent=1))
    (disk / "containerd.toml").write_text(containerd(disk))
    slow_runc = disk / f"{SLOW}-runc"
    slow_runc.write_text(_SLOW_RUNC)
    slow_runc.chmod(0o755)
