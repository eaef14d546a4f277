"""What a test can do to machines and to the API server."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import __main__, audit, clock, images, metadata, network, node, process, state
from lab.api import Api
from lab.cluster import Lab
from lab.config import Config
from lab.errors import LabError
from lab.gateway import Fault
from lab.inside import Guest
from lab.proxy import Mode

pytestmark = pytest.mark.node

SERVER = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=80, bind='169.254.169.254')"


def fetcher(name: str, node_name: str, **spec: Any) -> str:
    """A pod that prints the status of the metadata server's answer."""
    code = "import urllib.request as r; print(r.urlopen('http://169.254.169.254/', timeout=9).status)"
    container = {"name": "main", "image": images.BASE, "command": ["python3", "-c", code]}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node_name,
            "restartPolicy": "Never",
            "containers": [{**container, "imagePullPolicy": "IfNotPresent"}],
            **spec,
        },
    }
    return json.dumps(document)


@pytest.fixture
def victim(lab: Lab) -> Iterator[str]:
    """A node that is as before afterwards."""
    yield "spot-3"
    if lab.node_alive("spot-3"):
        lab.node_heal("spot-3")
    lab.node_start("spot-3")


def node_object(lab: Lab, name: str) -> dict[str, Any]:
    return dict(lab.api.get(f"/api/v1/nodes/{name}").expect(name))


def test_partitioned_machine_goes_on_running_unheard_and_heals(lab: Lab, victim: str) -> None:
    """Its processes are those of before."""
    before = node.init_pid(lab._machine(victim))
    lab.node_partition(victim)
    ready = '{.status.conditions[?(@.type=="Ready")].status}'
    path = ("get", "node", victim, "-o", f"jsonpath={ready}")
    clock.wait_for("silence", lambda: lab.kubectl(*path) == "Unknown", seconds=60)
    assert node.init_pid(lab._machine(victim)) == before
    lab.node_heal(victim)
    clock.wait_for("its word", lambda: lab.kubectl(*path) == "True", seconds=60)
    assert node.init_pid(lab._machine(victim)) == before


