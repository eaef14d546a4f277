"""All machines of a lab: which there are, and bringing them to Ready."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lab import cgroups, clock, golden, kwok, network, node, process
from lab.api import Api
from lab.config import Config
from lab.errors import LabError
from lab.node_files import Machine
from lab.state import State

GPU = "nvidia.com/gpu"
_READY_SECONDS = 90


def machines(state: State, wanted: Config) -> list[Machine]:
    """The machines of a configuration, in its order."""
    return [Machine(state, spec, index) for index, spec in enumerate(wanted.nodes)]


def machine(state: State, wanted: Config, name: str) -> Machine:
    """The machine of this name; raises LabError with the names there are."""
    named = {one.spec.name: one for one in machines(state, wanted)}
    if name not in named:
        raise LabError(f"lab {state.name} has no node {name!r}; it has {', '.join(named)}")
    return named[name]


def make_disks(new: Iterable[Machine]) -> None:
    """Put the images on the disks of machines that are to be started: the longest part of their start."""
    for one in new:
        golden.clone_to(one.disk)


def start(api: Api, wanted: Config, dead: Iterable[Machine]) -> None:
    """Start machines that do not run, and wait until they are Ready with their GPUs and images."""
    dead = list(dead)
    before = {one.spec.name: heartbeat(api, one.spec.name) for one in dead}
    for one in dead:
        node.start(one, len(wanted.nodes), wanted.timings)
    wait_ready(api, before)
    for one in dead:
        node.load_images(one)


def heal(api: Api, wanted: Config, state: State) -> list[str]:
    """Start dead machines (and those whose Node object is gone) anew, end partitions and cordons.

    One that was made a cloud's may be under notice: it starts anew as one of no cloud, with its old disk, on
    which the images are. Returns the names of those started.
    """
    for one in machines(state, wanted):
        if one.metadata_file.exists():
            node.kill(one)
            kwok.remove(api, one.spec.name)
            one.metadata_file.unlink()
    ill = [one for one in machines(state, wanted) if node.init_pid(one) is None or not _known(api, one)]
    for one in ill:
        node.kill(one)
    start(api, wanted, ill)
    for one in machines(state, wanted):
        network.cable(state.addresses, one.index, plugged=True)
        schedulable(api, one.spec.name)
    wait_ready(api, dict.fromkeys((spec.name for spec in wanted.nodes), ""))
    load_images(state, wanted)
    return [one.spec.name for one in ill]


def load_images(state: State, wanted: Config) -> None:
    """Give the machines that run the images that were added since their start."""
    running = [one for one in machines(state, wanted) if node.init_pid(one) is not None]
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(node.load_images, running))


def kill_all(state: State) -> None:
    """End all machines at once, also those whose files were lost: by their control groups."""

    def dead() -> bool:
        alive = cgroups.processes(state.addresses.cgroup)
        for pid in alive:
            process.kill(pid)
        return not alive

    clock.wait_for(f"the end of all machines of lab {state.name}", dead, seconds=20, every=0.05)
    for path in state.pids.glob("guest-*"):
        process.stop(path, grace=0)
    for path in state.pids.glob("node-*"):
        path.unlink()


def schedulable(api: Api, name: str) -> None:
    """End a cordon."""
    api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}}).expect(f"uncordoning {name}")


def wait_ready(api: Api, before: Mapping[str, str]) -> None:
    """Wait until nodes are Ready with their GPUs.

    `before` is name → last heartbeat before the node was started: what its status says is not
    believed until a later one has come. A node that was not started has "".
    """
    unpatched = set(before)

    def ready() -> bool:
        for name in sorted(unpatched):
            if api.merge(f"/api/v1/nodes/{name}/status", node.gpu_patch()).ok:
                unpatched.discard(name)
        there = nodes(api)
        fresh = {name for name in before if name in there and _heartbeat(there[name]) != before[name]}
        return not unpatched and all(
            name in fresh and is_ready(there[name], with_gpus=True) for name in before
        )

    what = f"nodes {', '.join(sorted(before))} Ready (see kubelet.log on their disks)"
    clock.wait_for(what, ready, seconds=_READY_SECONDS)


def nodes(api: Api) -> dict[str, Any]:
    """All Node objects by name, fake ones too."""
    items = api.get("/api/v1/nodes").expect("listing nodes")["items"]
    return {item["metadata"]["name"]: item for item in items}


def heartbeat(api: Api, name: str) -> str:
    """When the kubelet last reported; "none" when there is no such node or report."""
    answer = api.get(f"/api/v1/nodes/{name}")
    return _heartbeat(answer.body) if answer.ok else "none"


def _heartbeat(item: Mapping[str, Any]) -> str:
    conditions = item.get("status", {}).get("conditions", [])
    return next((str(entry["lastHeartbeatTime"]) for entry in conditions if entry["type"] == "Ready"), "none")


def _known(api: Api, one: Machine) -> bool:
    return api.get(f"/api/v1/nodes/{one.spec.name}").ok


def is_ready(item: Mapping[str, Any], *, with_gpus: bool = False) -> bool:
    """Whether a Node object says that pods (with GPUs) can start there now."""
    status = item.get("status", {})
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", [])}
    blocked = any(taint["key"].startswith("node.kubernetes.io/") for taint in item["spec"].get("taints", []))
    gpus = GPU in status.get("allocatable", {})
    return conditions.get("Ready") == "True" and not blocked and (gpus or not with_gpus)
