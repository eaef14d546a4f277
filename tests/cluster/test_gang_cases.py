"""More faults that other people met: nodes that vanish, replacements, early losses, foreign objects."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from lab import kwok
from lab.api import Api
from tests.cluster import play
from tests.cluster.conftest import NODE_LOSS, Operator

Disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


def on(label: str, **changes: Any) -> play.Object:
    """A manifest whose pods go to nodes with that label only."""
    document = play.manifest(**changes)
    document["spec"]["template"]["spec"]["nodeSelector"] = {"case": label}
    return document


@pytest.mark.parametrize("then", ["nothing", "the Node object goes", "it comes back"])
def test_a7_a_vanished_node_is_a_reclaim_and_its_hanging_pod_is_replaced(
    job: play.Job, api: Api, then: str
) -> None:
    name = f"a7-{then.replace(' ', '-').lower()}"  # the node controller remembers names for a while
    with play.hand_made(api, name, {"case": "a7"}) as node:
        job.applied(on("a7", workers=1))
        job.wait("bound", lambda: node_of(job, "tr-0-1"))
        job.run("tr-0-1")
        job.wait_running(1)
        node.fall_silent()
        node.say_ready("Unknown", "NodeStatusUnknown")
        job.delete_pod("tr-0-1", grace=30)
        job.wait("the replacement", lambda: "tr-0-2" in job.pods(), seconds=30 + NODE_LOSS)
        if then == "the Node object goes":
            kwok.remove(api, name)
        if then == "it comes back":
            node.say_ready("True")
        with play.machines(api, {"name": "a7-other", "labels": {"case": "a7"}}):
            job.wait_running(2, seconds=30 + NODE_LOSS)
            old = job.pods().get("tr-0-1")
            assert old is None or "deletionTimestamp" in old["metadata"]
            assert job.status()["reclaims"] == 1
            assert job.status()["failures"] == 0


def test_a7_a_silent_lease_is_seen_before_kubernetes_calls_the_node_not_ready(
    job: play.Job, api: Api
) -> None:
    """10 s leases here: lost after 8.5 s of silence; the node controller says so after 16 s."""
    with play.hand_made(api, "lease-hand", {"case": "lease"}) as node:
        job.applied(on("lease", workers=1))
        job.wait("bound", lambda: node_of(job, "tr-0-1"))
        job.run("tr-0-1")
        job.wait_running(1)
        node.fall_silent()
        job.wait("the next attempt", lambda: job.status()["attempt"] == 2, seconds=20)
        reclaim = job.status()["lastReclaim"]
        assert (reclaim["cause"], reclaim["node"]) == ("NodeLost", "lease-hand")
        assert any("lease-hand" in text for text in job.wait("an Event", lambda: job.events("NodeLost")))


@pytest.mark.parametrize("condition", [[], [Disrupted]], ids=["without", "with DisruptionTarget"])
def test_a9_a_pod_ended_by_the_kubelets_shutdown_is_replaced(
    job: play.Job, api: Api, condition: list[play.Object]
) -> None:
    with play.machines(api, {"name": "a9-1", "labels": {"case": "a9"}}):
        job.applied(on("a9", workers=1, maxFailures=0))
        job.wait_running(1)
        words = {"phase": "Failed", "reason": "Terminated", "message": "node is shutting down"}
        before = job.pod("tr-0-1")["status"].get("conditions", [])
        job.patch_pod("tr-0-1", {**words, "conditions": [*before, *condition]})
        job.wait_running(2)
        status = job.status()
        assert (status["reclaims"], status["failures"]) == (1, 0)
        assert status["lastReclaim"]["cause"] == "NodeShutdown"


@pytest.mark.parametrize("how", ["reclaimed", "deleted"])
def test_a11_one_worker_lost_restarts_the_whole_gang(job: play.Job, api: Api, how: str) -> None:
    spots = [{"name": f"a11-{index}", "labels": {"case": "a11"}} for index in (1, 2)]
    with play.machines(api, *spots):
        job.applied(on("a11"))
        job.wait_running(1)
        if how == "reclaimed":
            job.reclaim("tr-2-1")
        else:
            job.delete_pod("tr-2-1")
        most = 0

        def recovered() -> bool:
            nonlocal most
            pods = job.pods()
            survivors = [
                n for n, pod in pods.items() if n.endswith("-1") and running(pod) and not ending(pod)
            ]
            pending = [n for n, pod in pods.items() if n.endswith("-2") and not pod["spec"].get("nodeName")]
            most = max(most, len(pending) if survivors else 0)
            return (job.status()["attempt"], job.status()["phase"]) == (2, "Running")

        job.wait("the gang", recovered, seconds=60)
        assert most <= 1, "more pods wait for nodes than workers were lost"
        live = {name: pod for name, pod in job.pods().items() if running(pod)}
        assert sorted(live) == ["tr-0-2", "tr-1-2", "tr-2-2", "tr-3-2"]
        assert {pod["metadata"]["labels"]["spottrain.dev/attempt"] for pod in live.values()} == {"2"}
        assert job.status()["reclaims"] == 1


def node_of(job: play.Job, name: str) -> str:
    """Where the pod is bound; empty while it isn't, or isn't there."""
    return str(job.pods().get(name, {}).get("spec", {}).get("nodeName") or "")


def running(pod: play.Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def ending(pod: play.Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_a12_a_straggler_cannot_meet_the_next_attempt(job: play.Job, api: Api) -> None:
    """Rendezvous, address and attempt of the next gang are others, the same for all of it."""
    with play.machines(api, {"name": "a12-1", "labels": {"case": "a12"}}):
        job.applied(play.manifest(annotations=play.BY_HAND))
        job.wait_running(1)
        old = environment(job.pod("tr-3-1"))
        job.reclaim("tr-0-1")
        job.wait("the next attempt", lambda: "tr-0-2" in job.pods())
        for name in ("tr-0-1", "tr-1-1", "tr-2-1"):
            job.vanish(name)
        job.wait("three successors", lambda: {"tr-0-2", "tr-1-2", "tr-2-2"} <= job.pods().keys())
        assert "tr-3-1" in job.pods(), "the straggler lives"
        assert "tr-3-2" not in job.pods()
        assert "spottrain.dev/go" not in job.pod("tr-0-2")["metadata"]["annotations"]
        new = [environment(job.pod(f"tr-{index}-2")) for index in range(3)]
        for key in ("PET_RDZV_ID", "PET_MASTER_ADDR", "SPOTTRAIN_ATTEMPT", "SPOTTRAIN_ATTEMPT_ID"):
            assert len({one[key] for one in new}) == 1
            assert new[0][key] != old[key]
        job.vanish("tr-3-1")
        job.wait_running(2)
        job.wait("go", lambda: "spottrain.dev/go" in job.pod("tr-0-2")["metadata"]["annotations"])


def environment(pod: play.Object) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


WAITING = {
    "bound": {},
    "in an init container": {"initContainerStatuses": [{"name": "fetch", "state": {"running": {}}}]},
    "creating": {
        "containerStatuses": [{"name": "trainer", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    },
    "pulling": {
        "containerStatuses": [{"name": "trainer", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    },
}


@pytest.mark.parametrize("state", [*WAITING, "unbound"])
def test_a15_a_loss_before_training_starts_is_no_failure(job: play.Job, api: Api, state: str) -> None:
    """No failure is allowed at all; a bound pod's loss is a reclaim, an unbound one's is nothing."""
    name = f"a15-{state.replace(' ', '-')}"  # the node controller remembers names for a while
    with play.hand_made(api, name, {"case": "a15"}):
        document = on("nowhere" if state == "unbound" else "a15", workers=1, maxFailures=0)
        document["spec"]["template"]["spec"]["initContainers"] = [{"name": "fetch", "image": play.IMAGE}]
        job.applied(document)
        job.wait("the pod", lambda: "tr-0-1" in job.pods())
        if state != "unbound":
            job.wait("bound", lambda: node_of(job, "tr-0-1"))
            fill = {"image": "i", "imageID": "", "ready": False, "restartCount": 0}
            said = {key: [{**fill, **one} for one in value] for key, value in WAITING[state].items()}
            disrupted = {**Disrupted, "reason": "EvictionByEvictionAPI"}
            before = job.pod("tr-0-1")["status"].get("conditions", [])
            job.patch_pod("tr-0-1", {**said, "conditions": [*before, disrupted]})
        lost = job.pod("tr-0-1")["metadata"]["uid"]
        job.delete_pod("tr-0-1", grace=0)
        job.wait("the successor", lambda: any(pod["metadata"]["uid"] != lost for pod in job.pods().values()))
        status = job.status()
        assert (status["reclaims"], status["failures"]) == (0 if state == "unbound" else 1, 0)
        assert status["phase"] != "Failed"


def test_a16_the_replacement_stays_off_the_dying_node(job: play.Job, api: Api) -> None:
    nodes = [{"name": f"a16-{index}", "labels": {"case": "a16"}} for index in (1, 2)]
    with play.machines(api, *nodes):
        job.applied(on("a16", workers=1))
        job.wait_running(1)
        first = job.pod("tr-0-1")["spec"]["nodeName"]
        mark(api, first, '{"cause": "aws-spot"}')
        job.wait_running(2)
        second = job.pod("tr-0-2")["spec"]["nodeName"]
        assert second != first
        mark(api, first, None)
        mark(api, second, '{"cause": "aws-spot"}')
        job.wait_running(3)
        assert job.pod("tr-0-3")["spec"]["nodeName"] == first
        assert job.status()["lastReclaim"]["cause"] == "Notice"


def mark(api: Api, node: str, text: str | None) -> None:
    """What the agent writes on a node that is about to be taken."""
    change = {"metadata": {"annotations": {"spottrain.dev/reclaim": text}}}
    api.merge(f"/api/v1/nodes/{node}", change).expect(node)


def foreign(name: str, rule: play.Object) -> play.Object:
    """A Job of somebody else with one kind of failure rule."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": play.IMAGE}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"spottrain.dev/job": name}},
        "spec": {"podFailurePolicy": {"rules": [rule]}, "suspend": True, "template": {"spec": pod}},
    }


