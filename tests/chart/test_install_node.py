"""The chart, the image and the rights together: installed with helm on real kubelets, at work, removed."""

import collections.abc as cabc
import json
import re
import secrets
from typing import Any

import pytest

from lab import clock, cluster, errors
from manifests import render
from tests.release import GPU_TAINT, IMAGE, Release

pytestmark = pytest.mark.node

GRACE = 5


@pytest.fixture
def namespace(lab: cluster.Lab) -> cabc.Iterator[str]:
    """A namespace of the test's own, which the test may delete."""
    name = f"install-{secrets.token_hex(3)}"
    lab.kubectl("create", "namespace", name)
    lab.wait_namespace(name)
    yield name
    lab.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="module")
def image(lab: cluster.Lab) -> str:
    """The operator's image, built from this source and loaded into the nodes."""
    lab.build_image(render.ROOT, IMAGE)
    return IMAGE


@pytest.fixture
def release(lab: cluster.Lab, namespace: str, image: str) -> cabc.Iterator[Release]:
    """The operator, which serves only the test's namespace and runs in it."""
    lab.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    one = Release(lab, namespace)
    one.install(image)
    yield one
    one.uninstall()


def gang(namespace: str) -> dict[str, Any]:
    """Two workers that do nothing and leave at once when they are told to."""
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(75)); signal.pause()"
    container = {
        "name": "trainer",
        "image": IMAGE,
        "command": ["python3", "-c", program],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "terminationGracePeriodSeconds": GRACE,
        "tolerations": [GPU_TAINT],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": "tr", "namespace": namespace},
        "spec": {
            "workers": 2,
            "spot": {"onDemandFloor": 1},
            "checkpoint": {"uri": "s3://ck/tr"},
            "template": {"spec": pod},
        },
    }


def job(lab: cluster.Lab, namespace: str) -> dict[str, Any]:
    path = f"/apis/spottrain.dev/v1alpha1/namespaces/{namespace}/spottrainingjobs/tr"
    found: dict[str, Any] = lab.api.get(path).expect("the job")
    return found


def wait_for_attempt(lab: cluster.Lab, namespace: str, number: int) -> None:
    def runs() -> bool:
        status = job(lab, namespace).get("status", {})
        return (status.get("phase"), status.get("attempt")) == ("Running", number)

    if not clock.poll(runs, seconds=120):
        said = lab.kubectl("-n", namespace, "get", "pods,events", "-o", "wide")
        pytest.fail(f"attempt {number} does not run: {job(lab, namespace).get('status')}\n{said}")


def inside(lab: cluster.Lab, namespace: str) -> dict[str, Any]:
    """What a program finds in the operator's container."""
    program = (
        "import importlib.util, json, os, sys; print(json.dumps({"
        "'user': os.getuid(), 'prefix': sys.prefix, 'pip': importlib.util.find_spec('pip') is not None, "
        "'writable': [p for p in ('/', '/app', '/etc', '/tmp', '/var/tmp') if os.access(p, os.W_OK)]}))"
    )
    said = lab.kubectl("-n", namespace, "exec", f"deployment/{namespace}-op", "--", "python3", "-c", program)
    found: dict[str, Any] = json.loads(said)
    return found


