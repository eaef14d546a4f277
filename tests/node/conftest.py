"""The operator from its image and chart on the shared lab's real kubelets, and jobs for it."""

import secrets
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest

from lab import node_files, shell
from lab.cluster import Lab
from lab.errors import LabError
from manifests import render
from tests.cluster import play
from tests.release import IMAGE, Release

PROGRAMS = Path(__file__).parent / "programs"
BUCKET = "node-tests"
PATIENCE = 90
"""Seconds; the lab's control plane calls a node NotReady after 16."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a failure, what the operator and the API said of the job: it is gone when the report is read."""
    report = yield
    place = getattr(item, "funcargs", {}).get("site")
    if report.when == "call" and report.failed and place is not None:
        report.sections.append(("the job and its operator", place.account()))
    return report


@pytest.fixture(scope="session")
def installed(lab: Lab) -> Lab:
    """The image is on the nodes, and no operator for all namespaces (of a demo) is in the way."""
    lab.build_image(render.ROOT, IMAGE)
    helm = [
        render.helm(),
        "uninstall",
        "spottrain",
        "--namespace",
        "spottrain-system",
        "--ignore-not-found",
        "--wait",
    ]
    shell.run(*helm, env=lab.env())
    return lab


@pytest.fixture(scope="session")
def place(installed: Lab) -> Iterator["Site"]:
    """A namespace with its own operator, programs and keys to the object store."""
    one = Site(installed, f"node-{secrets.token_hex(3)}")
    one.prepare()
    yield one
    one.clear()


@pytest.fixture
def site(place: "Site") -> Iterator["Site"]:
    """The place with no job in it, a prefix of the test's own in the store, and all machines well.

    Its operator knows of no loss: it would rather have workers on the on-demand node, where it runs itself,
    than in pools that have just lost others, and would go with that node when a test takes it.
    """
    place.forget_losses()
    place.draw_prefix()
    yield place
    for row in place.lab.status():
        place.lab.node_start(str(row["node"]))
    place.remove_job()


@pytest.fixture
def slow(lab: Lab) -> Iterator[str]:
    """Name of a RuntimeClass whose containers take seconds between being made and started."""
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"generateName": "slow-"},
        "handler": node_files.SLOW,
    }
    name = lab.api.call("POST", classes, body).expect("a RuntimeClass")["metadata"]["name"]
    yield str(name)
    lab.api.call("DELETE", f"{classes}/{name}").expect("removing it")


class Site:
    """Where a job runs."""

    def __init__(self, lab: Lab, namespace: str) -> None:
        self.lab = lab
        self.namespace = namespace
        self.job = play.Job(lab.api, namespace)
        self.prefix = ""
        self._losses = False
        """The operator has seen some."""
        self._release = Release(lab, namespace)
        keys = lab.env()
        self.store = boto3.client(
            "s3",
            endpoint_url=lab.s3_endpoint,
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
            region_name=keys["AWS_REGION"],
        )

    def prepare(self) -> None:
        self.lab.kubectl("create", "namespace", self.namespace)
        self.lab.wait_namespace(self.namespace)
        self.add_programs("programs", sorted(PROGRAMS.glob("*.py")))
        self.add_keys("store")
        if BUCKET not in [one["Name"] for one in self.store.list_buckets()["Buckets"]]:
            self.store.create_bucket(Bucket=BUCKET)
        self.install()

    def install(self, *options: str) -> None:
        """Its operator, with further options of helm."""
        self._release.install(IMAGE, *options)

    def clear(self) -> None:
        self._release.uninstall()
        self.lab.kubectl("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")

    def account(self) -> str:
        """The job's status, its pods, the nodes, and the end of the operator's log."""
        questions = (
            ("get", "stj", "tr", "--output=yaml"),
            ("get", "pods", "--output=wide"),
            ("get", "nodes"),
            ("logs", f"deployment/{self.namespace}-op", "--tail=300"),
        )
        return "\n".join(self._answer(*words) for words in questions)

    def _answer(self, *words: str) -> str:
        try:
            return self._kubectl(*words)
        except LabError as error:
            return str(error)

    def _kubectl(self, *words: str) -> str:
        return self.lab.kubectl("--namespace", self.namespace, *words)

    def add_programs(self, name: str, paths: Sequence[Path]) -> None:
        """A ConfigMap of these files."""
        self._kubectl("create", "configmap", name, *(f"--from-file={path}" for path in paths))

    def add_keys(self, name: str) -> None:
        """A Secret with the keys of the lab's store."""
        keys = self.lab.env()
        words = [
            f"--from-literal={one}={keys[one]}" for one in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        ]
        self._kubectl("create", "secret", "generic", name, *words)

    def draw_prefix(self) -> None:
        """Another place in the store from here on."""
        self.prefix = secrets.token_hex(4)

    def start_over(self) -> None:
        """No job, and nothing of it in the store."""
        self.remove_job()
        self.draw_prefix()

    def remove_job(self) -> None:
        """Delete the job and wait until its last pod is gone."""
        found = self.lab.api.get(self.job.path)
        self._losses |= found.ok and bool((found.body.get("status") or {}).get("reclaims"))
        self._kubectl("delete", "stj", "tr", "--ignore-not-found")
        self.job.wait("the pods gone", lambda: not self.job.pods(), 60)

    def forget_losses(self) -> None:
        """A new operator, without what the one before has kept of pools."""
        if not self._losses:
            return
        operator = f"{self.namespace}-op"
        self._kubectl("delete", "configmap", f"{operator}-pools", "--ignore-not-found")
        self._kubectl("rollout", "restart", f"deployment/{operator}")
        self._kubectl("rollout", "status", f"deployment/{operator}", "--timeout=60s")
        self._losses = False

    def let_rings_end(self) -> None:
        """The annotation that ring.py waits for."""
        self._kubectl("annotate", "pods", "--selector=spottrain.dev/job=tr", "test/end=now")

    def manifest(self, program: str, **spec: Any) -> play.Object:
        """A job of that program on the image that was built."""
        container = {
            "name": "trainer",
            "image": IMAGE,
            "command": ["python3", f"/programs/{program}"],
            "envFrom": [{"secretRef": {"name": "store"}}],
            "env": [{"name": "SPOTTRAIN_SCRATCH", "value": "/tmp"}],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
            "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
        }
        pod = {
            "containers": [container],
            "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
        }
        whole = {
            "workers": 1,
            "checkpoint": {
                "uri": f"s3://{BUCKET}/{self.prefix}",
                "endpoint": self.lab.s3_endpoint,
                "region": "us-east-1",
                "interval": "2s",
            },
            "template": {"spec": pod},
        }
        return {
            "apiVersion": "spottrain.dev/v1alpha1",
            "kind": "SpotTrainingJob",
            "metadata": {"name": "tr"},
            "spec": {**whole, **spec},
        }

    def commits(self) -> list[tuple[str, int]]:
        """(attempt ID, step) of every commit in the store, the oldest step first."""
        found = self.store.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.prefix}/steps/").get("Contents", [])
        names = [one["Key"].split("/")[-2] for one in found if one["Key"].endswith("/COMMIT.json")]
        return sorted(
            ((name.split("-")[1], int(name.split("-")[0])) for name in names), key=lambda one: one[1]
        )

    def log(self, pod: str) -> str:
        return self.lab.kubectl("--namespace", self.namespace, "logs", pod)

    def node_of(self, pod: str) -> str:
        return str(self.job.pod(pod)["spec"]["nodeName"])
