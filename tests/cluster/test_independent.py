"""Independent indexes on a real control plane: the faults of the other modules again, and their own."""

import concurrent.futures
import time
from typing import Any

import pytest

from lab import kwok
from lab.api import Api
from tests.cluster import play
from tests.cluster.conftest import NODE_LOSS, Operator
from tests.cluster.test_cases import AKS, AWS, CLASSES, GKE, environment
from tests.cluster.test_gang_cases import Disrupted, look, mark, node_of, wait_for_pod

SAVES_ON_SIGTERM = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(3600)"


def shards(label: str = "", **changes: Any) -> play.Object:
    """Four independent indexes, whose pods go to nodes with that label only."""
    document = play.manifest(**{"mode": "Independent", **changes})
    if "maxFailures" not in changes:
        del document["spec"]["maxFailures"]
    if label:
        document["spec"]["template"]["spec"]["nodeSelector"] = {"case": label}
    return document


def machine(label: str, number: int = 1, **more: Any) -> play.Object:
    return {"name": f"i-{label}-{number}", "labels": {"case": label, **more.pop("labels", {})}, **more}


def live(job: play.Job) -> list[str]:
    """The pods that run and are not told to stop."""
    return sorted(
        name
        for name, pod in job.pods().items()
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    )


def wait_live(job: play.Job, *names: str, seconds: float = 30) -> None:
    job.wait(f"{names} running", lambda: live(job) == sorted(names), seconds)


def wait_among(job: play.Job, *names: str, seconds: float = 30) -> None:
    """These run, whatever else does."""
    job.wait(f"{names} running", lambda: set(names) <= set(live(job)), seconds)


def counts(job: play.Job) -> tuple[int, int, str]:
    """Reclaims, failures, finished indexes."""
    status = job.status()
    return status["reclaims"], status["failures"], status.get("completedIndexes", "")


def wait_counts(job: play.Job, reclaims: int, failures: int, completed: str = "") -> None:
    wanted = (reclaims, failures, completed)
    job.wait(f"reclaims, failures, completed {wanted}", lambda: counts(job) == wanted)


def uid(job: play.Job, name: str) -> str:
    return str(job.pod(name)["metadata"]["uid"])


# The main path.


def test_indexes_run_a_few_at_once_and_the_job_is_complete_when_all_have_finished(
    job: play.Job, api: Api
) -> None:
    """Our Job says what an Indexed Job says, finished pods make room, and no Service is made."""
    with play.machines(api, machine("main")):
        job.applied(shards("main", workers=5, parallelism=2))
        wait_live(job, "tr-0-1", "tr-1-1")
        batch = job.batch_job()
        assert (batch["spec"]["completions"], batch["spec"]["parallelism"]) == (5, 2)
        assert api.get(f"/api/v1/namespaces/{job.namespace}/services/tr").status == 404
        job.end("tr-1-1", 0)
        wait_live(job, "tr-0-1", "tr-2-1")
        job.wait("the mirror", lambda: job.batch_job()["status"].get("completedIndexes") == "1")
        for name in ("tr-0-1", "tr-2-1", "tr-3-1", "tr-4-1"):
            wait_among(job, name)
            job.end(name, 0)
        job.wait_phase("Complete")
        job.wait("the Job complete", lambda: job.batch_job()["status"].get("completionTime"))
        status = job.batch_job()["status"]
        assert (status["completedIndexes"], status["succeeded"]) == ("0-4", 5)
        assert job.status()["finishedText"] == "5/5"
        assert job.condition("Complete")["message"] == "all 5 indexes finished"


def test_an_index_that_fails_for_good_is_named_and_the_others_run_to_their_end(
    job: play.Job, api: Api
) -> None:
    with play.machines(api, machine("fail")):
        job.applied(shards("fail", workers=3, maxFailuresPerIndex=1))
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1")
        job.crash("tr-1-1")
        wait_among(job, "tr-1-2")
        job.crash("tr-1-2")
        job.wait("given up", lambda: job.status().get("failedIndexes") == "1")
        job.end("tr-0-1", 0)
        job.end("tr-2-1", 0)
        job.wait_phase("Failed")
        failed = job.condition("Failed")
        assert failed["reason"] == "FailedIndexes"
        assert failed["message"].startswith("1 of 3 indexes failed: 1; the last one: tr-1-2 exited 1 (Error)")
        job.wait("the Job failed", lambda: job.batch_job()["status"].get("failedIndexes") == "1")
        batch = job.batch_job()["status"]
        assert (batch["completedIndexes"], batch["succeeded"], batch["failed"]) == ("0,2", 2, 2)
        reasons = {one["type"]: one["reason"] for one in batch["conditions"]}
        assert reasons == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}