def finalizers(lab: cluster.Lab, namespace: str) -> list[str]:
    """All finalizers of what belongs to the job."""
    kinds = "spottrainingjobs,jobs,pods,services"
    items = json.loads(lab.kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"]
    return [one for item in items for one in item["metadata"].get("finalizers", ())]


def complaints(log: str) -> list[str]:
    """Lines of an operator's log that tell of a missing right or of a pass that broke.

    A line starts with date and time, whose milliseconds can be any three digits: 403 among them.
    """
    said = ((line, re.sub(r"^[\d-]+ [\d:,]+ ", "", line)) for line in log.splitlines())
    return [line for line, text in said if re.search(r"\b403\b|Forbidden|Traceback", text)]


def test_complaints_are_about_rights_not_about_the_time_of_day() -> None:
    """Only the second of two lines that show the digits is one."""
    on_time = "2026-11-29 18:00:08,403 WARNING kopf: OS signals are ignored"
    refused = "2026-11-29 18:00:08,001 WARNING spottrain: pods: HTTP 403: pods is forbidden"
    assert complaints(f"{on_time}\n{refused}") == [refused]


def test_a25_the_operator_removed_first_leaves_nothing_stuck(
    lab: cluster.Lab, namespace: str, release: Release
) -> None:
    """It runs a gang with just its rights, brings an evicted worker back, is uninstalled; then all goes."""
    assert inside(lab, namespace) == {"user": 65532, "prefix": "/app", "pip": False, "writable": ["/tmp"]}
    lab.kubectl("create", "-f", "-", stdin=json.dumps(gang(namespace)))
    wait_for_attempt(lab, namespace, 1)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "tr-1-1", "namespace": namespace},
    }
    lab.api.call("POST", f"/api/v1/namespaces/{namespace}/pods/tr-1-1/eviction", eviction).expect(
        "the eviction"
    )
    wait_for_attempt(lab, namespace, 2)
    assert finalizers(lab, namespace) == []
    log = lab.kubectl("-n", namespace, "logs", f"deployment/{namespace}-op")
    assert complaints(log) == []

    release.uninstall()
    assert job(lab, namespace)["status"]["attempt"] == 2
    lab.kubectl("delete", "namespace", namespace, f"--timeout={GRACE + 30}s")
    assert lab.api.get(f"/api/v1/namespaces/{namespace}").status == 404


def test_helm_test_passes_while_an_operator_is_ready_and_its_pod_says_what_to_look_at_when_none_is(
    lab: cluster.Lab, namespace: str, release: Release
) -> None:
    assert re.search(r"Phase:\s+Succeeded", release.test())
    lab.kubectl("-n", namespace, "scale", f"deployment/{namespace}-op", "--replicas=0")
    of_operators = ("-n", namespace, "get", "pods", "--selector=app.kubernetes.io/component=operator")
    clock.wait_for("no operator", lambda: not lab.kubectl(*of_operators, "--output=name"), seconds=30)
    with pytest.raises(errors.LabError, match=f"{namespace}-op-test"):
        release.test()
    said = lab.kubectl("-n", namespace, "logs", f"{namespace}-op-test")
    assert f"http://{namespace}-op-metrics:8080/readyz" in said
    assert f"by kubectl -n {namespace} logs deployment/{namespace}-op" in said


def test_another_operator_goes_on_when_the_leader_dies(
    lab: cluster.Lab, namespace: str, release: Release, image: str
) -> None:
    release.install(image, "--set=replicas=2")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{namespace}-op"

    def leader() -> str:
        found = lab.api.get(lease)
        return str(found.body["spec"].get("holderIdentity") or "") if found.ok else ""

    first = clock.wait_for("a leader", leader, seconds=30)
    lab.kubectl("create", "-f", "-", stdin=json.dumps(gang(namespace)))
    wait_for_attempt(lab, namespace, 1)
    lab.kubectl("-n", namespace, "delete", "pod", first, "--grace-period=0", "--force")
    lab.kubectl("-n", namespace, "delete", "pod", "tr-1-1", "--wait=false")
    wait_for_attempt(lab, namespace, 2)
    assert leader() not in {"", first}


def test_a25_operator_and_job_go_together_with_their_namespace(
    lab: cluster.Lab, namespace: str, release: Release
) -> None:
    lab.kubectl("create", "-f", "-", stdin=json.dumps(gang(namespace)))
    wait_for_attempt(lab, namespace, 1)
    lab.kubectl("delete", "namespace", namespace, f"--timeout={GRACE + 30}s")
    release.installed = False  # helm's own record went with the namespace
    assert lab.api.get(f"/api/v1/namespaces/{namespace}").status == 404
    cluster_wide = (f"{namespace}-op", f"{namespace}-op-view", f"{namespace}-op-edit")
    lab.kubectl("-n", "kube-node-lease", "delete", "role,rolebinding", f"{namespace}-op")
    lab.kubectl("delete", "clusterrole", *cluster_wide)
    lab.kubectl("delete", "clusterrolebinding", f"{namespace}-op")
