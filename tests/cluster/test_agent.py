"""The notice agent with the DaemonSet and the rights of the chart, beside the operator; a fake cloud."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import clock, fakes, kwok
from lab.api import Api
from lab.cluster import Lab
from manifests import render
from spottrain.agent import clock as clocks
from spottrain.agent import cluster, hints, marks, own_node, settings
from spottrain.api import duration
from tests.agent.conftest import Agent, soon
from tests.cluster import play
from tests.cluster.conftest import Operator

MACHINE = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm0"
PLACE = "agents"
"""The operator's own namespace is restricted: no pod there may use its node's network."""
DAEMON_SET = f"/apis/apps/v1/namespaces/{PLACE}/daemonsets/spottrain-agent"
ACCOUNT = f"/api/v1/namespaces/{PLACE}/serviceaccounts/spottrain-agent"
TAINTS = (
    {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
)
WINDOW = 30
(MANAGED,) = kwok.MANAGED
DRILL = "spottrain.dev/drill"


@pytest.fixture(scope="module")
def installed(plane: Lab) -> Iterator[None]:
    """The chart's part for the agent; its DaemonSet would put pods on the nodes of every other test."""
    plane.kubectl("create", "namespace", PLACE)
    made = render.documents(render.template("--set=agent.enabled=true", f"--namespace={PLACE}"))
    ours = [one for one in made if one["metadata"]["name"] == "spottrain-agent"]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": ours})
    plane.kubectl("apply", "-f", "-", stdin=document)
    yield
    plane.kubectl("delete", "--wait=false", "-f", "-", stdin=document)
    plane.kubectl("delete", "--wait=false", "namespace", PLACE)


def pods_of_agent(api: Api, node: str) -> list[str]:
    query = f"labelSelector=app.kubernetes.io/component%3Dagent&fieldSelector=spec.nodeName%3D{node}"
    items = api.get(f"/api/v1/namespaces/{PLACE}/pods?{query}").expect("pods")["items"]
    return [one["metadata"]["name"] for one in items if one["status"]["phase"] == "Running"]


def credentials(lab: Lab, node: str, folder: Path) -> Path:
    """What the kubelet would put into the agent's pod on that node: a token that names pod and node."""
    (pod,) = clock.wait_for("the agent's pod", lambda: pods_of_agent(lab.api, node), seconds=20)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": bound},
    }
    answer = lab.api.call("POST", f"{ACCOUNT}/token", body).expect("a token")
    (folder / "token").write_text(answer["status"]["token"])
    (folder / "ca.crt").write_bytes((lab.state.pki / "ca.crt").read_bytes())
    return folder


def agent(lab: Lab, node: str, url: str, folder: Path, provider: str = "azure") -> Agent:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = cluster.Server(lab.addresses.api_url, credentials(lab, node, folder))
    given = settings.Settings(
        node=node,
        provider=provider,
        metadata_url=url,
        window=None,
        margin=2.0,
        http_port=port,
        log_level="INFO",
        server=server,
    )
    return Agent(given)


@pytest.mark.usefixtures("installed")
def test_a_notice_on_one_node_ends_the_whole_gang_within_the_window(
    job: play.Job, plane: Lab, tmp_path: Path
) -> None:
    """The operator does it within seconds, the agent leaves it to the operator, and it costs no failure."""
    fake = fakes.Azure()
    with play.machines(plane.api, *four_machines(MACHINE)), fakes.running(fake):
        one = agent(plane, "ag-1", fake.url, tmp_path)
        one.start()
        try:
            gang_of_three(plane, job)
            clock.wait_for("the agent armed", lambda: one.ready, seconds=10)

            deadline = soon(WINDOW)
            fake.give_notice(deadline)
            graces = job.wait("all asked to stop", lambda: stopping(job), seconds=5)

            doomed = next(name for name, where in nodes_of(job).items() if where == "ag-1")
            assert graces[doomed] <= WINDOW - 2
            assert graces[doomed] >= WINDOW - 8
            mark = json.loads(node(plane.api, "ag-1")["metadata"]["annotations"]["spottrain.dev/reclaim"])
            assert duration.parse_time(mark["deadline"]) == deadline
            job.end_all_deleted(75)
            job.wait_running(2)
            assert set(nodes_of(job).values()) == {"ag-2", "ag-3", "ag-4"}
            status = job.status()
            assert (status["reclaims"], status["failures"]) == (1, 0)
            assert status["lastReclaim"]["cause"] == "Notice"
            assert one.metric("spottrain_agent_pods_deleted_total") == 0
            assert one.metric("spottrain_agent_notices_total") == 1
        finally:
            one.stop()


