"""Faults that other people met in public: input → required outcome, on a real control plane."""

import time

import pytest

from lab.api import Api
from tests.cluster import play
from tests.cluster.conftest import NODE_LOSS, Operator

SAVES_ON_SIGTERM = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(3600)"


def test_a2_reclaims_leave_the_failure_budget_alone(job: play.Job, api: Api, operator: Operator) -> None:
    """Ten reclaims, then four crashes: three are forgiven, the fourth ends the job."""
    with play.machines(api, {"name": "a2-1", "labels": play.SPOT}, {"name": "a2-2", "labels": play.SPOT}):
        job.applied(play.manifest(workers=1, maxFailures=3))
        for attempt in range(1, 11):
            job.wait_running(attempt)
            job.reclaim(f"tr-0-{attempt}")
        job.wait_running(11)
        status = job.status()
        assert (status["phase"], status["reclaims"], status["failures"]) == ("Running", 10, 0)
        assert operator.metric("spottrain_reclaims_total", namespace=job.namespace, cause="Evicted") == 10
        for attempt in range(11, 14):
            job.crash(f"tr-0-{attempt}")
            job.wait_running(attempt + 1, seconds=60)
        job.crash("tr-0-14")
        job.wait_phase("Failed")
        status = job.status()
        assert (status["failures"], status["reclaims"], status["attempt"]) == (4, 10, 14)
        assert operator.metric("spottrain_failures_total", namespace=job.namespace) == 4
        failed = job.condition("Failed")
        assert failed["reason"] == "TooManyFailures"
        assert failed["message"] == "4 failures, 3 allowed; the last one: tr-0-14 exited 1 (Error)"
        job.wait("the Job failed", lambda: job.batch_job()["status"].get("failed") == 4)
        assert not [name for name, pod in job.pods().items() if pod["status"]["phase"] == "Running"]


@pytest.mark.parametrize("how", ["deleted", "evicted", "both at once"])
def test_a5_exit_0_after_sigterm_is_not_completion(job: play.Job, api: Api, how: str) -> None:
    """The gang goes on as a new attempt with the same checkpoint; an unasked exit 0 does complete."""
    spots = [{"name": f"a5-{index}", "labels": play.SPOT} for index in (1, 2)]
    with play.machines(api, *spots):
        document = play.manifest(workers=2, annotations=play.BY_HAND)
        document["spec"]["template"]["spec"]["containers"][0]["command"] = ["python3", "-c", SAVES_ON_SIGTERM]
        job.applied(document)
        job.wait_running(1)
        before = environment(job.pod("tr-1-1"))
        stopped = ["tr-0-1", "tr-1-1"] if how == "both at once" else ["tr-1-1"]
        for name in stopped:
            if how == "evicted":
                job.evict(name)
            else:
                job.delete_pod(name, grace=30)
        for name in stopped:
            job.end(name, 0)
            job.vanish(name)
        job.wait("the peer asked to stop", lambda: not job.pods().get("tr-0-1") or deleting(job, "tr-0-1"))
        job.end_all_deleted(0)
        job.wait_running(2)
        assert "completedIndexes" not in job.batch_job()["status"]
        after = environment(job.pod("tr-1-2"))
        assert after["SPOTTRAIN_CHECKPOINT_URI"] == before["SPOTTRAIN_CHECKPOINT_URI"] == "s3://ck/tr"
        assert (before["SPOTTRAIN_ATTEMPT"], after["SPOTTRAIN_ATTEMPT"]) == ("1", "2")
        assert before["SPOTTRAIN_ATTEMPT_ID"] != after["SPOTTRAIN_ATTEMPT_ID"]
        job.end("tr-0-2", 0)
        job.end("tr-1-2", 0)
        job.wait_phase("Complete")
        job.wait("the Job complete", lambda: job.batch_job()["status"].get("completedIndexes") == "0-1")


def deleting(job: play.Job, name: str) -> bool:
    return "deletionTimestamp" in job.pod(name)["metadata"]


def environment(pod: play.Object) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


def test_a8_a_dead_node_is_tolerated_for_seconds_only(job: play.Job, api: Api) -> None:
    """Exactly one toleration for each fault of a node, with the operator's patience."""
    job.applied(play.manifest(workers=2))
    job.wait("a pod", lambda: "tr-0-1" in job.pods())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        found = [one for one in job.pod("tr-0-1")["spec"]["tolerations"] if one.get("key") == key]
        assert [(one["effect"], one["tolerationSeconds"]) for one in found] == [("NoExecute", NODE_LOSS)]


