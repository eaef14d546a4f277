"""Brakes and the life of a job on a real control plane: each ends in a state and a sentence; none spins."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab import kwok
from lab.api import Api
from spottrain.api import names
from spottrain.train import progress
from spottrain.train.clock import SystemClock
from spottrain.train.log import Log
from tests.cluster import play
from tests.cluster.conftest import Operator

Object = dict[str, Any]

WORDS_SECONDS = 6.0
"""Words of the status and counts of the Job are held back for up to 5 s."""
QUIET_SECONDS = 8.0
MOST_PASSES = 6
"""In that time: some passes come of events that are still under way; a hot loop makes dozens."""
MOST_WRITES = 2
"""Of jobs of tests before, whose namespaces are going; a hot loop makes dozens."""


def running_says(job: play.Job, reason: str, words: str) -> Object | None:
    condition = job.condition("Running")
    return condition if condition.get("reason") == reason and words in condition["message"] else None


def rests(job: play.Job, operator: Operator) -> None:
    """Once what is under way has been written, no request writes any more, and hardly a pass is made."""

    def calm() -> bool:
        version = job.get()["metadata"]["resourceVersion"]
        time.sleep(WORDS_SECONDS)
        return bool(job.get()["metadata"]["resourceVersion"] == version)

    job.wait("calm", calm, seconds=40)
    version = job.get()["metadata"]["resourceVersion"]
    passes, requests = operator.metric("spottrain_reconciles_total"), writes(operator)
    time.sleep(QUIET_SECONDS)
    assert job.get()["metadata"]["resourceVersion"] == version
    assert operator.metric("spottrain_reconciles_total") - passes <= MOST_PASSES
    assert writes(operator) - requests <= MOST_WRITES


def writes(operator: Operator) -> float:
    """Requests of the operator that change anything, for any job."""
    return sum(
        operator.metric("spottrain_api_requests_total", method=one) for one in ("POST", "PATCH", "DELETE")
    )


# Which container decides.


def test_a_job_whose_mesh_proxies_run_on_is_complete_and_they_are_ended(job: play.Job, api: Api) -> None:
    with play.machines(api, {"name": "mesh-1", "labels": play.SPOT}):
        document = play.manifest(workers=2)
        containers = document["spec"]["template"]["spec"]["containers"]
        containers.append({"name": "proxy", "image": play.IMAGE})
        job.applied(document)
        job.wait_running(1)
        assert job.pod("tr-0-1")["metadata"]["annotations"][names.ANNOTATION_MAIN] == "trainer"
        for index in (0, 1):
            job.patch_pod(f"tr-{index}-1", {"phase": "Running", "containerStatuses": beside_proxy(0)})
        job.wait_phase("Complete")
        job.wait("the Job complete", lambda: job.batch_job()["status"].get("completedIndexes") == "0-1")
        job.wait("the proxies ended", lambda: not job.pods())


def beside_proxy(code: int) -> list[Object]:
    now = play.timestamp()
    common = {"image": "i", "imageID": "", "restartCount": 0}
    ended = {"exitCode": code, "reason": "Completed", "finishedAt": now, "startedAt": now}
    return [
        {"name": "proxy", "ready": True, "state": {"running": {"startedAt": now}}, **common},
        {"name": "trainer", "ready": False, "state": {"terminated": ended}, **common},
    ]


# Failures.


def test_a_crash_loop_ends_as_failed_with_the_last_exit_and_rests(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "loop-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=1, maxFailures=2))
        for attempt in (1, 2, 3):
            job.wait_running(attempt, seconds=60)
            job.crash(f"tr-0-{attempt}")
        job.wait_phase("Failed")
        assert job.condition("Failed")["message"].startswith(
            "3 failures, 2 allowed; the last one: tr-0-3 exited 1 (Error)"
        )
        job.wait("the Job failed", lambda: job.batch_job()["status"].get("failed") == 3)
        rests(job, operator)


def test_the_wait_after_a_failure_survives_the_operator(job: play.Job, api: Api, operator: Operator) -> None:
    with play.machines(api, {"name": "wait-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=1, maxFailures=9))
        for attempt in (1, 2, 3):
            job.wait_running(attempt, seconds=60)
            job.crash(f"tr-0-{attempt}")
        moment = job.wait("a wait", lambda: job.status().get("nextRetryTime") if third(job) else None)
        operator.kill()
        operator.start()
        assert job.status()["nextRetryTime"] == moment
        assert "tr-0-4" not in job.pods()
        job.wait_running(4, seconds=60)
        assert job.pod("tr-0-4")["metadata"]["creationTimestamp"] >= moment


def third(job: play.Job) -> bool:
    return bool(job.status()["attempt"] == 4)


def test_a_node_on_which_the_job_failed_twice_is_avoided_though_it_is_the_only_free_one(
    job: play.Job, api: Api
) -> None:
    """The worker waits for another node of the kind, and says what it is kept off."""
    common = {"labels": {**play.SPOT, "bad": "yes"}, "gpus": 1}
    with play.machines(api, {"name": "bad-1", **common}, {"name": "bad-2", **common}):
        document = play.manifest(workers=1, maxFailures=9)
        container = document["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        job.applied(document)
        job.wait_running(1)
        node = job.pod("tr-0-1")["spec"]["nodeName"]
        other = {"bad-1": "bad-2", "bad-2": "bad-1"}[node]
        cordon(api, other, on=True)
        job.crash("tr-0-1")
        job.wait_running(2, seconds=60)
        cordon(api, other, on=False)
        assert job.pod("tr-0-2")["spec"]["nodeName"] == node
        job.crash("tr-0-2")
        job.wait_running(3, seconds=60)
        assert job.pod("tr-0-3")["spec"]["nodeName"] == other
        assert job.events("NodeAvoided") == [
            f"2 failures on node {node}: the next workers of this job avoid it"
        ]
        (avoided,) = job.status()["failedNodes"]
        assert (avoided["name"], avoided["failures"]) == (node, 2)


def cordon(api: Api, name: str, *, on: bool) -> None:
    api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": on or None}}).expect(name)


# Workers that can't start.


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("CreateContainerConfigError", 'secret "s3-keys" not found'),
        ("ImagePullBackOff", 'Back-off pulling image "nowhere/at:all"'),
    ],
)
def test_a_worker_that_its_kubelet_cannot_start_is_a_sentence_and_goes_on_when_it_can(
    job: play.Job, api: Api, operator: Operator, reason: str, message: str
) -> None:
    with play.hand_made(api, "stuck-1", play.SPOT):
        job.applied(play.manifest(workers=1))
        job.wait("bound", lambda: job.pods().get("tr-0-1", {}).get("spec", {}).get("nodeName"))
        waiting = {
            "name": "trainer",
            "image": "i",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}},
        }
        job.patch_pod("tr-0-1", {"containerStatuses": [waiting]})
        said = job.wait("the sentence", lambda: running_says(job, "CannotStart", message))
        assert said["message"] == f"0 of 1 workers run; tr-0-1 on node stuck-1: trainer: {reason}: {message}"
        rests(job, operator)
        job.run("tr-0-1")
        job.wait_running(1)


def test_a_host_port_that_is_taken_waits_with_the_schedulers_words(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "port-1", "labels": play.SPOT}):
        document = play.manifest(workers=2)
        container = document["spec"]["template"]["spec"]["containers"][0]
        container["ports"] = [{"containerPort": 29500, "hostPort": 29500}]
        job.applied(document)
        job.wait("the sentence", lambda: running_says(job, "WaitingForWorkers", "free ports"))
        rests(job, operator)
        with play.machines(api, {"name": "port-2", "labels": play.SPOT}):
            job.wait_running(1, seconds=60)


def test_a_volume_in_another_zone_waits_with_the_schedulers_words(
    job: play.Job, api: Api, operator: Operator
) -> None:
    zone = {"topology.kubernetes.io/zone": "zone-a"}
    volume(api, job.namespace, zone="zone-b")
    try:
        with play.machines(api, {"name": "zonal-1", "labels": {**play.SPOT, **zone}}):
            document = play.manifest(workers=1)
            spec = document["spec"]["template"]["spec"]
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            job.applied(document)
            job.wait("the sentence", lambda: running_says(job, "WaitingForWorkers", "affinity"))
            rests(job, operator)
    finally:
        api.call("DELETE", f"/api/v1/persistentvolumes/{job.namespace}")


def volume(api: Api, namespace: str, zone: str) -> None:
    """A claim bound to a volume that can be mounted once, in that zone."""
    term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim = {"namespace": namespace, "name": "data"}
    api.call(
        "POST",
        "/api/v1/persistentvolumes",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": namespace},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "claimRef": claim,
                "hostPath": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        },
    ).expect("the volume")
    api.call(
        "POST",
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {**common, "volumeName": namespace, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ).expect("the claim")


# Deadlines.


def test_a_job_that_is_active_for_too_long_fails_and_is_deleted_when_its_time_to_live_is_over(
    job: play.Job, api: Api
) -> None:
    with play.machines(api, {"name": "deadline-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2, activeDeadline="5s", ttlAfterFinished="4s"))
        job.wait_running(1)
        job.wait_phase("Failed")
        failed = job.condition("Failed")
        assert failed["reason"] == "DeadlineExceeded"
        assert failed["message"].endswith("and spec.activeDeadline is 5s")
        job.wait("the Job failed", lambda: ends(job.batch_job()) == failed_for("DeadlineExceeded"))
        job.wait("it is deleted", lambda: job.patch({}).status == 404)
        job.wait("and its workers with it", lambda: not job.pods())


def ends(batch: Object) -> set[tuple[str, str]]:
    return {(one["type"], one["reason"]) for one in batch["status"].get("conditions", ())}


def failed_for(reason: str) -> set[tuple[str, str]]:
    return {("FailureTarget", reason), ("Failed", reason)}


# Standstill.


@contextlib.contextmanager
def answering(attempt_id: str, step: int) -> Iterator[None]:
    """A worker whose training hangs: it tells the same step for ever."""
    told = progress.Progress(attempt_id, Log(SystemClock()))
    told.step = step
    told.serve(names.PROGRESS_PORT)
    try:
        yield
    finally:
        told.close()


def test_a_worker_that_stays_at_one_step_is_restarted_and_it_counts(job: play.Job, api: Api) -> None:
    with play.hand_made(api, "still-1", play.SPOT):
        job.applied(play.manifest(workers=1, progressTimeout="12s", annotations=play.BY_HAND))
        job.wait("bound", lambda: job.pods().get("tr-0-1", {}).get("spec", {}).get("nodeName"))
        told = {one["name"]: one.get("value") for one in job.pod("tr-0-1")["spec"]["containers"][0]["env"]}
        assert told["SPOTTRAIN_PROGRESS_PORT"] == str(names.PROGRESS_PORT)
        with answering(told["SPOTTRAIN_ATTEMPT_ID"] or "", step=41):
            here = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            job.patch_pod("tr-0-1", {"phase": "Running", **here})
            job.wait_running(1)
            job.wait("the restart", lambda: job.status()["attempt"] == 2, seconds=60)
        last = job.status()["attempts"][-1]
        assert (last["cause"], last["reason"], job.status()["failures"]) == ("Failed", "Stalled", 1)
        assert last["detail"].startswith("tr-0-1 has been at step 41 for ")


# Pools.


def test_after_three_losses_in_a_pool_the_next_workers_of_any_job_prefer_another(
    job: play.Job, api: Api
) -> None:
    """The other pool's one node has room for all; the pool that lost machines has three times as much."""
    pool = {**play.SPOT, "topology.kubernetes.io/zone": "zone-a", "node.kubernetes.io/instance-type": "g5"}
    calm = {**pool, "topology.kubernetes.io/zone": "zone-b"}
    short = [{"name": f"short-{number}", "labels": pool} for number in range(6)]
    with play.machines(api, *short):
        job.applied(play.manifest(workers=1))
        for attempt in (1, 2, 3):
            job.wait_running(attempt)
            kwok.remove(api, job.pod(f"tr-0-{attempt}")["spec"]["nodeName"])
        job.wait_running(4)
        assert job.status()["lastReclaim"]["instanceType"] == "g5"
        assert job.events("PoolRests") == [
            "spot g5 zone-a has just lost machines: other places are preferred for a while"
        ]
        with play.machines(api, {"name": "calm-1", "labels": calm}):
            job.evict("tr-0-4")
            job.wait_running(5)
            assert job.pod("tr-0-5")["spec"]["nodeName"] == "calm-1"
            later = play.Job(api, job.namespace, "later")
            later.applied(play.manifest("later"))
            later.wait_running(1)
            assert {pod["spec"]["nodeName"] for pod in later.pods().values()} == {"calm-1"}