def test_machine_that_comes_back_is_another_of_the_same_name(lab: Lab, victim: str) -> None:
    """Another Node object, an empty disk, and GPUs."""
    before = node_object(lab, victim)["metadata"]["uid"]
    lab.node_exec(victim, "touch", "/var/log/was-here")
    lab.node_back(victim)
    after = node_object(lab, victim)
    assert after["metadata"]["uid"] != before
    assert after["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert after["metadata"]["labels"]["karpenter.sh/capacity-type"] == "spot"
    assert "was-here" not in lab.node_exec(victim, "ls", "/var/log")


def test_pods_of_a_machine_reach_the_metadata_server_that_a_test_runs_in_it(
    lab: Lab, namespace: str, tmp_path: Path, victim: str
) -> None:
    """Ordinary pods and those on the host's network; the server ends with the machine."""
    guest: Guest = lab.node_spawn(victim, "python3", "-c", SERVER, log=tmp_path / "log")
    try:
        probe = (
            "python3",
            "-c",
            f"import socket; socket.create_connection(('{network.METADATA_IP}', 80), 1)",
        )
        clock.wait_for("the server", lambda: _succeeds(lab, victim, *probe), seconds=20)
        pods = [fetcher("ordinary", victim), fetcher("host", victim, hostNetwork=True)]
        for document in pods:
            lab.kubectl("--namespace", namespace, "create", "-f", "-", stdin=document)
        done = "--for=jsonpath={.status.phase}=Succeeded"
        lab.kubectl("--namespace", namespace, "wait", done, "--timeout=60s", "pod/ordinary", "pod/host")
        logs = [lab.kubectl("--namespace", namespace, "logs", name) for name in ("ordinary", "host")]
        assert logs == ["200\n", "200\n"]
        assert guest.running()
        lab.node_kill(victim)
        assert clock.poll(lambda: not guest.running(), seconds=10)
    finally:
        guest.stop()


LINK_LOCAL, ALIBABA = "http://169.254.169.254", "http://100.100.100.200/latest/meta-data/instance"
PATHS = {
    "aws": (f"{LINK_LOCAL}/latest/meta-data/spot/instance-action", "PUT", f"{LINK_LOCAL}/latest/api/token"),
    "azure": (
        f"{LINK_LOCAL}/metadata/scheduledevents?api-version=2020-07-01",
        "GET",
        f"{LINK_LOCAL}/metadata/instance/compute/name",
    ),
    "alibaba": (f"{ALIBABA}/spot/termination-time", "GET", f"{ALIBABA}-id"),
}
ASK = """
import sys, urllib.request as r
path, method, key = sys.argv[1:]
headers = {"Metadata": "true", "X-aws-ec2-metadata-token-ttl-seconds": "60"}
def ask(path, method, headers):
    with r.urlopen(r.Request(path, method=method, headers=headers)) as answer:
        return answer.read().decode()
token = ask(key, method, headers)
print(ask(path, "GET", {"Metadata": "true", "X-aws-ec2-metadata-token": token}))
"""


@pytest.mark.parametrize("cloud", PATHS)
def test_a_cloud_tells_a_machine_that_it_is_taken_and_takes_it(lab: Lab, victim: str, cloud: str) -> None:
    """Its Node is that cloud's; withdrawn, it lives; the machine that comes back is of no cloud."""
    lab.node_cloud(victim, cloud)
    assert node_object(lab, victim)["spec"]["providerID"] == metadata.PROVIDER_IDS[cloud].format(node=victim)

    def told() -> str:
        said = ("python3", "-c", ASK, *PATHS[cloud])
        found = lab.node_exec(victim, *said) if _succeeds(lab, victim, *said) else ""
        return found if re.search(r"terminate|Preempt|^20\d\d-", found) else ""

    assert not told()
    taken_back = lab.notice(victim, cloud, 60)
    clock.wait_for("the notice", told, seconds=5)
    taken_back.withdraw()
    assert not told()

    notice = lab.notice(victim, cloud, 5)
    clock.wait_for("the notice", told, seconds=5)
    assert lab.node_alive(victim)
    notice.wait()
    assert clock.wall() >= notice.deadline
    assert not lab.node_alive(victim)
    lab.node_back(victim)
    assert "providerID" not in node_object(lab, victim)["spec"]
    assert not told()


def test_a_machine_of_one_cloud_is_refused_by_another(lab: Lab, victim: str) -> None:
    """And `up` makes it one of none."""
    lab.node_cloud(victim, "gcp")
    with pytest.raises(LabError, match=f"`python -m lab node back {victim}` replaces it"):
        lab.notice(victim, "aws", 60)
    assert f"brought back: {victim}" in lab.up()
    assert "providerID" not in node_object(lab, victim)["spec"]


def _succeeds(lab: Lab, name: str, *words: str) -> bool:
    try:
        lab.node_exec(name, *words)
    except LabError:
        return False
    return True


def test_program_in_a_machine_ends_when_it_is_stopped(lab: Lab, tmp_path: Path) -> None:
    """And the machine does not."""
    guest = lab.node_spawn("od-1", "sleep", "1000", log=tmp_path / "log")
    assert guest.running()
    guest.stop()
    assert guest.running() is False
    assert lab.node_alive("od-1")


def test_program_in_a_machine_that_does_not_run_is_refused(lab: Lab, victim: str) -> None:
    """One sentence that says what to do."""
    lab.node_kill(victim)
    with pytest.raises(LabError, match="spot-3 does not run: `python -m lab node start spot-3` starts it"):
        lab.node_exec(victim, "true")


# A second lab, without machines: its API server may be ill.


@pytest.fixture(scope="module")
def plane() -> Iterator[Lab]:
    """A control plane of the module's own, beside the shared lab."""
    own = Lab("faults")
    own.remove()
    try:
        own.up(Config(nodes=(), kcm_qps=1000, kcm_burst=1000, audit=True))
        yield own
    finally:
        own.remove()


def answers(api: Api) -> bool:
    return api.get("/readyz").ok


def test_stopped_api_server_refuses_and_comes_back_with_its_objects(plane: Lab) -> None:
    """By the command line; the clients of it are not touched."""
    before = process.find(plane.state.pids / "kube-controller-manager")
    plane.kubectl("create", "namespace", "kept")
    assert __main__.main(["--name", "faults", "api", "stop"]) == 0
    assert "Connection refused" in plane.api.get("/readyz").body
    assert plane.running() is False
    assert __main__.main(["--name", "faults", "api", "start"]) == 0
    assert plane.running() is True
    assert plane.kubectl("get", "namespace", "kept", "-o", "name") == "namespace/kept\n"
    assert process.find(plane.state.pids / "kube-controller-manager") == before


def test_paused_api_server_answers_nothing_and_goes_on_where_it_was(plane: Lab) -> None:
    """The same process."""
    before = process.find(plane.state.pids / "kube-apiserver")
    plane.api_pause()
    assert "timed out" in plane.api.get("/readyz").body
    plane.api_resume()
    assert answers(plane.api)
    assert process.find(plane.state.pids / "kube-apiserver") == before


def test_up_wakes_a_paused_api_server_and_starts_a_stopped_one(plane: Lab) -> None:
    """With all its objects: the lab is not made anew."""
    uid = plane.kubectl("get", "namespace", "default", "-o", "jsonpath={.metadata.uid}")
    for harm in (plane.api_pause, plane.api_stop):
        harm()
        assert plane.up() == "lab faults is already up; brought back: kube-apiserver"
    assert plane.kubectl("get", "namespace", "default", "-o", "jsonpath={.metadata.uid}") == uid


def test_controller_manager_has_the_limits_that_were_asked_for(plane: Lab) -> None:
    """And takes others while the lab runs."""

    def flags() -> set[str]:
        pid = process.find(plane.state.pids / "kube-controller-manager")
        return {word for word in Path(f"/proc/{pid}/cmdline").read_text().split("\0") if "kube-api" in word}

    assert flags() == {"--kube-api-qps=1000", "--kube-api-burst=1000"}
    plane.limit_controller_manager(None, None)
    assert flags() == set()
    assert plane.config() == Config(nodes=(), audit=True)


def test_audit_log_has_the_writes_with_their_query(plane: Lab) -> None:
    """Whose client begins so."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": []}}},
    }
    plane.api.call("POST", "/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict", job)
    found = clock.wait_for(
        "the record",
        lambda: [one for one in audit.requests(plane.state) if one["objectRef"].get("resource") == "jobs"],
        seconds=10,
    )
    event = found[-1]
    assert event["requestURI"].endswith("fieldValidation=Strict")
    assert (event["verb"], event["responseStatus"]["code"]) == ("create", 422)
    assert event["requestObject"]["spec"]["suspend"] is True
    assert [*audit.requests(plane.state, user_agent="nobody")] == []


def test_labs_that_are_up_are_listed(lab: Lab, plane: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """One a line, for `make lab-down`; one that is down is not among them."""
    assert __main__.main(["list"]) == 0
    assert {lab.name, plane.name} <= set(capsys.readouterr().out.splitlines())
    assert "never-was" not in state.left_over()


def kubectl_via(plane: Lab, kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(plane.state.bin / "kubectl"), f"--kubeconfig={kubeconfig}", "--request-timeout=3s", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_kubeconfig_through_the_proxy_works_until_it_is_broken(plane: Lab) -> None:
    """TLS passes through."""
    with plane.proxy() as proxy:
        path = plane.kubeconfig_via(proxy)
        assert kubectl_via(plane, path, "get", "namespace", "default").returncode == 0
        proxy.set(Mode.REFUSE)
        assert "refused" in kubectl_via(plane, path, "get", "namespace", "default").stderr
        proxy.set(Mode.FORWARD)
        assert kubectl_via(plane, path, "get", "namespace", "default").returncode == 0


def test_gateway_passes_on_answers_itself_and_cuts_watches(plane: Lab) -> None:
    """Only what was asked for."""
    with plane.gateway() as gate:
        path = plane.kubeconfig_via(gate)
        assert (
            kubectl_via(plane, path, "get", "namespace", "default", "-o", "name").stdout
            == "namespace/default\n"
        )
        with gate.failing(Fault(503, prefix="/api/v1/namespaces")):
            assert (
                "the lab's gateway says 503" in kubectl_via(plane, path, "get", "namespace", "default").stderr
            )
            assert kubectl_via(plane, path, "get", "nodes").returncode == 0
        assert gate.answered >= 1
        watch = subprocess.Popen(
            [plane.state.bin / "kubectl", "--kubeconfig", path, "get", "namespace", "--watch"],
            stdout=subprocess.PIPE,
            text=True,
        )
        with watch:
            assert watch.stdout is not None
            clock.wait_for("the first line", watch.stdout.readline, seconds=20)
            clock.wait_for("a watch to cut", lambda: gate.cut_watches("/namespaces"), seconds=20)
            assert watch.wait(timeout=20) == 0


def test_gateway_passes_a_token_on_instead_of_our_own_rights(plane: Lab) -> None:
    """One that is worth nothing is refused by the API server."""
    with plane.gateway() as gate:
        path = plane.kubeconfig_via(gate)
        said = kubectl_via(plane, path, "--token", "worthless", "get", "namespace", "default").stderr
    assert "logged in" in said or "Unauthorized" in said


def test_stopped_store_refuses_and_comes_back_with_its_objects(plane: Lab) -> None:
    """By the command line."""
    bucket = plane.state.store / "kept"
    bucket.mkdir()
    assert __main__.main(["--name", "faults", "store", "stop"]) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((plane.addresses.gateway, 7070), timeout=5)
    assert __main__.main(["--name", "faults", "store", "start"]) == 0
    socket.create_connection((plane.addresses.gateway, 7070), timeout=5).close()
    assert bucket.is_dir()


def test_processes_of_a_pod_are_known_by_its_uid(lab: Lab, namespace: str) -> None:
    """As the host sees them."""
    document = json.loads(fetcher("sleeper", "spot-1"))
    document["spec"]["containers"][0]["command"] = ["sleep", "7777"]
    lab.kubectl("--namespace", namespace, "create", "-f", "-", stdin=json.dumps(document))
    pod = f"/api/v1/namespaces/{namespace}/pods/sleeper"
    clock.wait_for("the pod", lambda: lab.api.get(pod).body["status"]["phase"] == "Running", seconds=60)
    uid = lab.api.get(pod).body["metadata"]["uid"]
    assert "sleep 7777" in {one.command for one in lab.pod_processes() if one.pod == uid}
    lab.kubectl("--namespace", namespace, "delete", "pod", "sleeper", "--grace-period=1")
    clock.wait_for("its end", lambda: uid not in {one.pod for one in lab.pod_processes()}, seconds=20)
