"""The lab as one object: what the command line, the tests and the demo use."""

import dataclasses
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import (
    archive,
    build,
    cgroups,
    clock,
    config,
    controlplane,
    fleet,
    golden,
    images,
    inside,
    kernel,
    kwok,
    metadata,
    network,
    node,
    packages,
    pod_processes,
    preflight,
    shell,
    state,
    store,
)
from lab.api import Api
from lab.config import Addresses, Config
from lab.errors import LabError
from lab.gateway import Gateway
from lab.kwok import FakeNode
from lab.node_files import Machine
from lab.notices import Notice
from lab.pod_processes import PodProcess
from lab.proxy import Proxy


class Lab:
    """A Kubernetes cluster on this machine, by name. Every method raises LabError when it cannot do it."""

    def __init__(self, name: str = config.MAIN) -> None:
        self.name = config.check_name(name)
        self.state = state.State(name)

    # -- what it is -------------------------------------------------------------------------------

    @property
    def addresses(self) -> Addresses:
        """Its networks and ports."""
        return self.state.addresses

    @property
    def kubeconfig(self) -> Path:
        """File with all rights in the cluster."""
        return self.state.admin

    @property
    def s3_endpoint(self) -> str:
        """URL of the object store, the same for host and pods."""
        return self.addresses.store_url

    def env(self) -> dict[str, str]:
        """Environment in which kubectl, helm and S3 clients find this lab."""
        path = shell.environment(None).get("PATH", "/usr/bin:/bin")
        own = str(self.state.bin)
        kept = [folder for folder in path.split(":") if folder != own]
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": ":".join([own, *kept]),
            **store.environment(self.state),
        }

    def config(self) -> Config | None:
        """What it was started with; None when it is down."""
        return self.state.started()

    def running(self) -> bool:
        """Whether it was started to the end and its API server lives."""
        return self.config() is not None and controlplane.running(self.state)

    # -- up and down ------------------------------------------------------------------------------

    def up(self, wanted: Config | None = None) -> str:
        """Bring it to the state `wanted`: all nodes started, Ready and schedulable.

        Returns a sentence about what was done. A lab that runs is used again; it is an error to want
        another configuration of it.
        """
        wanted = config.check(wanted or self.config() or Config())
        preflight.check_privileges()
        packages.install()
        preflight.check_space()
        programs = build.build_all()
        golden.add(images.pause(programs["pause"]), images.base())
        with self.state.locked():
            if self.config() is not None and controlplane.stored(self.state):
                return self._again(wanted)
            started = clock.now()
            self.state.take_slot()
            self._clear()
            self._start(wanted, programs)
            return (
                f"lab {self.name} is up: {len(wanted.nodes)} nodes Ready after {clock.now() - started:.1f} s"
            )

    def down(self, *, keep_store: bool = False) -> None:
        """End it and leave nothing in the kernel. Keys stay, and with `keep_store` the stored objects."""
        preflight.check_privileges()
        with self.state.locked():
            if not self.state.exists():
                return
            self._clear()
            for folder in (self.state.etcd, self.state.folder / "nodes", self.state.log):
                shutil.rmtree(folder, ignore_errors=True)
            if not keep_store:
                shutil.rmtree(self.state.store, ignore_errors=True)

    def remove(self) -> None:
        """Take it down and forget it: keys, slot and all."""
        self.down()
        shutil.rmtree(self.state.folder, ignore_errors=True)

    def _start(self, wanted: Config, programs: Mapping[str, Path]) -> None:
        preflight.check_network(self.addresses)
        for folder in (self.state.etcd, self.state.folder / "nodes"):
            shutil.rmtree(folder, ignore_errors=True)
        self.state.prepare()
        self._link(programs)
        kernel.raise_limits(state.HOST_SETTINGS)
        network.add_bridge(self.addresses)
        machines = fleet.machines(self.state, wanted)
        with ThreadPoolExecutor(max_workers=1) as meanwhile:
            disks = meanwhile.submit(fleet.make_disks, machines)
            controlplane.start(self.state, wanted)
            store.start(self.state)
            kwok.start(self.state)
            disks.result()
        fleet.start(self.api, wanted, machines)
        self.wait_namespace("default")
        self.state.save(wanted)

    def _again(self, wanted: Config) -> str:
        if wanted != self.config():
            raise LabError(
                f"lab {self.name} runs with another configuration: `{config.command(self.name)} down` first"
            )
        kernel.raise_limits(state.HOST_SETTINGS)
        healed = controlplane.heal(self.state, wanted)
        for part in (store, kwok):
            if not part.running(self.state):
                part.start(self.state)
                healed.append(part.NAME)
        healed += fleet.heal(self.api, wanted, self.state)
        also = f"; brought back: {', '.join(healed)}" if healed else ""
        return f"lab {self.name} is already up{also}"

    def _clear(self) -> None:
        """Remove every trace of this lab from the kernel, whether it runs or was killed."""
        before = self.config() or Config()
        self.state.forget()
        fleet.kill_all(self.state)
        for machine in fleet.machines(self.state, before):
            node.clear(machine)
        kwok.stop(self.state)
        store.stop(self.state)
        controlplane.stop(self.state)
        network.remove_all(self.addresses)
        cgroups.remove(self.addresses.cgroup)
        if not state.others_started(self.name):
            kernel.restore_limits(state.HOST_SETTINGS)

    def _link(self, programs: Mapping[str, Path]) -> None:
        shutil.rmtree(self.state.bin)
        self.state.bin.mkdir()
        for name, path in programs.items():
            (self.state.bin / name).symlink_to(path)

    # -- nodes ------------------------------------------------------------------------------------

    def node_kill(self, name: str) -> None:
        """Sudden death of a machine: all its processes end at once; its Node object stays."""
        with self.state.locked():
            node.kill(self._machine(name))

    def node_start(self, name: str, *, wipe: bool = False) -> None:
        """Start a machine that was killed and wait until it is Ready and schedulable.

        It has its old disk; with `wipe` an empty one, as a new machine of the same name. One that
        runs is only made schedulable.
        """
        with self.state.locked():
            machine = self._machine(name)
            if node.init_pid(machine) is None:
                if wipe:
                    node.wipe(machine)
                fleet.start(self.api, self._config(), [machine])
            fleet.schedulable(self.api, name)
            fleet.wait_ready(self.api, {name: ""})

    def node_drain(self, name: str, *, timeout: float = 120) -> None:
        """Cordon the node and evict its pods through the Eviction API; returns when they are gone."""
        self._machine(name)
        flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={timeout:.0f}s")
        self.kubectl("drain", name, *flags)

    def node_back(self, name: str) -> None:
        """The machine is replaced by a new one of the same name: new Node object, empty disk, GPUs and all.

        What ran on the old one ends at once. Waits until the new one is Ready.
        """
        with self.state.locked():
            machine = self._machine(name)
            node.kill(machine)
            kwok.remove(self.api, name)
            node.wipe(machine)
            fleet.start(self.api, self._config(), [machine])

    def node_cloud(self, name: str, cloud: str) -> None:
        """Make it a machine of that cloud (aws, gcp, azure, alibaba): its Node's providerID, and metadata.

        The cloud has nothing to tell it. `node_back` makes it a machine of no cloud again, and so does `up`.
        """
        with self.state.locked():
            machine = self._machine(name)
            metadata.adopt(self.api, machine, cloud)
            metadata.say(machine, cloud)

    def notice(self, name: str, cloud: str, window: float) -> Notice:
        """That cloud's metadata service tells the machine that it is taken in so many seconds, and so it is.

        The notice is visible within two seconds, and can be withdrawn. A process that ends before the window
        is over leaves the machine alive.
        """
        with self.state.locked():
            machine = self._machine(name)
            metadata.adopt(self.api, machine, cloud)
            return Notice(machine, cloud, window)

    def node_partition(self, name: str) -> None:
        """Cut the machine off from the network; it goes on running."""
        network.cable(self.addresses, self._machine(name).index, plugged=False)

    def node_heal(self, name: str) -> None:
        """End what `node_partition` did."""
        network.cable(self.addresses, self._machine(name).index, plugged=True)

    def node_exec(self, name: str, *words: shell.Word, timeout: float | None = None) -> str:
        """Run a program inside the machine's namespaces to its end; returns what it printed."""
        return inside.run(self._machine(name), *words, timeout=timeout)

    def node_spawn(self, name: str, *words: shell.Word, log: Path) -> inside.Guest:
        """Start a program inside the machine's namespaces, such as a fake metadata server on METADATA_IP.

        It ends with the machine, or when its `stop` is called.
        """
        return inside.spawn(self._machine(name), *words, log=log)

    def node_alive(self, name: str) -> bool:
        """Whether the machine runs."""
        return node.init_pid(self._machine(name)) is not None

    def pod_processes(self) -> list[PodProcess]:
        """What runs in pods on all machines, also in those that the API server knows nothing of any more."""
        return pod_processes.find(self.addresses.cgroup)

    def add_fake_nodes(self, nodes: Iterable[FakeNode]) -> None:
        """Make nodes that kwok plays, and wait until they are Ready."""
        wanted = list(nodes)
        for fake in wanted:
            kwok.add(self.api, fake)
        names = {fake.name for fake in wanted}
        clock.wait_for(f"fake nodes {sorted(names)} Ready", lambda: names <= self._ready(), seconds=30)

    def remove_fake_nodes(self, names: Iterable[str]) -> None:
        """Delete nodes that `add_fake_nodes` made."""
        for name in names:
            kwok.remove(self.api, name)

    def _config(self) -> Config:
        if (started := self.config()) is None:
            raise LabError(f"lab {self.name} is down: `{config.command(self.name)} up` starts it")
        return started

    def _machine(self, name: str) -> Machine:
        return fleet.machine(self.state, self._config(), name)

    def _ready(self) -> set[str]:
        return {name for name, item in fleet.nodes(self.api).items() if fleet.is_ready(item)}

    # -- the control plane ------------------------------------------------------------------------

    def api_stop(self) -> None:
        """End the API server; nodes, pods, controllers and the store go on. `api_start` brings it back."""
        with self.state.locked():
            self._config()
            controlplane.stop_api(self.state)

    def api_start(self) -> None:
        """Start the API server that was stopped, with all its objects; it answers on return."""
        with self.state.locked():
            controlplane.start_api(self.state, self._config())

    def controllers_stop(self) -> None:
        """End kube-controller-manager and kube-scheduler, as in a cluster each outage of 10 s does.

        There they lose the leases by which they are elected. The lab's hold none: left alone they go on with
        what they knew before, and watch again up to some minutes after the API server is back.
        """
        with self.state.locked():
            self._config()
            controlplane.stop_controllers(self.state)

    def controllers_start(self) -> None:
        """Start those that `controllers_stop` ended; the API server must answer."""
        with self.state.locked():
            controlplane.heal(self.state, self._config())

    def kwok_restart(self) -> None:
        """Start the kubelet of all fake nodes anew; they report once their leases of 40 s have run out.

        After an outage kwok asks again after up to a minute, and after another one if what it knows is too
        old by then; a kubelet does so within 7 s.
        """
        with self.state.locked():
            self._config()
            kwok.stop(self.state)
            kwok.start(self.state)

    def api_pause(self) -> None:
        """Freeze the API server: connections stay open, and nothing is answered."""
        with self.state.locked():
            self._config()
            controlplane.pause_api(self.state)

    def api_resume(self) -> None:
        """End what `api_pause` did; it answers on return."""
        self.api_start()

    def proxy(self) -> Proxy:
        """A TCP proxy in front of the API server: blackholes, resets, refusals. Close it afterwards."""
        return Proxy((self.addresses.gateway, controlplane.API_PORT))

    def gateway(self) -> Gateway:
        """An HTTPS proxy in front of the API server: chosen answers, cut watches. Close it afterwards."""
        return Gateway(self.state)

    def kubeconfig_via(self, front: Proxy | Gateway) -> Path:
        """Kubeconfig with all rights that goes through a proxy; for an operator under test."""
        port = front.url.rpartition(":")[2]
        return controlplane.write_kubeconfig(self.state, f"via-{port}", front.url)

    def limit_controller_manager(self, qps: int | None, burst: int | None) -> None:
        """Start kube-controller-manager anew with other limits of its own; None is Kubernetes' default."""
        with self.state.locked():
            changed = dataclasses.replace(self._config(), kcm_qps=qps, kcm_burst=burst)
            controlplane.restart_controllers(self.state, changed)
            self.state.save(changed)

    # -- the object store -------------------------------------------------------------------------

    def store_stop(self) -> None:
        """End the S3 server: connections are refused. What it has acknowledged is kept."""
        with self.state.locked():
            self._config()
            store.stop(self.state)

    def store_start(self) -> None:
        """Start the S3 server that was stopped, with all its objects; it answers on return."""
        with self.state.locked():
            self._config()
            if not store.running(self.state):
                store.start(self.state)

    # -- objects and images -----------------------------------------------------------------------

    @property
    def api(self) -> Api:
        """The API server, for what kubectl would be slow at."""
        return controlplane.api(self.state)

    def kubectl(self, *words: shell.Word, stdin: str | None = None, timeout: float | None = None) -> str:
        """Run kubectl as administrator; returns its output."""
        return shell.run(self.state.bin / "kubectl", *words, stdin=stdin, env=self.env(), timeout=timeout)

    def wait_namespace(self, name: str) -> None:
        """Wait until pods can be created in a new namespace: its service account comes a little later."""
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        clock.wait_for(f"the service account of {name}", lambda: self.api.get(account).ok, seconds=20)

    def build_image(self, dockerfile_dir: Path, tag: str) -> Path:
        """Build a Dockerfile on the lab's base and load it; returns the archive."""
        built = images.built(dockerfile_dir, tag)
        self.load_image(built.archive)
        return built.archive

    def load_image(self, tar: Path) -> None:
        """Give an image archive to the machines that run, and to all that start later."""
        golden.add(archive.describe(tar))
        with self.state.locked():
            if (started := self.config()) is not None:
                fleet.load_images(self.state, started)

    def remove_image(self, reference: str) -> None:
        """Give an image to no new machine any more; those that have it keep it."""
        golden.remove(reference)

    def status(self) -> list[dict[str, Any]]:
        """One row for each node: name, capacity, zone, machine (running or dead), ready."""
        ready = self._ready() if self.running() else set()
        return [
            {
                "node": machine.spec.name,
                "capacity": machine.spec.capacity,
                "zone": machine.spec.zone,
                "machine": "dead" if node.init_pid(machine) is None else "running",
                "ready": machine.spec.name in ready,
            }
            for machine in fleet.machines(self.state, self._config())
        ]