def test_finished_indexes_never_run_again_when_pods_and_job_are_deleted(job: play.Job, api: Api) -> None:
    """The Job is deleted twice, every pod by hand once, and the operator is killed in between."""
    with play.machines(api, machine("again")):
        job.applied(shards("again", workers=4))
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1")
        job.end("tr-1-1", 0)
        wait_counts(job, 0, 0, "1")
        for name in job.pods():
            job.vanish(name)
        wait_live(job, "tr-0-2", "tr-2-2", "tr-3-2")
        jobs = f"/apis/batch/v1/namespaces/{job.namespace}/jobs/tr"
        first = job.batch_job()["metadata"]["uid"]
        api.call("DELETE", f"{jobs}?propagationPolicy=Background").expect("deleting the Job")
        job.wait("another Job", lambda: found_uid(api, jobs) not in {"", first})
        wait_live(job, "tr-0-3", "tr-2-3", "tr-3-3")
        job.wait("the mirror", lambda: job.batch_job()["status"].get("completedIndexes") == "1")
        assert job.status()["completedIndexes"] == "1"


def found_uid(api: Api, path: str) -> str:
    body = api.get(path).body
    return str(body.get("metadata", {}).get("uid", ""))


def test_an_operator_that_was_killed_finds_what_had_finished_meanwhile(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """Once the status says that they run: until then the next operator can't know what was made."""
    with play.machines(api, machine("killed")):
        job.applied(shards("killed", workers=4, parallelism=2))
        job.wait_phase("Running")
        wait_live(job, "tr-0-1", "tr-1-1")
        operator.kill()
        try:
            job.end("tr-0-1", 0)
            job.vanish("tr-1-1")
        finally:
            operator.start()
        wait_live(job, "tr-1-2", "tr-2-1")
        assert counts(job) == (1, 0, "0")


def test_another_parallelism_is_taken_up_by_the_job_as_it_runs(job: play.Job, api: Api) -> None:
    with play.machines(api, machine("scale")):
        job.applied(shards("scale", workers=6, parallelism=2))
        wait_live(job, "tr-0-1", "tr-1-1")
        before = job.batch_job()["metadata"]["uid"]
        job.patch({"spec": {"parallelism": 4}}).expect("the edit")
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1")
        assert job.batch_job()["spec"]["parallelism"] == 4
        assert job.batch_job()["metadata"]["uid"] == before


def test_a_quota_lets_as_many_run_as_have_room_and_says_so(job: play.Job, api: Api) -> None:
    play.quota(job, pods=2)
    with play.machines(api, machine("quota")):
        job.applied(shards("quota", workers=6))
        job.wait("two running", lambda: len(live(job)) == 2)
        job.wait("the words", lambda: "exceeded quota" in job.condition("Running").get("message", ""))
        job.wait("both running", lambda: job.condition("Running")["status"] == "True")
        first, second = live(job)
        job.end(first, 0)
        job.wait("the next one", lambda: len(set(live(job)) - {first, second}) == 1, 90)
        assert job.status()["reclaims"] == job.status()["failures"] == 0


@pytest.mark.slow
def test_three_hundred_indexes_finish_and_leave_few_pods_behind(job: play.Job, api: Api) -> None:
    """Each once: its pod ends with 0 as soon as it runs."""
    nodes = [machine("many", number) for number in range(1, 5)]
    with play.machines(api, *nodes), concurrent.futures.ThreadPoolExecutor(8) as hands:
        job.applied(shards("many", workers=300, parallelism=60))
        ended: set[str] = set()
        deadline = time.monotonic() + 240
        while job.status().get("phase") != "Complete":
            assert time.monotonic() < deadline, job.status()
            ready = [name for name in live(job) if name not in ended]
            list(hands.map(lambda name: job.end(name, 0), ready))
            ended.update(ready)
        assert len(ended) == 300
        assert {name.rsplit("-", 1)[1] for name in ended} == {"1"}, "an index ran twice"
        assert job.status()["completedIndexes"] == "0-299"
        job.wait("few pods", lambda: len(job.pods()) <= 50)


# The cases.


def test_a1_reclaims_do_not_slow_down_later_replacements_independent(job: play.Job, api: Api) -> None:
    """Indexes 0, 1 and 2 of ten, six times."""
    with play.machines(api, machine("a1")):
        job.applied(shards("a1", workers=10, maxFailuresPerIndex=0))
        job.wait("ten", lambda: len(live(job)) == 10)
        seconds = []
        for attempt in range(1, 7):
            begun = time.monotonic()
            for index in range(3):
                job.reclaim(f"tr-{index}-{attempt}")
            wait_among(job, *(f"tr-{index}-{attempt + 1}" for index in range(3)))
            seconds.append(time.monotonic() - begun)
        assert counts(job) == (18, 0, "")
        assert seconds[-1] < seconds[0] + 5


@pytest.mark.slow
def test_a1_crashes_in_a_row_are_spaced_out_independent(job: play.Job, api: Api) -> None:
    with play.machines(api, machine("a1c")):
        job.applied(shards("a1c", workers=1, maxFailures=20))
        gaps = []
        for attempt in range(1, 5):
            wait_live(job, f"tr-0-{attempt}", seconds=120)
            begun = time.monotonic()
            job.crash(f"tr-0-{attempt}")
            wait_for_pod(job, f"tr-0-{attempt + 1}", seconds=120)
            gaps.append(time.monotonic() - begun)
        assert gaps[-1] >= 30


def test_a2_reclaims_leave_the_failure_budget_alone_independent(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """Ten reclaims, then two crashes: one is forgiven, the second ends the job."""
    with play.machines(api, machine("a2")):
        job.applied(shards("a2", workers=1, maxFailures=1))
        for attempt in range(1, 11):
            wait_live(job, f"tr-0-{attempt}")
            job.reclaim(f"tr-0-{attempt}")
        wait_live(job, "tr-0-11")
        job.wait_phase("Running")
        assert counts(job) == (10, 0, "")
        assert operator.metric("spottrain_reclaims_total", namespace=job.namespace, cause="Evicted") == 10
        job.crash("tr-0-11")
        wait_live(job, "tr-0-12")
        job.crash("tr-0-12")
        job.wait_phase("Failed")
        assert counts(job) == (10, 2, "")
        assert operator.metric("spottrain_failures_total", namespace=job.namespace) == 2
        failed = job.condition("Failed")
        assert failed["reason"] == "TooManyFailures"
        assert failed["message"].startswith("2 failures, 1 allowed; the last one: tr-0-12 exited 1 (Error)")
        job.wait("the Job failed", lambda: job.batch_job()["status"].get("failed") == 2)
        assert live(job) == []


RECLAIM, FAILURE, DONE = (1, 0, ""), (0, 1, ""), (0, 0, "0")


@pytest.mark.parametrize(
    ("code", "reason", "disrupted", "outcome"),
    [
        (137, "Error", True, RECLAIM),
        (143, "Error", True, RECLAIM),
        (1, "Error", True, RECLAIM),
        (137, "ContainerStatusUnknown", True, RECLAIM),
        (0, "Completed", True, RECLAIM),
        (137, "OOMKilled", True, FAILURE),
        (137, "Error", False, FAILURE),
        (143, "Error", False, FAILURE),
        (1, "Error", False, FAILURE),
        (137, "OOMKilled", False, FAILURE),
        (0, "Completed", False, DONE),
        (137, "ContainerStatusUnknown", False, RECLAIM),
    ],
    ids=str,
)
def test_a3_how_a_pod_ended_independent(  # noqa: PLR0917 - a row of the table
    job: play.Job, api: Api, code: int, reason: str, disrupted: bool, outcome: tuple[int, int, str]
) -> None:
    """Exactly one of the three moves; the same table is in docs/losses.md."""
    with play.machines(api, machine("a3")):
        job.applied(shards("a3", workers=1))
        wait_live(job, "tr-0-1")
        job.end("tr-0-1", code, reason, disruption="EvictionByEvictionAPI" if disrupted else "")
        wait_counts(job, *outcome)
        if outcome == DONE:
            job.wait_phase("Complete")
        else:
            job.wait("the next attempt", lambda: "tr-0-2" in job.pods())
            assert counts(job) == outcome


@pytest.mark.parametrize("how", ["deleted", "evicted", "both at once"])
def test_a5_exit_0_after_sigterm_is_not_completion_independent(job: play.Job, api: Api, how: str) -> None:
    with play.machines(api, machine("a5")):
        document = shards("a5", workers=2)
        template = document["spec"]["template"]
        template["metadata"] = {"annotations": dict(play.BY_HAND)}
        template["spec"]["containers"][0]["command"] = ["python3", "-c", SAVES_ON_SIGTERM]
        job.applied(document)
        wait_live(job, "tr-0-1", "tr-1-1")
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
        wait_among(job, *(f"{name[:-1]}2" for name in stopped))
        assert counts(job) == (len(stopped), 0, "")
        after = environment(job.pod("tr-1-2"))
        assert after["SPOTTRAIN_CHECKPOINT_URI"] == before["SPOTTRAIN_CHECKPOINT_URI"] == "s3://ck/tr/1"
        assert (before["SPOTTRAIN_ATTEMPT"], after["SPOTTRAIN_ATTEMPT"]) == ("1", "2")
        assert before["SPOTTRAIN_ATTEMPT_ID"] != after["SPOTTRAIN_ATTEMPT_ID"]
        job.end("tr-1-2", 0)
        wait_counts(job, len(stopped), 0, "1")


@pytest.mark.parametrize("then", ["nothing", "the Node object goes", "it comes back"])
def test_a7_a_vanished_node_is_a_reclaim_independent(job: play.Job, api: Api, then: str) -> None:
    name = f"i-a7-{then.replace(' ', '-').lower()}"
    with play.hand_made(api, name, {"case": "ia7"}) as node:
        job.applied(shards("ia7", workers=1))
        job.wait("bound", lambda: node_of(job, "tr-0-1"))
        job.run("tr-0-1")
        job.wait_phase("Running")
        node.fall_silent()
        node.say_ready("Unknown", "NodeStatusUnknown")
        job.delete_pod("tr-0-1", grace=30)
        job.wait("the replacement", lambda: "tr-0-2" in job.pods(), seconds=30 + NODE_LOSS)
        if then == "the Node object goes":
            kwok.remove(api, name)
        if then == "it comes back":
            node.say_ready("True")
        with play.machines(api, machine("a7", labels={"case": "ia7"})):
            job.wait("it runs", lambda: "tr-0-2" in live(job), seconds=30 + NODE_LOSS)
            old = job.pods().get("tr-0-1")
            assert old is None or "deletionTimestamp" in old["metadata"]
            assert counts(job) == (1, 0, "")


def test_a7_a_silent_lease_is_seen_before_kubernetes_calls_the_node_not_ready_independent(
    job: play.Job, api: Api
) -> None:
    with play.hand_made(api, "i-lease", {"case": "ilease"}) as node:
        job.applied(shards("ilease", workers=1))
        job.wait("bound", lambda: node_of(job, "tr-0-1"))
        job.run("tr-0-1")
        job.wait_phase("Running")
        node.fall_silent()
        job.wait("the successor", lambda: "tr-0-2" in job.pods(), seconds=20)
        reclaim = job.status()["lastReclaim"]
        assert (reclaim["cause"], reclaim["node"], reclaim["index"]) == ("NodeLost", "i-lease", 0)
        assert any("i-lease" in text for text in job.wait("an Event", lambda: job.events("NodeLost")))


def test_a8_a_dead_node_is_tolerated_for_seconds_only_independent(job: play.Job) -> None:
    job.applied(shards(workers=1))
    job.wait("a pod", lambda: "tr-0-1" in job.pods())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        found = [one for one in job.pod("tr-0-1")["spec"]["tolerations"] if one.get("key") == key]
        assert [(one["effect"], one["tolerationSeconds"]) for one in found] == [("NoExecute", NODE_LOSS)]


@pytest.mark.parametrize("condition", [[], [Disrupted]], ids=["without", "with DisruptionTarget"])
def test_a9_a_pod_ended_by_the_kubelets_shutdown_is_replaced_independent(
    job: play.Job, api: Api, condition: list[play.Object]
) -> None:
    with play.machines(api, machine("a9")):
        job.applied(shards("a9", workers=2, maxFailuresPerIndex=0))
        wait_live(job, "tr-0-1", "tr-1-1")
        other = uid(job, "tr-0-1")
        words = {"phase": "Failed", "reason": "Terminated", "message": "node is shutting down"}
        before = job.pod("tr-1-1")["status"].get("conditions", [])
        job.patch_pod("tr-1-1", {**words, "conditions": [*before, *condition]})
        wait_live(job, "tr-0-1", "tr-1-2")
        assert counts(job) == (1, 0, "")
        assert job.status()["lastReclaim"]["cause"] == "NodeShutdown"
        assert uid(job, "tr-0-1") == other


@pytest.mark.parametrize("how", ["reclaimed", "deleted"])
def test_a11_one_worker_lost_moves_that_index_alone_independent(job: play.Job, api: Api, how: str) -> None:
    with play.machines(api, machine("a11", 1), machine("a11", 2)):
        job.applied(shards("a11"))
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1")
        others = {name: uid(job, name) for name in ("tr-0-1", "tr-1-1", "tr-3-1")}
        if how == "reclaimed":
            job.reclaim("tr-2-1")
        else:
            job.delete_pod("tr-2-1")
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-2", "tr-3-1")
        assert {name: uid(job, name) for name in others} == others
        assert job.pod("tr-2-2")["metadata"]["labels"]["spottrain.dev/attempt"] == "2"
        assert counts(job) == (1, 0, "")


@pytest.mark.parametrize("state", ["bound", "unbound"])
def test_a15_a_loss_before_anything_ran_is_no_failure_independent(
    job: play.Job, api: Api, state: str
) -> None:
    with play.hand_made(api, f"i-a15-{state}", {"case": "ia15"}):
        document = shards("nowhere" if state == "unbound" else "ia15", workers=1, maxFailures=0)
        document["spec"]["template"]["spec"]["initContainers"] = [{"name": "fetch", "image": play.IMAGE}]
        job.applied(document)
        job.wait("the pod", lambda: "tr-0-1" in job.pods())
        if state == "bound":
            job.wait("bound", lambda: node_of(job, "tr-0-1"))
            disrupted = {**Disrupted, "reason": "EvictionByEvictionAPI"}
            before = job.pod("tr-0-1")["status"].get("conditions", [])
            job.patch_pod("tr-0-1", {"conditions": [*before, disrupted]})
        job.delete_pod("tr-0-1", grace=0)
        job.wait("the successor", lambda: "tr-0-2" in job.pods())
        assert counts(job) == (1 if state == "bound" else 0, 0, "")


def test_a16_the_replacement_stays_off_the_dying_node_independent(job: play.Job, api: Api) -> None:
    """It is made while the old one still has its grace, and told to restore when that has ended."""
    with play.machines(api, machine("a16", 1), machine("a16", 2)):
        document = shards("a16", workers=1)
        document["spec"]["template"]["metadata"] = {"annotations": dict(play.BY_HAND)}
        job.applied(document)
        wait_live(job, "tr-0-1")
        first = node_of(job, "tr-0-1")
        mark(api, first, '{"cause": "aws-spot"}')
        wait_live(job, "tr-0-2")
        assert node_of(job, "tr-0-2") != first
        assert "deletionTimestamp" in job.pod("tr-0-1")["metadata"], "its predecessor was told to stop"
        assert "spottrain.dev/go" not in job.pod("tr-0-2")["metadata"]["annotations"]
        job.vanish("tr-0-1")
        job.wait("go", lambda: "spottrain.dev/go" in job.pod("tr-0-2")["metadata"]["annotations"])
        assert job.status()["lastReclaim"]["cause"] == "Notice"
        second = node_of(job, "tr-0-2")
        mark(api, first, None)
        mark(api, second, '{"cause": "aws-spot"}')
        wait_live(job, "tr-0-3")
        assert node_of(job, "tr-0-3") == first


def test_a18_every_promised_field_arrives_independent(job: play.Job) -> None:
    """Above all those of this mode: no gang's rendezvous, a world and a place for checkpoints of its own."""
    document = shards(workers=3, parallelism=2, checkpoint={"uri": "s3://ck/tr/"})
    document["spec"]["template"]["spec"]["subdomain"] = "mine"
    job.applied(document)
    job.wait("pods", lambda: {"tr-0-1", "tr-1-1"} <= job.pods().keys())
    pod = job.pod("tr-1-1")
    given = environment(pod)
    assert given["SPOTTRAIN_CHECKPOINT_URI"] == "s3://ck/tr/1"
    assert (given["SPOTTRAIN_MODE"], given["SPOTTRAIN_INDEX"], given["SPOTTRAIN_WORKERS"]) == (
        *("Independent", "1"),
        "3",
    )
    assert {name: one for name, one in given.items() if name.startswith("PET_")} == {"PET_STANDALONE": "1"}
    assert given["JOB_COMPLETION_INDEX"] == "1"
    assert pod["spec"]["subdomain"] == "mine"
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert spread["labelSelector"]["matchLabels"] == {"spottrain.dev/job": "tr"}
    batch = job.batch_job()["spec"]
    assert (batch["completionMode"], batch["backoffLimitPerIndex"]) == ("Indexed", 2**31 - 1)


def test_a19_edits_of_a_running_job_independent(job: play.Job, api: Api, operator: Operator) -> None:
    """Each is refused, or takes effect; what has finished stays finished."""
    with play.machines(api, machine("a19")):
        job.applied(shards("a19", workers=4))
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1")
        job.end("tr-0-1", 0)
        wait_counts(job, 0, 0, "0")
        template = job.get()["spec"]["template"]
        template["spec"]["containers"][0]["env"] = [{"name": "EDIT", "value": "1"}]
        job.patch({"spec": {"template": template}}).expect("the template")
        wait_live(job, "tr-1-2", "tr-2-2", "tr-3-2", seconds=60)
        assert environment(job.pod("tr-1-2"))["EDIT"] == "1"
        job.patch({"spec": {"workers": 6}}).expect("more workers")
        wait_live(job, "tr-1-3", "tr-2-3", "tr-3-3", "tr-4-1", "tr-5-1", seconds=60)
        job.patch({"spec": {"workers": 2}}).expect("fewer workers")
        wait_live(job, "tr-1-4", seconds=60)
        job.patch({"spec": {"maxFailuresPerIndex": 9, "maxFailedIndexes": 1}}).expect("the budgets")
        generation = job.get()["metadata"]["generation"]
        job.wait("seen", lambda: job.status()["observedGeneration"] == generation)
        assert live(job) == ["tr-1-4"]
        refused = job.patch({"spec": {"mode": "Gang"}})
        assert refused.status == 422
        assert "spec.mode can't be changed" in refused.body["message"]
        assert counts(job) == (0, 0, "0")
        job.end("tr-1-4", 0)
        job.wait_phase("Complete")
        assert "is refused" not in operator.log.read_text()


def test_a25_nothing_has_a_finalizer_and_the_namespace_goes_independent(job: play.Job, api: Api) -> None:
    with play.machines(api, machine("a25")):
        job.applied(shards("a25", workers=2))
        wait_live(job, "tr-0-1", "tr-1-1")
        things = [job.get(), job.batch_job(), *job.pods().values()]
        assert [one["metadata"].get("finalizers") for one in things] == [None] * 4
        api.call("DELETE", f"/api/v1/namespaces/{job.namespace}").expect("deleting the namespace")
        job.wait("it gone", lambda: api.get(f"/api/v1/namespaces/{job.namespace}").status == 404, 58)


def test_a27_the_status_survives_a_full_life_independent(job: play.Job, api: Api) -> None:
    with play.machines(api, machine("a27")):
        job.applied(shards("a27", workers=2, maxFailuresPerIndex=1))
        wait_live(job, "tr-0-1", "tr-1-1")
        promised = {
            *("phase", "conditions", "observedGeneration", "attempt", "attemptID", "createdAttempt"),
            *("reclaims", "failures", "workers", "workersText", "attempts", "startTime"),
            *("indexes", "finishedText"),
        }
        look(job, promised)
        job.reclaim("tr-1-1")
        wait_live(job, "tr-0-1", "tr-1-2")
        look(job, promised | {"lastReclaim"})
        job.crash("tr-1-2")
        wait_live(job, "tr-0-1", "tr-1-3")
        job.wait("made", lambda: job.status()["indexes"]["made"] == "0,1")
        indexes = job.status()["indexes"]
        assert indexes == {"made": "0,1", "restarts": "0,2", "failures": "0,1", "retries": []}
        job.end("tr-0-1", 0)
        job.crash("tr-1-3")
        job.wait_phase("Failed")
        look(job, promised | {"lastReclaim", "completionTime", "completedIndexes", "failedIndexes"})


def test_a29_unknown_nodes_never_fill_the_floor_independent(
    job: play.Job, api: Api, operator: Operator
) -> None:
    with play.machines(api, *CLASSES):
        document = shards(workers=4, spot={"onDemandFloor": 1})
        document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        job.applied(document)
        job.wait("the floor unmet", lambda: job.condition("FloorMet").get("reason") == "FloorUnmet")
        wait_live(job, "tr-1-1", "tr-2-1", "tr-3-1")
        assert job.condition("FloorMet")["message"] == "workers on on-demand nodes: wanted 1, found 0"
        assert operator.metric("spottrain_job_floor_shortfall", namespace=job.namespace) == 1
        assert job.events("FloorUnmet") == ["workers on on-demand nodes: wanted 1, found 0"]
        on_demand = {"name": "i-a29-on-demand", "labels": play.ON_DEMAND}
        with play.machines(api, on_demand):
            wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1", "tr-3-1")
            assert node_of(job, "tr-0-1") == "i-a29-on-demand"
            job.wait("the floor", lambda: job.condition("FloorMet")["reason"] == "FloorHeld")
            job.wait(
                "no shortfall",
                lambda: operator.metric("spottrain_job_floor_shortfall", namespace=job.namespace) == 0,
            )


def test_a29_the_floor_holds_as_indexes_come_and_go_independent(job: play.Job, api: Api) -> None:
    """The on-demand node has room for one."""
    nodes = [machine("floor", 1, labels=play.SPOT), machine("floor", 2, labels=play.ON_DEMAND, gpus=1)]
    with play.machines(api, *nodes):
        document = shards("floor", workers=6, parallelism=3, spot={"onDemandFloor": 1})
        document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        job.applied(document)
        wait_live(job, "tr-0-1", "tr-1-1", "tr-2-1")
        assert node_of(job, "tr-0-1") == "i-floor-2"
        job.end("tr-0-1", 0)
        wait_live(job, "tr-1-1", "tr-2-1", "tr-3-1")
        assert job.pod("tr-3-1")["metadata"]["labels"]["spottrain.dev/capacity"] == "on-demand"
        assert node_of(job, "tr-3-1") == "i-floor-2"
        job.wait("the floor", lambda: job.condition("FloorMet")["status"] == "True")


@pytest.mark.parametrize(
    ("nodes", "grace"), [([AWS], 114), ([GKE], 13), ([AKS], 28)], ids=["AWS", "GKE", "AKS"]
)
def test_a30_the_grace_fits_the_notice_independent(
    job: play.Job, api: Api, nodes: list[play.Object], grace: int
) -> None:
    with play.machines(api, *nodes):
        document = shards(workers=1)
        document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
        job.applied(document)
        wait_live(job, "tr-0-1")
        pod = job.pod("tr-0-1")
        assert pod["spec"]["terminationGracePeriodSeconds"] == grace
        assert pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
        assert pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert job.wait("the warning", lambda: job.events("GraceCapped"))
