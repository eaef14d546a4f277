"""Starting and killing a machine.

A machine is one process tree in its own network, pid, mount, uts, ipc and cgroup namespaces. Killing
its PID 1 ends kubelet, containerd and all containers in the same instant: the death of a machine.
"""

import shutil
from pathlib import Path

from lab import cgroups, clock, golden, network, node_files, process, shell
from lab.config import GPUS_PER_NODE, Timings
from lab.node_files import Machine

TAINT = "nvidia.com/gpu=present:NoSchedule"
_SCRIPTS = Path(__file__).parent


def start(machine: Machine, count: int, timings: Timings) -> None:
    """Start a machine that does not run; its disk is made when it has none. Returns at once."""
    state, spec = machine.state, machine.spec
    node_files.write(machine, timings)
    golden.clone_to(machine.disk)
    clear(machine)
    network.add_machine(state.addresses, spec.name, machine.index, count)
    groups = cgroups.add(state.addresses.cgroup, spec.name)
    # A copy: bash reads a script as it goes, and an edit must not change a running machine.
    init = Path(shutil.copy(_SCRIPTS / "node_init.sh", machine.disk / "init.sh"))
    process.spawn(
        [_SCRIPTS / "node_enter.sh", state.addresses.namespace(spec.name), init, *groups],
        log=state.log / f"node-{spec.name}.log",
        pid_file=machine.pid_file,
        env=_settings(machine),
    )


def _settings(machine: Machine) -> dict[str, str]:
    state, spec = machine.state, machine.spec
    return {
        "NODE_NAME": spec.name,
        "NODE_DISK": str(machine.disk),
        "NODE_CGROUP": f"{state.addresses.cgroup}/{spec.name}",
        "NODE_IP": machine.ip,
        "NODE_LABELS": ",".join(f"{key}={value}" for key, value in spec.labels().items()),
        "NODE_TAINTS": TAINT,
        "LAB_BIN": str(state.bin),
        "LAB_PROXY_KUBECONFIG": str(state.folder / "kube-proxy.kubeconfig"),
        "POD_NETWORK": str(state.addresses.pod_network),
    }


def init_pid(machine: Machine) -> int | None:
    """The machine's PID 1 by its number on the host; None when the machine does not run."""
    outer = process.find(machine.pid_file)
    inner = process.children(outer) if outer else []
    return inner[0] if inner else None


def kill(machine: Machine) -> None:
    """Sudden death: no process of it gets to do anything more. Its disk and its Node object stay."""
    if (pid := init_pid(machine)) is not None:
        process.kill(pid)
        # The parent of PID 1 ends when the kernel has ended all the others.
        clock.poll(lambda: process.find(machine.pid_file) is None, seconds=15, every=0.02)
    process.stop(machine.pid_file, grace=0)
    clear(machine)


def clear(machine: Machine) -> None:
    """Remove what a machine that does not run leaves in the kernel."""
    addresses = machine.state.addresses
    cgroups.remove(addresses.cgroup, machine.spec.name)
    network.remove_machine(addresses, machine.spec.name, machine.index)


def wipe(machine: Machine) -> None:
    """Throw the disk away: the next start is a new machine of the same name."""
    shutil.rmtree(machine.disk, ignore_errors=True)


def ctr(machine: Machine, *words: shell.Word) -> str:
    """Talk to the machine's containerd, in the namespace the kubelet uses."""
    socket = f"/proc/{init_pid(machine)}/root/run/containerd/containerd.sock"
    return shell.run("ctr", "--address", socket, "--namespace", "k8s.io", *words)


def gpu_patch() -> dict[str, dict[str, dict[str, str]]]:
    """What a GPU device plugin would bring about in the node's status."""
    count = {"nvidia.com/gpu": str(GPUS_PER_NODE)}
    return {"status": {"capacity": count, "allocatable": count}}


def load_images(machine: Machine) -> None:
    """Import the images that were added since the machine's disk was made."""
    for reference, path in golden.lacking(machine.disk).items():
        ctr(machine, "images", "import", path)
        golden.note(machine.disk, reference, path)
