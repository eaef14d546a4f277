"""The running lab: pods on real kubelets, fake nodes, the store, machines that die and come back."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from lab import clock, images, kwok, node, process
from lab.cluster import Lab
from lab.errors import LabError
from lab.kwok import FakeNode

pytestmark = pytest.mark.node

SERVER = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)"
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def pod(name: str, node_name: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A pod of the Python base image, bound to a node."""
    container = {
        "name": "main",
        "image": images.BASE,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node_name},
            "tolerations": [GPU_TOLERATION],
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            **spec,
        },
    }


def create(lab: Lab, namespace: str, *documents: dict[str, Any]) -> None:
    """Create objects in the test's namespace."""
    body = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    lab.kubectl("--namespace", namespace, "create", "-f", "-", stdin=json.dumps(body))


def get(lab: Lab, namespace: str, kind: str, name: str) -> dict[str, Any]:
    """The object as it is now."""
    loaded: dict[str, Any] = json.loads(
        lab.kubectl("--namespace", namespace, "get", kind, name, "-o", "json")
    )
    return loaded


def wait(lab: Lab, namespace: str, condition: str, *names: str) -> None:
    """Let kubectl wait for a condition or field."""
    lab.kubectl("--namespace", namespace, "wait", f"--for={condition}", "--timeout=60s", *names)


def node_ready(lab: Lab, name: str) -> str:
    """True, False or Unknown."""
    conditions = get(lab, "default", "node", name)["status"]["conditions"]
    return next(str(entry["status"]) for entry in conditions if entry["type"] == "Ready")


def test_nodes_have_the_capacity_zone_taint_and_gpus_of_the_plan(lab: Lab) -> None:
    """What schedulers and operators look at."""
    found = {}
    for name in ("od-1", "spot-1", "spot-2", "spot-3"):
        item = get(lab, "default", "node", name)
        labels = item["metadata"]["labels"]
        found[name] = (
            labels["karpenter.sh/capacity-type"],
            labels["topology.kubernetes.io/zone"],
            labels["node.kubernetes.io/instance-type"],
            item["status"]["allocatable"]["nvidia.com/gpu"],
            item["spec"]["taints"],
        )
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert found == {
        "od-1": ("on-demand", "zone-a", "lab.4gpu", "4", taints),
        "spot-1": ("spot", "zone-a", "lab.4gpu", "4", taints),
        "spot-2": ("spot", "zone-b", "lab.4gpu", "4", taints),
        "spot-3": ("spot", "zone-c", "lab.4gpu", "4", taints),
    }


def test_pods_on_two_nodes_meet_by_dns_name_and_by_service(lab: Lab, namespace: str) -> None:
    """Pod network, DNS and kube-proxy, across machines."""
    server = pod("server", "spot-1", "python3", "-c", SERVER, hostname="server", subdomain="gang")
    urls = ["http://server.gang:8000/", "http://web/", f"http://web.{namespace}.svc.cluster.local/"]
    client = pod(
        "client",
        "spot-2",
        *("python3", "-c", CLIENT, *urls),
        restartPolicy="Never",
    )
    headless = {"clusterIP": "None", "selector": {"app": "server"}, "publishNotReadyAddresses": True}
    web = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8000}]}
    create(
        lab,
        namespace,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gang"}, "spec": headless},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": web},
        server,
        client,
    )
    wait(lab, namespace, "jsonpath={.status.phase}=Succeeded", "pod/client")
    assert lab.kubectl("--namespace", namespace, "logs", "client").split() == ["200", "200", "200"]


# Services and the server come up while the client runs already: it asks until it is answered.
CLIENT = """
import sys, time, urllib.error, urllib.request
def fetch(url):
    for _ in range(300):
        try:
            return urllib.request.urlopen(url, timeout=2).status
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
for url in sys.argv[1:]:
    print(fetch(url))
"""


def test_exec_runs_in_the_container_and_logs_come_back(lab: Lab, namespace: str) -> None:
    """The API server reaches the kubelets."""
    create(lab, namespace, pod("p", "spot-3", "sh", "-c", "echo said; exec sleep 1000"))
    wait(lab, namespace, "condition=Ready", "pod/p")
    assert lab.kubectl("--namespace", namespace, "logs", "p") == "said\n"
    assert lab.kubectl("--namespace", namespace, "exec", "p", "--", "python", "-c", "print(1 + 1)") == "2\n"


def test_pod_reaches_the_object_store(lab: Lab, namespace: str) -> None:
    """At the same address as the host; 403 is its answer to a stranger."""
    code = (
        "import sys, urllib.error, urllib.request\n"
        "try: print(urllib.request.urlopen(sys.argv[1], timeout=9).status)\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
    )
    create(lab, namespace, pod("p", "od-1", "python3", "-c", code, lab.s3_endpoint, restartPolicy="Never"))
    wait(lab, namespace, "jsonpath={.status.phase}=Succeeded", "pod/p")
    assert lab.kubectl("--namespace", namespace, "logs", "p") == "403\n"


