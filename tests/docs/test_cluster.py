"""The pages' objects and commands on a real API server, with the operator beside it.

What helm installs runs on kwok's nodes, where pods do nothing; the operator's process does their work.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import clock
from lab.cluster import Lab
from lab.config import Config
from lab.kwok import FakeNode
from manifests import render
from tests.cluster.conftest import Operator, lab_name
from tests.docs import running, shell, yamls

pytestmark = pytest.mark.cluster

CAPACITY = {"cpu": "4096", "memory": "64Ti", "nvidia.com/gpu": "1024", "pods": "1000"}
MARK = "karpenter.sh/capacity-type"
NODES = [
    FakeNode(name, {MARK: kind, "topology.kubernetes.io/zone": "zone-a"}, capacity=CAPACITY)
    for name, kind in (("od-1", "on-demand"), ("spot-1", "spot"), ("spot-2", "spot"))
]
SERVED = "/apis/spottrain.dev/v1alpha1"
JOBS = list(yamls.every(yamls.Kind.JOB))
OBJECTS = [
    yamls.example("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}"),
    *yamls.every(yamls.Kind.OBJECT),
]
ON_CLUSTER = [one for one in shell.every() if running.on_cluster(one)]
INSTALL = next(one for one in ON_CLUSTER if one.line.startswith("helm install"))
README_JOB = next(one for one in JOBS if one.block.page == "README.md")
NAMED = {"default": ("llama", "talk", "tr"), "spottrain-demo": ("digits",)}
"""Jobs that pages tell of by name."""


def says(page: str, words: str) -> bool:
    """One of its commands has the words."""
    return any(words in one.line for one in ON_CLUSTER if one.block.page == page)


def order(page: str) -> tuple[bool, bool, str]:
    """First those that find the operator there, then those that install it; last who removes the resource."""
    return says(page, "delete crd"), says(page, "helm install"), page


PAGES: list[str] = sorted({one.block.page for one in ON_CLUSTER}, key=order)


@pytest.fixture(scope="module")
def lab() -> Lab:
    """A lab of its own: pages install the chart, and remove the resource."""
    own = Lab(lab_name("docs"))
    own.up(Config(nodes=()))
    own.add_fake_nodes(NODES)
    return own


@pytest.fixture(scope="module")
def resource(lab: Lab) -> Lab:
    """With the resource."""
    lab.kubectl("apply", "--server-side", "--force-conflicts", "-f", render.CRD)
    lab.kubectl("wait", "--for=condition=Established", f"crd/{render.CRD_NAME}")
    return lab


def dry_run(lab: Lab, *objects: yamls.Object) -> None:
    lab.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=listed(*objects))


def listed(*objects: yamls.Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


@pytest.mark.parametrize("document", JOBS, ids=str)
def test_a_job_or_a_part_of_one_is_accepted(resource: Lab, document: yamls.Document):
    """Its template once more as Kubernetes' own kind: the resource keeps unknown fields in it."""
    template = document.content["spec"]["template"]
    head = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "part"}}
    dry_run(resource, document.content, {**head, "template": template})


@pytest.mark.parametrize("document", OBJECTS, ids=str)
def test_an_object_is_accepted(lab: Lab, document: yamls.Document):
    dry_run(lab, document.content)


class Cluster:
    """One with our release or without, whose operator works as soon as there is one to be."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._lab = lab
        self._operator = Operator(lab, folder / "operator.log")
        self._works = False

    def run(self, command: shell.Command, reader: running.Reader, **capitals: str) -> str:
        """What it printed. After an install the operator is ready, which a pod of kwok's is at once."""
        said = reader.run(command, capitals)
        if command.line.startswith("helm install"):
            clock.wait_for("the resource served", lambda: self._lab.api.get(SERVED).ok, seconds=30)
        self._look()
        return said

    def node(self) -> str:
        """Where a worker runs in the reader's own namespace."""
        pods = self._lab.api.get("/api/v1/namespaces/default/pods").expect("pods")["items"]
        return str(next(name for pod in pods if (name := pod["spec"].get("nodeName"))))

    def _look(self) -> None:
        """Begin the operator's work once the resource is there, and end it when it's gone."""
        served = self._lab.api.get(SERVED).ok
        if served and not self._works:
            self._operator.start()
        if self._works and not served:
            assert self._operator.stop() == 0
        self._works = served

    def uninstall(self) -> None:
        """No release and no job. A resource that was helm's is left, as helm leaves it."""
        line = [render.helm(), "uninstall", "spottrain", "-n", render.NAMESPACE, "--ignore-not-found"]
        subprocess.run(line, env={**os.environ, **self._lab.env()}, capture_output=True, check=True)
        left = {"Namespace", "CustomResourceDefinition"}
        objects = [one for one in render.documents(render.INSTALL.read_text()) if one["kind"] not in left]
        self._lab.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=listed(*objects))
        self._lab.kubectl("-n", render.NAMESPACE, "delete", "configmap", "--all")
        if self._works:
            self._lab.kubectl("delete", "stj", "--all", "--all-namespaces")

    def empty(self) -> None:
        """As it was before anything was installed."""
        self.uninstall()
        self._lab.kubectl("delete", "crd", render.CRD_NAME, "--ignore-not-found")
        clock.wait_for("the resource gone", lambda: not self._lab.api.get(SERVED).ok, seconds=60)
        self._look()

    def live_in(self, reader: running.Reader) -> None:
        """The release is there, and the jobs that pages name run."""
        if self._works:
            return
        self.run(INSTALL, reader)
        for namespace, names in NAMED.items():
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            jobs = [
                {**README_JOB.content, "metadata": {"name": name, "namespace": namespace}} for name in names
            ]
            self._lab.kubectl("apply", "-f", "-", stdin=listed(space, *jobs))
            all_run = ("stj", "--all", "--for=condition=Running", "--timeout=60s")
            self._lab.kubectl("-n", namespace, "wait", *all_run)


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """It is left empty."""
    one = Cluster(lab, tmp_path_factory.mktemp("operator"))
    one.empty()
    yield one
    one.empty()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_as_it_says(cluster: Cluster, lab: Lab, page: str, tmp_path: Path):
    """One after another, on a cluster where the jobs live that it names."""
    reader = running.Reader(tmp_path, lab.env())
    reader.settle(page)
    if says(page, "helm install"):
        cluster.uninstall()
    else:
        cluster.live_in(reader)
    capitals: dict[str, str] = {}
    for command in (one for one in ON_CLUSTER if one.block.page == page):
        if running.NODE.search(command.line) and not capitals:
            capitals = {"NODE": cluster.node()}
        said = cluster.run(command, reader, **capitals)
        head = command.output.partition("\n")[0]
        if head.isupper():
            assert said.split()[: len(head.split())] == head.split(), command
