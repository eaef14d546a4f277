"""The notice agent with the DaemonSet and the rights of the chart, beside the operator; a fake cloud."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import clock, fakes, kwok
from lab.api import Api
from lab.cluster import Lab
from manifests import render
from spottrain.agent import clock as clocks
from spottrain.agent import cluster, marks, own_node, settings
from spottrain.api import duration
from tests.agent.conftest import Agent, soon
from tests.cluster import play

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


def agent(lab: Lab, node: str, url: str, folder: Path) -> Agent:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = cluster.Server(lab.addresses.api_url, credentials(lab, node, folder))
    given = settings.Settings(
        node=node,
        provider="azure",
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
    own = {"name": "ag-1", "labels": play.SPOT | {"case": "ag"}, "provider_id": MACHINE, "gpus": 1}
    others = [{"name": f"ag-{index}", "labels": play.SPOT | {"case": "ag"}, "gpus": 1} for index in (2, 3, 4)]
    fake = fakes.Azure()
    with play.machines(plane.api, own, *others), fakes.running(fake):
        one = agent(plane, "ag-1", fake.url, tmp_path)
        one.start()
        try:
            document = play.manifest(workers=3, annotations=play.BY_HAND, spot={"window": "10m"})
            pod = document["spec"]["template"]["spec"]
            pod["nodeSelector"] = {"case": "ag"}
            pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
            # The fourth machine is for the worker that has to leave.
            plane.kubectl("cordon", "ag-4")
            job.applied(document)
            job.wait_running(1)
            plane.kubectl("uncordon", "ag-4")
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


def stopping(job: play.Job) -> dict[str, int]:
    """Grace by pod, when every worker of the first attempt has been told to stop."""
    found = {name: one["metadata"] for name, one in job.pods().items() if name.endswith("-1")}
    graces = {n: m["deletionGracePeriodSeconds"] for n, m in found.items() if "deletionTimestamp" in m}
    return graces if len(graces) == 3 else {}


def nodes_of(job: play.Job) -> dict[str, str]:
    return {name: one["spec"].get("nodeName", "") for name, one in job.pods().items()}


def node(api: Api, name: str) -> play.Object:
    return dict(api.get(f"/api/v1/nodes/{name}").expect(name))


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
            ("ag-a", {"metadata": {"annotations": {"a": "b"}}}, "annotation on a node, and no other"),
            ("ag-a", {"metadata": {"annotations": {MANAGED: None}}}, "annotation on a node, and no other"),
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
        own_node.OwnNode(api, "ag-a").mark(None)
        assert marks.on(node(plane.api, "ag-a")) is None


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