def test_object_store_keeps_its_objects_when_it_is_killed(lab: Lab) -> None:
    """Durable, and with conditional writes."""
    client: Any = s3(lab)
    client.create_bucket(Bucket="lab-durable")
    try:
        client.put_object(Bucket="lab-durable", Key="k", Body=b"v", IfNoneMatch="*")
        process.stop(lab.state.pids / "versitygw", grace=0)
        assert lab.up() == f"lab {lab.name} is already up; brought back: versitygw"
        assert client.get_object(Bucket="lab-durable", Key="k")["Body"].read() == b"v"
        with pytest.raises(client.exceptions.ClientError, match="PreconditionFailed"):
            client.put_object(Bucket="lab-durable", Key="k", Body=b"w", IfNoneMatch="*")
    finally:
        client.delete_object(Bucket="lab-durable", Key="k")
        client.delete_bucket(Bucket="lab-durable")


def s3(lab: Lab) -> object:
    """A client with the credentials that `env` gives out."""
    env = lab.env()
    return boto3.client(
        "s3",
        endpoint_url=env["SPOTTRAIN_S3_ENDPOINT"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region_name=env["AWS_REGION"],
    )


def test_memory_limit_ends_only_the_pod_that_exceeds_it(lab: Lab, namespace: str) -> None:
    """Each machine has control groups of its own."""
    hog = pod("hog", "spot-1", "python3", "-c", "x = bytearray(1 << 29)", restartPolicy="Never")
    hog["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    create(lab, namespace, hog)
    wait(lab, namespace, "jsonpath={.status.phase}=Failed", "pod/hog")
    state = get(lab, namespace, "pod", "hog")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)


def test_drained_node_loses_its_pods_and_takes_no_new_ones(lab: Lab, namespace: str) -> None:
    """By the Eviction API; `node_start` ends the cordon."""
    create(lab, namespace, pod("p", "spot-3", "sleep", "1000"))
    wait(lab, namespace, "condition=Ready", "pod/p")
    lab.node_drain("spot-3")
    assert lab.kubectl("--namespace", namespace, "get", "pods", "-o", "name") == ""
    assert get(lab, "default", "node", "spot-3")["spec"]["unschedulable"] is True
    lab.node_start("spot-3")
    assert "unschedulable" not in get(lab, "default", "node", "spot-3")["spec"]


@pytest.fixture
def victim(lab: Lab) -> Iterator[str]:
    """A node to be killed, started again afterwards."""
    yield "spot-2"
    lab.node_start("spot-2")


def test_killed_machine_goes_silent_and_comes_back_with_its_disk(
    lab: Lab, namespace: str, victim: str
) -> None:
    """Its containers end at once; the API notices after the grace period; GPUs are there again."""
    create(lab, namespace, pod("p", victim, "sleep", "1000"))
    wait(lab, namespace, "condition=Ready", "pod/p")
    lab.node_kill(victim)
    assert lab.node_alive(victim) is False
    clock.wait_for("silence", lambda: node_ready(lab, victim) == "Unknown", seconds=40)
    assert get(lab, namespace, "pod", "p")["status"]["phase"] == "Running"
    lab.node_start(victim)
    assert get(lab, "default", "node", victim)["status"]["allocatable"]["nvidia.com/gpu"] == "4"


def test_up_starts_dead_machines_and_ends_partitions_and_cordons(lab: Lab, victim: str) -> None:
    """The lab is brought to the state that is wanted."""
    lab.node_partition("spot-3")
    lab.kubectl("cordon", "spot-1")
    lab.node_kill(victim)
    assert lab.up() == f"lab {lab.name} is already up; brought back: {victim}"
    assert [node_ready(lab, name) for name in (victim, "spot-3")] == ["True", "True"]
    assert "unschedulable" not in get(lab, "default", "node", "spot-1")["spec"]


def test_up_on_a_running_lab_says_so(lab: Lab) -> None:
    """And changes nothing."""
    before = process.find(lab.state.pids / "etcd")
    assert lab.up() == f"lab {lab.name} is already up"
    assert process.find(lab.state.pids / "etcd") == before


def test_unknown_node_is_refused_with_the_names_there_are(lab: Lab) -> None:
    """One sentence."""
    with pytest.raises(LabError, match="has no node 'spot-9'; it has od-1, spot-1, spot-2, spot-3"):
        lab.node_kill("spot-9")


@pytest.fixture
def built(lab: Lab) -> Iterator[str]:
    """Name of an image that is forgotten afterwards."""
    yield "docker.io/lab/built:1"
    lab.remove_image("docker.io/lab/built:1")


def test_image_is_built_with_pip_and_runs(lab: Lab, namespace: str, tmp_path: Path, built: str) -> None:
    """A Dockerfile as anyone writes it; the second build of the same files costs nothing."""
    (tmp_path / "requirements.txt").write_text("wcwidth==0.2.13\n")
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    archive = lab.build_image(tmp_path, built)
    written = archive.stat().st_mtime_ns
    assert lab.build_image(tmp_path, built).stat().st_mtime_ns == written
    document = pod("p", "spot-1", restartPolicy="Never")
    del document["spec"]["containers"][0]["command"]
    document["spec"]["containers"][0]["image"] = built
    create(lab, namespace, document)
    wait(lab, namespace, "jsonpath={.status.phase}=Succeeded", "pod/p")
    assert lab.kubectl("--namespace", namespace, "logs", "p") == "2 65532\n"


DOCKERFILE = """\
FROM docker.io/library/python:3.11-slim-bookworm AS build
COPY requirements.txt /
RUN python3 -m venv /venv && /venv/bin/pip install --quiet -r /requirements.txt
FROM docker.io/library/python:3.11-slim-bookworm
COPY --from=build /venv /venv
USER 65532:65532
ENTRYPOINT ["/venv/bin/python", "-c", "import os, wcwidth; print(wcwidth.wcswidth('Ⅷ界')-1, os.getuid())"]
"""


@pytest.fixture
def fake(lab: Lab) -> Iterator[str]:
    """A node that kwok plays."""
    lab.add_fake_nodes([FakeNode("fake-1", labels={"kind": "fake"}, capacity={"nvidia.com/gpu": "8"})])
    yield "fake-1"
    lab.remove_fake_nodes(["fake-1"])


def fake_pod(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    """A pod for the fake node, with annotations that tell kwok how it behaves."""
    document = pod(name, "fake-1", "true")
    document["metadata"]["annotations"] = annotations
    document["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return document


def test_pod_on_a_fake_node_runs_and_is_gone_when_deleted(lab: Lab, namespace: str, fake: str) -> None:
    """As far as the API can tell."""
    create(lab, namespace, fake_pod("p", {}))
    wait(lab, namespace, "condition=Ready", "pod/p")
    lab.kubectl("--namespace", namespace, "delete", "pod", "p", "--timeout=20s")


def test_deleted_fake_pod_fails_as_by_sigterm_before_it_goes(lab: Lab, namespace: str, fake: str) -> None:
    """A finalizer holds it, so that its end can be seen; kwok leaves the finalizer alone."""
    document = fake_pod("p", {})
    document["metadata"]["finalizers"] = ["lab.spottrain.dev/look"]
    create(lab, namespace, document)
    wait(lab, namespace, "condition=Ready", "pod/p")
    lab.kubectl("--namespace", namespace, "delete", "pod", "p", "--wait=false")
    wait(lab, namespace, "jsonpath={.status.phase}=Failed", "pod/p")
    state = get(lab, namespace, "pod", "p")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == 143
    lab.kubectl("--namespace", namespace, "patch", "pod", "p", "-p", '{"metadata":{"finalizers":null}}')
    wait(lab, namespace, "delete", "pod/p")


def test_fake_pod_stays_pending_or_terminating_when_a_test_asks(lab: Lab, namespace: str, fake: str) -> None:
    """An ordinary pod created after it is ready long before."""
    create(lab, namespace, fake_pod("pending", kwok.STAYS_PENDING), fake_pod("stuck", kwok.STAYS_TERMINATING))
    wait(lab, namespace, "condition=Ready", "pod/stuck")
    lab.kubectl("--namespace", namespace, "delete", "pod", "stuck", "--wait=false")
    create(lab, namespace, fake_pod("witness", {}))
    wait(lab, namespace, "condition=Ready", "pod/witness")
    lab.kubectl("--namespace", namespace, "delete", "pod", "witness", "--timeout=20s")
    pods = {name: get(lab, namespace, "pod", name) for name in ("pending", "stuck")}
    assert pods["pending"]["status"]["phase"] == "Pending"
    assert pods["stuck"]["status"]["phase"] == "Running"
    assert "deletionTimestamp" in pods["stuck"]["metadata"]
    lab.kubectl("--namespace", namespace, "delete", "pod", "stuck", "--force", "--grace-period=0")


def test_node_made_by_hand_is_left_alone_by_kwok(lab: Lab, fake: str) -> None:
    """A test plays its kubelet itself."""
    lab.api.apply(
        "/api/v1/nodes/by-hand", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    )
    try:
        lab.add_fake_nodes([FakeNode("fake-2")])
        assert "conditions" not in get(lab, "default", "node", "by-hand")["status"]
    finally:
        lab.remove_fake_nodes(["by-hand", "fake-2"])


def test_containerd_of_a_machine_is_reached_from_the_host(lab: Lab) -> None:
    """And has the base image from the start."""
    machine = lab._machine("od-1")
    assert images.BASE in node.ctr(machine, "images", "ls", "-q").split()


def test_store_listens_on_the_gateway_only(lab: Lab) -> None:
    """Not on the loopback interface, and so not on the machine's other addresses either."""
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen("http://127.0.0.1:7070/", timeout=2)
