"""Objects that somebody made carelessly or with intent: no job comes to harm."""

from typing import Any

import pytest

from lab.api import Api
from tests.cluster import play

Object = dict[str, Any]
HUGE = "9" * 40


def stranger(name: str, labels: Object, owner: Object | None = None) -> Object:
    """A pod that is not of any job's making, whatever its labels say."""
    metadata: Object = {"name": name, "labels": labels}
    if owner:
        metadata["ownerReferences"] = [owner]
    container = {"name": "c", "image": play.IMAGE, "command": ["sleep", "3600"]}
    tolerations = [{"operator": "Exists"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "tolerations": tolerations},
    }


def other_owner() -> Object:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "tr", "uid": "0-0-0", "controller": True}


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({}, None),
        ({"spottrain.dev/index": "x", "spottrain.dev/attempt": "1.5"}, None),
        ({"spottrain.dev/index": "0", "spottrain.dev/attempt": HUGE}, None),
        ({"spottrain.dev/index": HUGE, "spottrain.dev/attempt": "1"}, None),
        ({"spottrain.dev/index": "0", "spottrain.dev/attempt": "1"}, None),
        ({"spottrain.dev/index": "0", "spottrain.dev/attempt": "7"}, other_owner()),
    ],
    ids=["no numbers", "no digits", "huge attempt", "huge index", "a member's, no owner", "another's"],
)
def test_a_pod_under_a_jobs_label_that_is_not_the_jobs_is_left_alone(
    job: play.Job, api: Api, labels: Object, owner: Object | None
) -> None:
    """Nor does it count as a worker: the gang starts, is reclaimed and starts again as without it."""
    spots = [{"name": f"hostile-{index}", "labels": play.SPOT} for index in (1, 2)]
    pods = f"/api/v1/namespaces/{job.namespace}/pods"
    with play.machines(api, *spots):
        api.call("POST", pods, stranger("lodger", {"spottrain.dev/job": "tr", **labels}, owner)).expect(
            "a pod"
        )
        job.applied(play.manifest(workers=2))
        job.wait_running(1)
        job.evict("tr-1-1")
        job.wait_running(2)
        assert {"tr-0-2", "tr-1-2"} <= job.pods().keys()
        assert (job.status()["reclaims"], job.status()["failures"]) == (1, 0)
        if owner is None:  # the garbage collector removes what names an owner that doesn't exist
            assert "deletionTimestamp" not in job.pod("lodger")["metadata"]


def test_a_spec_of_300_kb_in_any_script_runs_and_comes_back_whole(job: play.Job, api: Api) -> None:
    """Three times that is kept of each pod, and no part of it in the status."""
    text = "Ünïcödé 训练 🚂 "
    size = 300_000 // len(text.encode())
    spots = [{"name": f"large-{index}", "labels": play.SPOT} for index in (1, 2)]
    with play.machines(api, *spots):
        document = play.manifest(workers=2)
        (container,) = document["spec"]["template"]["spec"]["containers"]
        container["env"] = [{"name": "TEXT", "value": text * size}]
        job.applied(document)
        job.wait_running(1)
        job.evict("tr-1-1")
        job.wait_running(2)
        for name in ("tr-0-2", "tr-1-2"):
            (worker,) = job.pod(name)["spec"]["containers"]
            assert {"name": "TEXT", "value": text * size} in worker["env"]
        assert len(str(job.status())) < 10_000


def test_names_as_long_as_they_may_be_run(job: play.Job, api: Api) -> None:
    """52 characters for the job; a pod adds its index and attempt to that, and is a host name of 63."""
    name = "a" + "-long" * 10 + "x"
    assert len(name) == 52
    with play.machines(api, {"name": "long-1", "labels": play.SPOT}):
        long = play.Job(api, job.namespace, name)
        long.applied(play.manifest(name, workers=2))
        long.wait_running(1)
        assert long.pods().keys() == {f"{name}-{index}-1" for index in (0, 1)}
