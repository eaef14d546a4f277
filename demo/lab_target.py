"""The demo on the lab: everything is built here, and a node really dies."""

from pathlib import Path

from demo import facts, target
from demo.errors import DemoError
from demo.kubectl import Programs
from demo.manifests import Store, Workers
from demo.screen import Screen
from demo.target import OperatorImage, Site
from lab import archive, torch_env
from lab.cluster import Lab
from lab.config import GPUS_PER_NODE
from lab.errors import LabError

IMAGE = "docker.io/spottrain/operator:0.1.0"
BUCKET = "spottrain-demo"
WINDOW = 30
"""Seconds from the cloud's notice to the end of the machine: AWS gives 120, others 30."""
REAL_NODES = {"node.kubernetes.io/instance-type": "lab.4gpu"}
"""Tests may have left nodes that no kubelet stands behind."""


class LabTarget:
    """A lab; `root` is the repository, `image` what the operator's image is called there.

    `cloud`: the one whose machines its spot nodes are; without it, none of them can be given notice.
    """

    faults = (facts.NOTICE, facts.KILL)

    def __init__(self, lab: Lab, root: Path, screen: Screen, image: str = IMAGE, *, cloud: str = "") -> None:
        self.agent = cloud
        self._image = image
        self._lab = lab
        self._root = root
        self._screen = screen

    def prepare(self) -> Site:
        """Lab up and healed, operator's image built and loaded, torch installed: only what is missing."""
        try:
            self._screen.say(
                "the lab: a Kubernetes cluster on this machine (first time: about 11 minutes of builds)"
            )
            self._screen.say(self._lab.up())
            for row in self._lab.status():
                if self.agent and row["capacity"] == "spot":
                    self._lab.node_cloud(row["node"], self.agent)
            self._screen.say(f"image {self._image}: build what has changed, load it into the nodes")
            built = archive.describe(self._lab.build_image(self._root, self._image))
            self._screen.say("torch environment for the workers (first time: 5.4 GB, about 2 minutes)")
            torch = torch_env.ensure().resolve()
        except LabError as error:
            raise DemoError(str(error)) from error
        return self._site(built.identity, torch)

    def _site(self, identity: str, torch: Path) -> Site:
        env = self._lab.env()
        programs = Programs({**Programs().env, **env})
        found = target.nodes(programs.get("nodes")["items"])
        keys = {name: env[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        return Site(
            programs=programs,
            operator=OperatorImage(self._image, identity),
            # A quarter of a node each: two nodes can go, and what is left still holds all three.
            workers=Workers(
                self._image, gpus=GPUS_PER_NODE // 4, host_path=str(torch), node_selector=REAL_NODES
            ),
            store=Store(f"s3://{BUCKET}", self._lab.s3_endpoint, env["AWS_REGION"], keys),
            nodes=tuple(node for node in found if node.name in {row["node"] for row in self._lab.status()}),
            own_bucket=True,
        )

    def strike(self, kind: str, *, node: str, pod: str) -> None:
        """The machine's cloud tells it that it is taken, and takes it half a minute later; or kill it now.

        The kernel of a killed one still closes its connections, unless its cable was pulled before.
        """
        del pod
        try:
            if kind == facts.NOTICE:
                self._lab.notice(node, self.agent, WINDOW)
            else:
                if kind == facts.UNPLUG:
                    self._lab.node_partition(node)
                self._lab.node_kill(node)
        except LabError as error:
            raise DemoError(str(error)) from error

    def heal(self) -> None:
        """Start dead nodes, and those that were a cloud's anew."""
        try:
            self._lab.up()
        except LabError as error:
            raise DemoError(str(error)) from error

    def farewell(self) -> str:
        """The lab stays up."""
        name = "" if self._lab.name == "main" else f" --name {self._lab.name}"
        return (
            "The lab is still up. Look around: "
            f'eval "$(python3 -m lab{name} env)"; kubectl get nodes,pods -A\n'
            f"Take it down: python3 -m lab{name} down"
        )
