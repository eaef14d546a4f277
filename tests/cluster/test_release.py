"""The chart as a release, beside running jobs: upgraded, without what it doesn't bring, on tainted nodes.

On a lab of its own, since the resource is the whole cluster's. kwok plays the machines, so the release's pods
do nothing; the operator is a process with the rights of the release's account.
"""

import contextlib
import json
import secrets
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab import clock, errors, shell
from lab.cluster import Lab
from lab.config import Config
from lab.kwok import FakeNode
from manifests import render
from tests.cluster import play, rights
from tests.cluster.conftest import ROOT, Operator, lab_name

PREVIOUS = "a2028dbd11983f2e969294f106e9ae8bf9592f92"
"""The release before. As long as there is none: the first whole operator."""
WITH_INDEXES = "4160144c7b9be2b945673c7a59c3a4546db7a9c4"
"""As long as `PREVIOUS` knows no Independent jobs: one that does."""
NODES = {f"n{number}": f"zone-{'ab'[number % 2]}" for number in range(4)}
TAINT = {"key": "acme.com/system", "value": "true", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    """A control plane without machines and without the resource."""
    lab = Lab(lab_name("release"))
    lab.remove()
    try:
        lab.up(Config(nodes=(), audit=True))
        yield lab
    finally:
        lab.remove()


@pytest.fixture
def previous(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The source of the release before, or of the commit that a test names, out of the history."""
    folder = tmp_path / "previous"
    folder.mkdir()
    packed, commit = folder / "source.tar", getattr(request, "param", PREVIOUS)
    line = ["git", "-C", str(ROOT), "archive", f"--output={packed}", commit, "charts", "crds", "operator"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no history here, git fetch --unshallow: {done.stderr.strip()}")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Release:
    """`helm` for the one release of these tests, under the name and in the namespace of docs/install.md."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def helm(self, verb: str, *line: shell.Word) -> str:
        return shell.run(
            *(render.helm(), verb, "spottrain", *line, "--namespace", rights.NAMESPACE), env=self._lab.env()
        )

    def pods(self) -> list[dict[str, Any]]:
        own = "labelSelector=app.kubernetes.io%2Fcomponent%3Doperator"
        found = self._lab.api.get(f"/api/v1/namespaces/{rights.NAMESPACE}/pods?{own}")
        items: list[dict[str, Any]] = found.expect("the release's pods")["items"]
        return items


@pytest.fixture
def release(own: Lab) -> Iterator[Release]:
    """None yet; afterwards neither release nor resource is left."""
    own.kubectl("delete", "namespace", rights.NAMESPACE, "--ignore-not-found")
    one = Release(own)
    yield one
    with contextlib.suppress(errors.LabError):
        one.helm("uninstall", "--wait")
    own.kubectl("delete", "crd", render.CRD_NAME, "--ignore-not-found")


@contextlib.contextmanager
def machines(lab: Lab, *taints: Mapping[str, str]) -> Iterator[None]:
    """Four on-demand nodes in two zones, for a while."""
    zones = {name: {**play.ON_DEMAND, "topology.kubernetes.io/zone": zone} for name, zone in NODES.items()}
    lab.add_fake_nodes([FakeNode(name, labels=labels, taints=taints) for name, labels in zones.items()])
    yield
    lab.remove_fake_nodes(NODES)


Launch = Callable[[str, Mapping[str, str]], Operator]


@pytest.fixture
def operator(own: Lab, tmp_path: Path) -> Iterator[Launch]:
    """Starts an operator with the release's account; all are ended afterwards."""
    with contextlib.ExitStack() as ended:

        def launch(name: str, environment: Mapping[str, str]) -> Operator:
            account = rights.kubeconfig(own, tmp_path / "kubeconfig")
            one = Operator(own, tmp_path / f"{name}.log", {**environment, "KUBECONFIG": str(account)})
            one.launch()
            ended.callback(one.kill)
            return one

        yield launch


@pytest.fixture
def job(own: Lab) -> Iterator[play.Job]:
    """A namespace of the test's own, with a name for one job in it and machines for its workers."""
    namespace = f"t-{secrets.token_hex(4)}"
    own.kubectl("create", "namespace", namespace)
    own.wait_namespace(namespace)
    with machines(own):
        yield play.Job(own.api, namespace)
    own.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


def lives(job: play.Job) -> dict[str, tuple[str, str]]:
    """Each pod's own identity and its phase."""
    return {name: (one["metadata"]["uid"], one["status"]["phase"]) for name, one in job.pods().items()}


def ready(one: Operator) -> None:
    clock.wait_for("the operator ready", one.ready, seconds=60)


def heeded(job: play.Job, change: play.Object) -> None:
    """The operator has looked at the whole job since that edit."""
    generation = job.patch(change).expect("the job, edited")["metadata"]["generation"]
    job.wait("the operator's word", lambda: job.status()["observedGeneration"] == generation)


def test_d4_an_upgrade_restarts_no_worker_and_new_fields_are_kept(
    own: Lab, release: Release, operator: Launch, job: play.Job, previous: Path
) -> None:
    """As docs/install.md has it: `helm upgrade` and nothing else. The job, its workers and counts go on."""
    release.helm("install", previous / "charts/spottrain", "--create-namespace", "--wait")
    old = operator("old", {"PYTHONPATH": str(previous / "operator")})
    ready(old)
    job.applied(play.manifest(spot={"onDemandFloor": 1}))
    job.wait_running(1)
    job.evict("tr-2-1")
    job.wait_running(2)
    before, counted = lives(job), job.status()["reclaims"]
    assert "progressTimeout" not in job.patch({"spec": {"progressTimeout": "10m"}}).expect("the job")["spec"]

    release.helm("upgrade", ROOT / "charts/spottrain", "--wait")
    assert old.stop() == 0
    new = operator("new", {})
    ready(new)
    heeded(job, {"spec": {"progressTimeout": "10m"}})
    assert job.get()["spec"]["progressTimeout"] == "10m"
    assert lives(job) == before
    assert (job.status()["attempt"], job.status()["reclaims"]) == (2, counted)

    job.evict("tr-2-2")
    job.wait_running(3)
    assert job.status()["reclaims"] == counted + 1
    after = lives(job)
    assert new.stop() == 0
    assert "Traceback" not in new.log.read_text()
    assert list(rights.denied(own)) == []
    release.helm("uninstall", "--wait")
    assert job.get()["spec"]["progressTimeout"] == "10m"
    assert lives(job) == after


@pytest.mark.parametrize("previous", [WITH_INDEXES], indirect=True, ids=["indexes"])
def test_d4_after_an_upgrade_running_indexes_go_on_and_finished_ones_never_run_again(
    release: Release, operator: Launch, job: play.Job, previous: Path
) -> None:
    release.helm("install", previous / "charts/spottrain", "--create-namespace", "--wait")
    old = operator("old", {"PYTHONPATH": str(previous / "operator")})
    ready(old)
    job.applied(play.manifest(mode="Independent", workers=6, parallelism=4, maxFailures=None))
    job.wait("four run", lambda: len(running(job)) == 4)
    job.end("tr-0-1", 0)
    job.wait("index 0 done and another run", lambda: len(running(job)) == 4 and "tr-4-1" in running(job))
    job.wait("that it is written", lambda: job.status().get("completedIndexes") == "0")
    job.vanish("tr-0-1")
    before = lives(job)

    release.helm("upgrade", ROOT / "charts/spottrain", "--wait")
    assert old.stop() == 0
    new = operator("new", {})
    ready(new)
    heeded(job, {"spec": {"ttlAfterFinished": "10h"}})
    assert lives(job) == before
    for name in running(job):
        job.end(name, 0)
    job.wait("the last index", lambda: running(job) == ["tr-5-1"])
    job.end("tr-5-1", 0)
    job.wait_phase("Complete")
    assert job.status()["completedIndexes"] == "0-5"
    assert sorted(job.pods()) == [f"tr-{index}-1" for index in range(1, 6)]


def running(job: play.Job) -> list[str]:
    return sorted(name for name, one in job.pods().items() if one["status"]["phase"] == "Running")


def test_d4_an_operator_whose_resource_is_older_says_which_fields_are_missing_and_works_on(
    own: Lab, release: Release, operator: Launch, job: play.Job, previous: Path
) -> None:
    own.kubectl("apply", "-f", previous / "crds")
    release.helm("install", ROOT / "charts/spottrain", "--set=crds.enabled=false", "--create-namespace")
    one = operator("alone", {})
    older = f"the resource {render.CRD_NAME} is older than this operator and drops spec."
    clock.wait_for("the fault at /readyz", lambda: older in one.get("/readyz"), seconds=60)
    assert older in one.log.read_text()
    assert one.get("/healthz") == "ok"
    job.applied(play.manifest())
    job.wait_running(1)
    job.evict("tr-1-1")
    job.wait_running(2)

    own.kubectl("apply", "-f", ROOT / "crds")
    ready(one)
    assert one.log.read_text().count("is older than this operator") == 1


def test_it_installs_where_all_nodes_are_tainted_and_nobody_has_the_prometheus_operator(
    own: Lab, release: Release
) -> None:
    assert own.api.get("/apis/monitoring.coreos.com/v1").status == 404
    with machines(own, TAINT):
        release.helm("install", ROOT / "charts/spottrain", "--create-namespace")

        def refused() -> bool:
            conditions = [one for pod in release.pods() for one in pod["status"].get("conditions", ())]
            return any("4 node(s) had untolerated taint" in one.get("message", "") for one in conditions)

        clock.wait_for("a pod that no node takes", refused, seconds=30)
        tolerations = json.dumps([{"key": TAINT["key"], "operator": "Exists"}])
        release.helm(
            *("upgrade", ROOT / "charts/spottrain", "--wait", "--timeout=60s", "--set=replicas=2"),
            *("--set=networkPolicy.enabled=true", f"--set-json=tolerations={tolerations}"),
        )
        running = [one for one in release.pods() if one["status"]["phase"] == "Running"]
        assert {NODES[one["spec"]["nodeName"]] for one in running} == {"zone-a", "zone-b"}
        assert len(running) == 2