def test_a8_a_templates_own_toleration_is_kept_and_not_doubled(job: play.Job) -> None:
    document = play.manifest(workers=1)
    own = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 7,
    }
    document["spec"]["template"]["spec"]["tolerations"] = [own]
    job.applied(document)
    job.wait("a pod", lambda: "tr-0-1" in job.pods())
    given = job.pod("tr-0-1")["spec"]["tolerations"]
    assert [one for one in given if one.get("key") == own["key"]] == [own]
    assert not [one for one in given if one.get("tolerationSeconds") == 300]


@pytest.mark.parametrize(
    ("limits", "live"),
    [
        ({"cpu": 2}, {"cpu": "2"}),
        ({"cpu": "2"}, {"cpu": "2"}),
        ({"cpu": 0.5}, {"cpu": "500m"}),
        ({"cpu": "500m"}, {"cpu": "500m"}),
        ({"memory": "64Gi", "nvidia.com/gpu": 8}, {"memory": "64Gi", "nvidia.com/gpu": "8"}),
        ({"memory": "64Gi", "nvidia.com/gpu": "8"}, {"memory": "64Gi", "nvidia.com/gpu": "8"}),
    ],
    ids=["cpu 2", "cpu '2'", "cpu 0.5", "cpu 500m", "gpu 8", "gpu '8'"],
)
def test_a21_quantities_in_every_legal_spelling_reach_the_pod(
    job: play.Job, limits: play.Object, live: play.Object
) -> None:
    document = play.manifest(workers=1)
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    job.applied(document)
    job.wait("a pod", lambda: "tr-0-1" in job.pods())
    assert job.pod("tr-0-1")["spec"]["containers"][0]["resources"]["limits"] == live


def test_a21_a_quantity_that_is_none_is_refused_with_its_path(job: play.Job) -> None:
    document = play.manifest(workers=1)
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "8 GB"}}
    answer = job.create(document)
    assert answer.status == 422
    assert "spec.template.spec.containers[0].resources.limits" in str(answer.body)
    assert job.pods() == {}