def four_machines(provider_id: str) -> list[play.Object]:
    """Of which the first is that one."""
    labels = play.SPOT | {"case": "ag"}
    made = [{"name": f"ag-{index}", "labels": labels, "gpus": 1} for index in (1, 2, 3, 4)]
    return [made[0] | {"provider_id": provider_id}, *made[1:]]


def gang_of_three(lab: Lab, job: play.Job) -> None:
    """It runs on the first three of the machines; the fourth is for a worker that has to leave."""
    document = play.manifest(workers=3, annotations=play.BY_HAND, spot={"window": "10m"})
    pod = document["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"case": "ag"}
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    lab.kubectl("cordon", "ag-4")
    job.applied(document)
    job.wait_running(1)
    lab.kubectl("uncordon", "ag-4")


def stopping(job: play.Job) -> dict[str, int]:
    """Grace by pod, when every worker of the first attempt has been told to stop."""
    found = {name: one["metadata"] for name, one in job.pods().items() if name.endswith("-1")}
    graces = {n: m["deletionGracePeriodSeconds"] for n, m in found.items() if "deletionTimestamp" in m}
    return graces if len(graces) == 3 else {}


def nodes_of(job: play.Job) -> dict[str, str]:
    return {name: one["spec"].get("nodeName", "") for name, one in job.pods().items()}


def node(api: Api, name: str) -> play.Object:
    return dict(api.get(f"/api/v1/nodes/{name}").expect(name))


def asked_to_save(job: play.Job) -> set[str]:
    """The moments for which its workers are asked for a save; one of them isn't asked: none."""
    found = [one["metadata"]["annotations"].get("spottrain.dev/save") for one in job.pods().values()]
    return set(found) if None not in found else set()


@pytest.mark.usefixtures("installed")
def test_c9_a_recommendation_asks_the_whole_gang_for_a_save_once_and_stops_nobody(
    job: play.Job, plane: Lab, tmp_path: Path
) -> None:
    fake = fakes.Imds()
    with play.machines(plane.api, *four_machines("aws:///zone-a/i-1")), fakes.running(fake):
        one = agent(plane, "ag-1", fake.url, tmp_path, "aws")
        one.start()
        try:
            gang_of_three(plane, job)
            clock.wait_for("the agent armed", lambda: one.ready, seconds=10)
            fake.rebalance = {"noticeTime": f"{soon(0):%Y-%m-%dT%H:%M:%SZ}"}
            (moment,) = job.wait("all asked", lambda: asked_to_save(job), seconds=15)
            assert abs((duration.parse_time(moment) - soon(0)).total_seconds()) < 15

            fake.rebalance = {"noticeTime": f"{soon(1):%Y-%m-%dT%H:%M:%SZ}"}
            changed = clock.poll(lambda: asked_to_save(job) != {moment}, seconds=7)
            assert not changed
            status = job.status()
            assert (status["attempt"], status["reclaims"], status["phase"]) == (1, 0, "Running")
            assert not any("deletionTimestamp" in pod["metadata"] for pod in job.pods().values())
            assert [words.partition(":")[0] for words in job.events("ReclaimHint")] == [
                "ag-1 may be taken soon"
            ]
            found = node(plane.api, "ag-1")
            assert not {taint["key"] for taint in found["spec"].get("taints", ())} & {"spottrain.dev/reclaim"}
            assert not found["spec"].get("unschedulable")

            fake.rebalance = None
            clock.wait_for("no hint", lambda: not hinted(plane.api, "ag-1"), seconds=20)
        finally:
            one.stop()


def hinted(api: Api, name: str) -> bool:
    return "spottrain.dev/reclaim-hint" in node(api, name)["metadata"].get("annotations", {})


def drill(lab: Lab, *arguments: str) -> subprocess.Popen[str]:
    program = "from spottrain.cli.main import main; main()"
    command = [sys.executable, "-c", program, "drill", *arguments]
    environment = {**os.environ, **lab.env(), "PYTHONPATH": ":".join(sys.path)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True)


@pytest.mark.usefixtures("installed")
def test_a_drill_takes_the_gang_down_as_a_notice_does_and_gives_the_node_back(
    job: play.Job, plane: Lab, operator: Operator, tmp_path: Path
) -> None:
    """By the command, on a cloud without notices; everything that is told of it says that it is a drill."""
    window = 20
    counted = operator.metric("spottrain_reclaims_total", namespace=job.namespace, cause="Drill")
    with play.machines(plane.api, *four_machines("")):
        one = agent(plane, "ag-1", "", tmp_path, "none")
        one.start()
        try:
            gang_of_three(plane, job)
            clock.wait_for("the agent", lambda: hears(plane.api, "ag-1"), seconds=15)
            refused = drill(plane, "ag-2")
            assert "ag-2 has no notice agent" in refused.communicate(timeout=60)[1]
            assert refused.returncode == 1

            command = drill(plane, "ag-1", "--window", f"{window}s")
            graces = job.wait("all asked to stop", lambda: stopping(job), seconds=30)
            doomed = next(name for name, where in nodes_of(job).items() if where == "ag-1")
            assert window - 9 <= graces[doomed] <= window - 2
            mark = json.loads(node(plane.api, "ag-1")["metadata"]["annotations"]["spottrain.dev/reclaim"])
            assert mark["cause"] == "Drill"
            job.end_all_deleted(75)
            job.wait_running(2)
            assert set(nodes_of(job).values()) == {"ag-2", "ag-3", "ag-4"}

            told, faults = command.communicate(timeout=120)
            assert (command.returncode, faults) == (0, "")
            assert f"workers on it: {job.namespace}/" in told
            assert told.endswith("over: ag-1 takes workers again\n")
            after = node(plane.api, "ag-1")
            assert not [
                key for key in after["metadata"].get("annotations", {}) if key.startswith("spottrain.dev/")
            ]
            assert "spottrain.dev/reclaim" not in {taint["key"] for taint in after["spec"].get("taints", ())}
            status = job.status()
            assert (status["reclaims"], status["failures"], status["lastReclaim"]["cause"]) == (1, 0, "Drill")
            now = operator.metric("spottrain_reclaims_total", namespace=job.namespace, cause="Drill")
            assert now == counted + 1
            assert one.metric("spottrain_agent_notices_total", source="drill", cause="Drill") == 1
            assert one.metric("spottrain_agent_pods_deleted_total") == 0
        finally:
            one.stop()


def hears(api: Api, name: str) -> bool:
    return any(one["type"] == "SpottrainNotices" for one in node(api, name)["status"]["conditions"])


@pytest.mark.usefixtures("installed")
def test_c15_the_agent_is_on_every_spot_node_whatever_its_taints(plane: Lab) -> None:
    """It stays when the node is cordoned and gets a NoExecute taint; an on-demand node has none."""
    tainted = {"name": "ag-t", "labels": {"kubernetes.azure.com/scalesetpriority": "spot"}, "taints": TAINTS}
    with play.machines(plane.api, tainted, {"name": "ag-o", "labels": play.ON_DEMAND}):
        before = clock.wait_for("the agent's pod", lambda: pods_of_agent(plane.api, "ag-t"), seconds=20)
        assert plane.api.get(DAEMON_SET).body["status"]["desiredNumberScheduled"] == 1

        plane.kubectl("cordon", "ag-t")
        plane.kubectl("taint", "node", "ag-t", "foo=bar:NoExecute")
        clock.poll(lambda: pods_of_agent(plane.api, "ag-t") != before, seconds=3)

        assert pods_of_agent(plane.api, "ag-t") == before
        assert plane.api.get(DAEMON_SET).body["status"]["desiredNumberScheduled"] == 1
        assert pods_of_agent(plane.api, "ag-o") == []


@pytest.mark.usefixtures("installed")
def test_the_agent_may_touch_its_own_node_and_the_workers_on_it_and_nothing_else(
    job: play.Job, plane: Lab, tmp_path: Path
) -> None:
    two = ({"name": "ag-a", "labels": play.SPOT}, {"name": "ag-b", "labels": play.SPOT})
    with play.machines(plane.api, *two):
        server = cluster.Server(plane.addresses.api_url, credentials(plane, "ag-a", tmp_path))
        api = cluster.Cluster(server, clocks.Clock())
        for name, where, label in (
            ("worker", "ag-a", "spottrain.dev/job"),
            ("elsewhere", "ag-b", "spottrain.dev/job"),
            ("foreign", "ag-a", "app"),
        ):
            plane.api.call("POST", f"/api/v1/namespaces/{job.namespace}/pods", pod(name, where, label))

        wanted = marks.Mark("Preempted", "e1", "azure-scheduled-events", soon(30), soon(0))
        own_node.OwnNode(api, "ag-a").mark(wanted)
        own_node.OwnNode(api, "ag-a").show("True", "Armed", "x", soon(0))
        assert marks.on(node(plane.api, "ag-a")) == wanted

        merge = cluster.MERGE_PATCH
        for path, change, words in (
            ("ag-b", {"metadata": {"annotations": {"a": "b"}}}, "its own node only"),
            ("ag-a", {"metadata": {"annotations": {"a": "b"}}}, "annotations on a node, and no other"),
            ("ag-a", {"metadata": {"annotations": {MANAGED: None}}}, "annotations on a node, and no other"),
            (
                "ag-a",
                {"metadata": {"annotations": {"spottrain.dev/drill": "{}"}}},
                "annotations on a node, and",
            ),
            ("ag-a", {"metadata": {"labels": {"a": "b"}}}, "no label and no other taint"),
            ("ag-a", {"spec": {"unschedulable": True}}, "no label and no other taint"),
            ("ag-a", {"spec": {"taints": [TAINTS[0]]}}, "no label and no other taint"),
            ("ag-a/status", {"status": {"conditions": []}}, "nothing else of its status"),
            ("ag-a/status", {"status": {"capacity": {"cpu": "1"}}}, "nothing else of its status"),
        ):
            with pytest.raises(cluster.ApiError, match=words):
                api.request("PATCH", f"/api/v1/nodes/{path}", change, merge)
        for name in ("elsewhere", "foreign"):
            with pytest.raises(cluster.ApiError, match="workers on its own node only"):
                api.request("DELETE", f"/api/v1/namespaces/{job.namespace}/pods/{name}")
        api.request("DELETE", f"/api/v1/namespaces/{job.namespace}/pods/worker")
        hint = hints.Hint("Rebalance", "e2", "aws-rebalance", soon(0))
        own_node.OwnNode(api, "ag-a").hint(hint)
        assert hints.on(node(plane.api, "ag-a")) == hint
        own_node.OwnNode(api, "ag-a").hint(None)
        own_node.OwnNode(api, "ag-a").mark(dataclasses.replace(wanted, cause="Drill"))
        plane.kubectl("annotate", "node", "ag-a", f"{DRILL}={{}}")
        own_node.OwnNode(api, "ag-a").mark(None)
        assert "spottrain.dev/" not in str(node(plane.api, "ag-a")["metadata"].get("annotations"))
        assert next(own_node.OwnNode(api, "ag-a").changes())["metadata"]["name"] == "ag-a"


@pytest.mark.usefixtures("installed")
def test_c13_a_worker_that_nobody_stops_is_deleted_whatever_its_disruption_budget(
    job: play.Job, plane: Lab, tmp_path: Path
) -> None:
    """No operator knows this one. Its deletion leaves it all but the margin of what is left."""
    path = f"/api/v1/namespaces/{job.namespace}/pods"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"spottrain.dev/job": "x"}}},
    }
    fake = fakes.Azure()
    machine = {"name": "ag-p", "labels": play.SPOT, "provider_id": MACHINE}
    with play.machines(plane.api, machine), fakes.running(fake):
        one = agent(plane, "ag-p", fake.url, tmp_path)
        for name, label in (("tr-0-a", "spottrain.dev/job"), ("foreign", "app")):
            made = pod(name, "ag-p", label)
            made["metadata"]["annotations"] = play.BY_HAND
            made["spec"]["terminationGracePeriodSeconds"] = 600
            plane.api.call("POST", path, made).expect(name)
        plane.api.call("POST", f"/apis/policy/v1/namespaces/{job.namespace}/poddisruptionbudgets", budget)
        one.start()
        try:
            clock.wait_for("the agent armed", lambda: one.ready, seconds=10)
            fake.give_notice(soon(WINDOW))
            worker = clock.wait_for("the deletion", lambda: deleted(plane.api, f"{path}/tr-0-a"), seconds=5)

            assert WINDOW - 9 <= worker["deletionGracePeriodSeconds"] <= WINDOW - 4
            assert not deleted(plane.api, f"{path}/foreign")
            assert one.metric("spottrain_agent_pods_deleted_total") == 1
        finally:
            one.stop()
            for name in ("tr-0-a", "foreign"):
                job.vanish(name)


def deleted(api: Api, path: str) -> play.Object:
    metadata: play.Object = api.get(path).expect(path)["metadata"]
    return metadata if "deletionTimestamp" in metadata else {}


def pod(name: str, where: str, label: str) -> play.Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {label: "x"}},
        "spec": {"nodeName": where, "containers": [{"name": "c", "image": play.IMAGE}]},
    }