# The life of the object.


def test_a_job_deleted_while_the_operator_is_down_takes_its_workers_along(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "orphan-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        operator.kill()
        try:
            api.call("DELETE", job.path).expect("deleting the job")
            job.wait("no workers", lambda: not job.pods())
        finally:
            operator.start()
        time.sleep(2)
        assert job.pods() == {}
        assert api.get(job.batch_path).status == 404


def test_a_worker_taken_by_force_while_nobody_led_and_others_were_still_to_be_made_is_a_reclaim(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """What lives on of it may write: it must not get a twin under the same attempt ID."""
    few = play.quota(job, pods=1)
    with play.machines(api, {"name": "half-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        made = job.wait("what was made in the status", lambda: job.status().get("createdIndexes"))
        (name,) = job.pods()
        operator.kill()
        try:
            job.vanish(name)
        finally:
            operator.start()
        job.wait("the next attempt", lambda: job.status()["attempt"] == 2)
        last = job.status()["attempts"][-1]
        assert (str(last["index"]), last["reason"]) == (made, "PodVanished")
        few(9)
        job.wait_running(2, seconds=60)
        assert (job.status()["reclaims"], job.status()["failures"]) == (1, 0)
        assert "createdIndexes" not in job.status()


def test_a_job_made_anew_while_the_operator_is_down_starts_anew(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "anew-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        before = job.batch_job()["metadata"]["uid"]
        operator.kill()
        try:
            api.call("DELETE", job.path).expect("deleting the job")
            job.wait("the Job gone", lambda: api.get(job.batch_path).status == 404)
            job.applied(play.manifest(workers=2))
        finally:
            operator.start()
        job.wait_running(1)
        assert job.batch_job()["metadata"]["uid"] != before
        assert job.status()["reclaims"] == 0


def test_somebody_deletes_our_job_and_its_workers_come_back(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, {"name": "job-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        api.call("DELETE", job.batch_path, {"propagationPolicy": "Background"}).expect("deleting")
        job.wait_running(2)
        assert (job.status()["reclaims"], job.status()["failures"]) == (1, 0)
        rests(job, operator)


# Upgrade and going back.


def test_what_a_newer_version_wrote_outlives_this_one(job: play.Job, api: Api, operator: Operator) -> None:
    """The resource must know the field: an older one drops it, which is the next test's concern."""
    with play.machines(api, {"name": "newer-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        operator.kill()
        try:
            newer = {"status": {"templateHash": "h", "progress": {"total": 900}, "jobUID": "x"}}
            api.merge(f"{job.path}/status", newer).expect("a newer version's words")
        finally:
            operator.start()
        job.reclaim("tr-1-1")
        job.wait_running(2)
        status = job.status()
        assert (status["templateHash"], status["jobUID"], status["progress"]["total"]) == ("h", "x", 900)


def test_a_job_of_an_older_version_goes_on_without_a_restart(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """Its status lacks every field that came later, and its workers the annotation."""
    with play.machines(api, {"name": "older-1", "labels": play.SPOT}):
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        before = {pod["metadata"]["uid"] for pod in job.pods().values()}
        operator.kill()
        try:
            older = dict.fromkeys(("activeSince", "storm", "failedNodes"))
            api.merge(f"{job.path}/status", {"status": older}).expect("an older version's words")
            for name in job.pods():
                gone = {"metadata": {"annotations": {names.ANNOTATION_MAIN: None}}}
                api.merge(f"/api/v1/namespaces/{job.namespace}/pods/{name}", gone).expect(name)
        finally:
            operator.start()
        rests(job, operator)
        assert {pod["metadata"]["uid"] for pod in job.pods().values()} == before
        assert job.status()["attempt"] == 1