CLASSES = (
    {"name": "a29-karpenter-spot", "labels": play.SPOT},
    {"name": "a29-eks-spot", "labels": {"eks.amazonaws.com/capacityType": "SPOT"}},
    {"name": "a29-gke-spot", "labels": {"cloud.google.com/gke-spot": "true"}},
    {"name": "a29-gke-preemptible", "labels": {"cloud.google.com/gke-preemptible": "true"}},
    {
        "name": "a29-aks-spot",
        "labels": {"kubernetes.azure.com/scalesetpriority": "spot"},
        "taints": (
            {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"},
        ),
    },
    {"name": "a29-gpu", "taints": ({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},)},
    {"name": "a29-plain"},
)


def test_a29_unknown_nodes_never_fill_the_floor(job: play.Job, api: Api, operator: Operator) -> None:
    """With no on-demand node three workers run and a condition says what is missing; then one comes."""
    with play.machines(api, *CLASSES):
        document = play.manifest(workers=4, spot={"onDemandFloor": 1})
        document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        job.applied(document)
        job.wait("the floor unmet", lambda: job.condition("FloorMet").get("reason") == "FloorUnmet")
        job.wait("three running", lambda: job.status()["workers"]["running"] == 3)
        met = job.condition("FloorMet")
        assert met["status"] == "False"
        assert met["message"] == "workers on on-demand nodes: wanted 1, found 0"
        assert operator.metric("spottrain_job_floor_shortfall", namespace=job.namespace) == 1
        assert not job.pod("tr-0-1")["spec"].get("nodeName")
        keys = {one.get("key") for one in job.pod("tr-1-1")["spec"]["tolerations"]}
        assert {
            "kubernetes.azure.com/scalesetpriority",
            "nvidia.com/gpu",
            "cloud.google.com/gke-spot",
        } <= keys
        with play.machines(api, {"name": "a29-on-demand", "labels": play.ON_DEMAND}):
            job.wait_running(1)
            assert job.pod("tr-0-1")["spec"]["nodeName"] == "a29-on-demand"
            assert job.condition("FloorMet")["reason"] == "FloorHeld"
            assert operator.metric("spottrain_job_floor_shortfall", namespace=job.namespace) == 0


AWS = {"name": "a30-aws", "labels": play.SPOT, "provider_id": "aws:///z/i-1"}
GKE = {"name": "a30-gke", "labels": {"cloud.google.com/gke-spot": "true"}, "provider_id": "gce://p/z/i"}
AKS = {
    "name": "a30-aks",
    "labels": {"kubernetes.azure.com/scalesetpriority": "spot"},
    "provider_id": "azure:///x",
}


@pytest.mark.parametrize(
    ("nodes", "window", "grace"),
    [
        ([AWS], None, 114),
        ([GKE], None, 13),
        ([GKE], "30s", 28),
        ([GKE], "120s", 114),
        ([AKS], None, 28),
        ([AWS, GKE], None, 13),
    ],
    ids=["AWS", "GKE", "GKE with 30 s", "GKE with 120 s", "AKS", "AWS and GKE"],
)
def test_a30_the_grace_fits_the_notice(
    job: play.Job, api: Api, nodes: list[play.Object], window: str | None, grace: int
) -> None:
    """600 s are wished for; one Warning states both numbers, and autoscalers are kept off the pod."""
    with play.machines(api, *nodes):
        document = play.manifest(workers=2)
        if window:
            document["spec"]["spot"] = {"window": window}
        document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
        job.applied(document)
        job.wait_running(1)
        pod = job.pod("tr-0-1")
        assert pod["spec"]["terminationGracePeriodSeconds"] == grace
        assert pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
        assert pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        (warning,) = job.wait("the warning", lambda: job.events("GraceCapped"))
        assert "10m" in warning
        assert {114: "1m54s", 28: "28s", 13: "13s"}[grace] in warning


def test_the_operator_killed_in_the_middle_of_a_restart_finishes_it_afterwards(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """What was recorded before the acts is enough: one reclaim, one new attempt, no pod twice."""
    with play.machines(api, {"name": "kill-1", "labels": play.SPOT}, {"name": "kill-2", "labels": play.SPOT}):
        job.applied(play.manifest(annotations=play.BY_HAND))
        job.wait_running(1)
        job.evict("tr-2-1")
        job.wait("the intent", lambda: job.status()["attempt"] == 2, seconds=10)
        operator.kill()
        try:
            job.end_all_deleted(143)
        finally:
            operator.start()
        job.wait("all asked to stop", lambda: all_ending(job))
        job.end_all_deleted(143)
        job.wait_running(2)
        status = job.status()
        assert (status["reclaims"], status["failures"]) == (1, 0)
        live = [name for name, pod in job.pods().items() if pod["status"]["phase"] == "Running"]
        assert sorted(live) == ["tr-0-2", "tr-1-2", "tr-2-2", "tr-3-2"]


def all_ending(job: play.Job) -> bool:
    """Every pod of the first attempt is deleted or gone."""
    return all(
        "deletionTimestamp" in pod["metadata"] for name, pod in job.pods().items() if name.endswith("-1")
    )


def test_a_pod_deleted_while_the_operator_is_down_restarts_the_gang(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "down-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        operator.kill()
        try:
            job.vanish("tr-1-1")
        finally:
            operator.start()
        job.wait_running(2)
        assert job.status()["lastReclaim"]["cause"] == "PodVanished"


def test_nothing_of_ours_has_a_finalizer_and_the_namespace_goes(job: play.Job, api: Api) -> None:
    """kwok plays the kubelet; the namespace is gone within the grace and 30 s."""
    with play.machines(api, {"name": "gone-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        things = [job.get(), job.batch_job(), *job.pods().values()]
        things.append(api.get(f"/api/v1/namespaces/{job.namespace}/services/tr").expect("the Service"))
        assert [one["metadata"].get("finalizers") for one in things] == [None] * 5
        begun = time.monotonic()
        api.call("DELETE", f"/api/v1/namespaces/{job.namespace}").expect("deleting the namespace")
        job.wait(
            "the namespace gone", lambda: api.get(f"/api/v1/namespaces/{job.namespace}").status == 404, 58
        )
        assert time.monotonic() - begun < 58


def test_a_template_that_the_server_refuses_is_a_condition_in_its_own_words(job: play.Job) -> None:
    document = play.manifest(workers=1)
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
    job.applied(document)
    accepted = job.wait("a refusal", lambda: rejected(job))
    assert accepted["reason"] == "TemplateRejected"
    assert 'Unsupported value: "Sometimes"' in accepted["message"]
    fixed = {"spec": {"template": play.manifest()["spec"]["template"]}}
    job.patch(fixed).expect("the edit")
    job.wait("a pod after the edit", lambda: "tr-0-1" in job.pods())


def rejected(job: play.Job) -> play.Object | None:
    accepted = job.condition("Accepted")
    return accepted if accepted.get("status") == "False" else None


def test_a_quota_waits_for_room_and_says_so(job: play.Job, api: Api) -> None:
    few = play.quota(job, pods=1)
    with play.machines(api, {"name": "quota-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        running = job.wait("a condition", lambda: refused(job))
        assert "exceeded quota" in running["message"]
        few(9)
        job.wait_running(1, seconds=60)


def refused(job: play.Job) -> play.Object | None:
    running = job.condition("Running")
    return running if running.get("reason") == "CreationRefused" else None


def test_suspend_ends_the_pods_and_resume_starts_a_new_attempt(job: play.Job, api: Api) -> None:
    with play.machines(api, {"name": "suspend-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        job.patch({"spec": {"suspend": True}}).expect("suspending")
        job.wait_phase("Suspended")
        job.wait("no pods", lambda: not job.pods())
        job.wait("the Job idle", lambda: not job.batch_job()["status"].get("active"))
        assert job.batch_job()["spec"]["suspend"] is True
        job.patch({"spec": {"suspend": False}}).expect("resuming")
        job.wait_running(2)
        assert [one["cause"] for one in job.status()["attempts"]] == ["Initial", "Resumed"]
        assert (job.status()["reclaims"], job.status()["failures"]) == (0, 0)


def test_an_edit_that_the_server_would_refuse_ends_no_training(job: play.Job, api: Api) -> None:
    """It is tried on the server before anything is stopped; the words are the server's own."""
    with play.machines(api, {"name": "edit-2", "labels": play.SPOT}):
        job.applied(play.manifest())
        job.wait_running(1)
        before = {pod["metadata"]["uid"] for pod in job.pods().values()}
        good = play.manifest()["spec"]["template"]["spec"]["containers"][0]
        bad = {"spec": {"containers": [{**good, "imagePullPolicy": "Sometimes"}]}}
        job.patch({"spec": {"workers": 3, "template": bad}}).expect("the edit")
        job.wait("the refusal told", lambda: job.condition("Accepted")["status"] == "False")
        told = job.condition("Accepted")
        assert told["reason"] == "TemplateRejected"
        assert "imagePullPolicy" in told["message"]
        assert job.status()["phase"] == "Running"
        assert {pod["metadata"]["uid"] for pod in job.pods().values()} == before
        mended = {"spec": {"containers": [good]}}
        job.patch({"spec": {"template": mended}}).expect("the mended edit")
        job.wait("three workers", lambda: job.status()["workers"] == workers(3), seconds=40)
        assert (job.status()["attempt"], job.status()["reclaims"]) == (2, 0)


def test_an_edited_template_starts_anew(job: play.Job, api: Api) -> None:
    with play.machines(api, {"name": "edit-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        job.patch({"spec": {"workers": 3}}).expect("the edit")
        job.wait("three workers", lambda: job.status()["workers"] == workers(3), seconds=40)
        assert job.status()["attempts"][-1]["cause"] == "SpecChanged"
        assert (job.status()["reclaims"], job.status()["failures"]) == (0, 0)


def workers(count: int) -> play.Object:
    return {"desired": count, "running": count, "spot": count, "onDemand": 0, "succeeded": 0, "fallback": 0}


def test_the_stock_controller_leaves_the_job_alone_and_tools_understand_it(job: play.Job, api: Api) -> None:
    with play.machines(api, {"name": "tools-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        batch = job.batch_job()
        assert batch["spec"]["managedBy"] == "spottrain.dev/operator"
        job.wait("the mirror", lambda: job.batch_job()["status"].get("ready") == 2)
        assert job.batch_job()["status"]["active"] == 2
        selector = {"batch.kubernetes.io/controller-uid": batch["metadata"]["uid"]}
        assert batch["spec"]["selector"]["matchLabels"] == selector
        assert (
            job.pod("tr-0-1")["metadata"]["labels"]["batch.kubernetes.io/controller-uid"]
            == batch["metadata"]["uid"]
        )