def test_a17_foreign_jobs_in_the_namespace_do_no_harm(job: play.Job, api: Api, operator: Operator) -> None:
    path = f"/apis/batch/v1/namespaces/{job.namespace}/jobs"
    rules: tuple[play.Object, ...] = (
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    )
    for name, rule in zip(("x1", "x2"), rules, strict=True):
        api.call("POST", path, foreign(name, rule)).expect(name)
    job.wait("their own controller", lambda: all(settled(api, f"{path}/{name}") for name in ("x1", "x2")))
    before = {name: api.get(f"{path}/{name}").body["metadata"]["resourceVersion"] for name in ("x1", "x2")}
    job.applied(play.manifest())
    job.wait("four pods", lambda: len(job.pods()) == 4)
    after = {name: api.get(f"{path}/{name}").body["metadata"]["resourceVersion"] for name in ("x1", "x2")}
    assert after == before
    assert "podFailurePolicy" not in job.batch_job()["spec"]
    assert job.batch_job()["spec"]["managedBy"] == "spottrain.dev/operator"


def settled(api: Api, path: str) -> bool:
    """The stock controller has written its first status."""
    return bool(api.get(path).body.get("status", {}).get("conditions"))


def test_a18_every_promised_field_arrives_in_job_and_pod(job: play.Job) -> None:
    document = play.manifest(workers=1)
    pod = document["spec"]["template"]["spec"]
    given: play.Object = {
        "terminationGracePeriodSeconds": 25,
        "tolerations": [{"key": "mine", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefer("mine")]}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "rack",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"spottrain.dev/job": "tr"}},
            }
        ],
        "priorityClassName": "system-node-critical",
        "securityContext": {"runAsNonRoot": True},
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    del given["priorityClassName"]  # allowed in kube-system only; any other class must exist first
    pod.update(given)
    trainer = pod["containers"][0]
    field = {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}
    trainer["env"] = [{"name": "B", "value": "1"}, field, {"name": "A", "value": "2"}]
    trainer["volumeMounts"] = [{"name": "data", "mountPath": "/data", "subPath": "x"}]
    pod["containers"].append({"name": "side", "image": play.IMAGE, "env": []})
    job.applied(document)
    job.wait("the pod", lambda: "tr-0-1" in job.pods())
    for live in (job.batch_job()["spec"]["template"]["spec"], job.pod("tr-0-1")["spec"]):
        assert live["terminationGracePeriodSeconds"] == 25
        assert given["tolerations"][0] in live["tolerations"]
        preferred = live["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert prefer("mine") in preferred
        assert given["topologySpreadConstraints"][0] in live["topologySpreadConstraints"]
        assert live["securityContext"] == {"runAsNonRoot": True}
        first = live["containers"][0]
        assert [one for one in first["env"] if one["name"] in {"A", "B", "NODE"}] == trainer["env"]
        assert trainer["volumeMounts"][0] in first["volumeMounts"]
        assert live["containers"][1]["name"] == "side"


def prefer(label: str) -> play.Object:
    return {
        "weight": 7,
        "preference": {"matchExpressions": [{"key": label, "operator": "In", "values": ["yes"]}]},
    }


def test_a27_the_status_survives_a_full_life(job: play.Job, api: Api) -> None:
    """After each step every promised field is there, and is the same on a second read."""
    with play.machines(api, {"name": "a27-1", "labels": {"case": "a27"}}):
        job.applied(on("a27", workers=2))
        job.wait_running(1)
        promised = {
            *("phase", "conditions", "observedGeneration", "attempt", "attemptID", "createdAttempt"),
            *("goAttempt", "reclaims", "failures", "workers", "workersText", "attempts", "startTime"),
        }
        look(job, promised)
        job.reclaim("tr-1-1")
        job.wait_running(2)
        look(job, promised | {"lastReclaim"})
        job.end("tr-0-2", 0, message=json.dumps({"spottrain": 1, "state": "finished", "step": 99}))
        job.end("tr-1-2", 0)
        job.wait_phase("Complete")
        job.wait("the Job complete", lambda: job.batch_job()["status"].get("completionTime"))
        look(job, promised | {"lastReclaim", "completionTime", "progress"})
        assert job.status()["progress"] == {"step": 99}
        assert "kopf" not in json.dumps([job.get(), job.batch_job(), *job.pods().values()])


def look(job: play.Job, promised: set[str]) -> None:
    found = job.wait("a settled status", lambda: same_twice(job.status))
    assert promised <= found.keys()


def same_twice(read: Callable[[], play.Object]) -> play.Object | None:
    first, second = read(), read()
    return first if first == second else None


def test_two_gangs_that_hold_half_of_the_room_each_give_way(job: play.Job, api: Api) -> None:
    """Room for four workers, two gangs of three: within a few tries one of them runs, the other waits."""
    names = [{"name": f"half-{index}", "labels": {"case": "half"}, "gpus": 2} for index in (1, 2)]
    other = play.Job(api, job.namespace, "ts")
    with play.machines(api, *names):
        for one in (job, other):
            document = on("half", workers=3, placementTimeout="5s")
            document["metadata"]["name"] = one.name
            document["spec"]["template"]["spec"]["containers"][0]["resources"] = {
                "limits": {"nvidia.com/gpu": 1}
            }
            one.applied(document)
        job.wait(
            "one gang running",
            lambda: "Running" in {job.status().get("phase"), other.status().get("phase")},
            120,
        )
        loser = other if job.status()["phase"] == "Running" else job
        assert loser.status()["failures"] == loser.status()["reclaims"] == 0


def wait_for_pod(job: play.Job, name: str, seconds: float) -> None:
    job.wait(name, lambda: name in job.pods(), seconds)


def test_a1_reclaims_do_not_slow_down_later_replacements(job: play.Job, api: Api) -> None:
    """Six rounds, each replaced within 30 s and none later than the first by more than the noise."""
    with play.machines(api, {"name": "a1-1", "labels": {"case": "a1"}}):
        job.applied(on("a1", workers=3, maxFailures=0))
        seconds = []
        for attempt in range(1, 7):
            job.wait_running(attempt)
            begun = time.monotonic()
            job.reclaim(f"tr-1-{attempt}")
            wait_for_pod(job, f"tr-1-{attempt + 1}", seconds=30)
            seconds.append(time.monotonic() - begun)
        assert (job.status()["reclaims"], job.status()["failures"]) == (6, 0)
        assert seconds[-1] < seconds[0] + 5


@pytest.mark.slow
def test_a1_crashes_in_a_row_are_spaced_out(job: play.Job, api: Api) -> None:
    """The control: a program that fails at once is tried again after ever longer pauses."""
    with play.machines(api, {"name": "a1-2", "labels": {"case": "a1"}}):
        job.applied(on("a1", workers=1, maxFailures=20))
        gaps = []
        for attempt in range(1, 6):
            job.wait_running(attempt, seconds=90)
            begun = time.monotonic()
            job.crash(f"tr-0-{attempt}")
            wait_for_pod(job, f"tr-0-{attempt + 1}", seconds=120)
            gaps.append(time.monotonic() - begun)
        assert gaps == sorted(gaps)
        assert gaps[-1] >= 30


def test_b11_reclaimed_again_and_again_each_attempt_has_the_same_place_for_its_checkpoints(
    job: play.Job, api: Api
) -> None:
    """What differs from attempt to attempt is who it is, not where its checkpoints are."""
    with play.machines(api, {"name": "b11", "labels": {"case": "b11"}}):
        job.applied(on("b11", workers=1, maxFailures=0))
        lives = []
        for attempt in range(1, 6):
            job.wait_running(attempt)
            (container,) = job.pod(f"tr-0-{attempt}")["spec"]["containers"]
            lives.append({one["name"]: one["value"] for one in container["env"]})
            job.reclaim(f"tr-0-{attempt}")
        first = lives[0]
        changed = {name for life in lives for name in life if life[name] != first.get(name)}
        assert changed == {"SPOTTRAIN_ATTEMPT", "SPOTTRAIN_ATTEMPT_ID", "PET_MASTER_ADDR", "PET_RDZV_ID"}
        assert first["SPOTTRAIN_CHECKPOINT_URI"] == "s3://ck/tr"
