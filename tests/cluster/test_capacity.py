"""Which capacity workers get, on a real control plane: the floor, and the fallback to on-demand."""

import functools
from typing import Any

from lab import kwok
from lab.api import Api
from tests.cluster import play
from tests.cluster.conftest import Operator

Object = dict[str, Any]

ROUNDS, FLOOR = 10, 5
"""50 reclaims of the floor's own nodes; each index has fewer than are free (`independent.FREE_RECLAIMS`)."""


def with_gpu(**spec: Any) -> Object:
    """Each worker takes a GPU, so that nodes are full."""
    document = play.manifest(**spec)
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    return document


def nodes_of(job: play.Job, capacity: str) -> dict[str, str]:
    """UID and node of each worker that runs and was asked to run on that capacity."""
    return {
        pod["metadata"]["uid"]: pod["spec"]["nodeName"]
        for pod in job.pods().values()
        if pod["metadata"]["labels"]["spottrain.dev/capacity"] == capacity
        and pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


# The floor.


def test_the_floor_is_kept_through_fifty_reclaims_of_its_own_nodes_and_nobody_else_is_touched(
    job: play.Job, api: Api
) -> None:
    """Each round takes the machines of all the floor's workers; their successors go to as many others."""
    bought = [{"name": f"kept-{number}", "labels": play.ON_DEMAND, "gpus": 1} for number in range(2 * FLOOR)]
    with play.machines(api, {"name": "kept-spot", "labels": play.SPOT}, *bought):
        spot = {"onDemandFloor": FLOOR}
        job.applied(with_gpu(mode="Independent", workers=8, parallelism=8, spot=spot))
        job.wait("all run", lambda: job.status().get("workers", {}).get("running") == 8)
        others = nodes_of(job, "spot")
        for number in range(ROUNDS):
            before = nodes_of(job, "on-demand")
            assert len(before) == FLOOR
            for name in before.values():
                kwok.remove(api, name)
            job.wait(f"the floor of round {number}", functools.partial(moved, job, before), seconds=60)
            for name in before.values():
                play.node(api, name, labels=play.ON_DEMAND, gpus=1)
        job.wait("every reclaim", lambda: job.status()["reclaims"] == ROUNDS * FLOOR)
        job.wait("the floor held", lambda: job.condition("FloorMet")["reason"] == "FloorHeld")
        assert nodes_of(job, "spot") == others
        assert job.status()["failures"] == 0


def moved(job: play.Job, before: dict[str, str]) -> bool:
    now = nodes_of(job, "on-demand")
    return len(now) == FLOOR and not now.keys() & before.keys()


# The fallback.


def test_a_worker_without_spot_falls_back_over_a_restart_of_the_operator_and_returns_at_a_reclaim(
    job: play.Job, api: Api, operator: Operator
) -> None:
    """A gang of two, and room for one of them on spot."""
    one, other = ({"name": f"back-{name}", "labels": play.SPOT, "gpus": 1} for name in ("a", "b"))
    with play.machines(api, one, {"name": "back-bought", "labels": play.ON_DEMAND}):
        job.applied(with_gpu(workers=2, spot={"fallback": {"after": "6s", "for": "15s"}}))
        job.wait("one waits", lambda: len(nodes_of(job, "only-spot")) == 1)
        (kept,) = nodes_of(job, "only-spot")
        operator.kill()
        operator.start()
        job.wait_running(1, seconds=60)
        assert nodes_of(job, "only-spot") == {kept: "back-a"}
        assert list(nodes_of(job, "spot").values()) == ["back-bought"]
        (told,) = job.events("FellBack")
        assert told.startswith("worker ")
        assert " has found no spot node for 6s: until " in told
        job.wait("the count", lambda: job.status()["workers"].get("fallback") == 1)
        assert job.condition("SpotSufficient")["reason"] == "FellBack"
        assert operator.metric("spottrain_job_fallback_workers", namespace=job.namespace) == 1
        with play.machines(api, other):
            job.wait("its end", lambda: job.condition("SpotSufficient")["reason"] == "FallbackOver", 60)
            assert (job.status()["attempt"], job.status()["phase"]) == (1, "Running")
            job.evict("tr-0-1")
            job.wait_running(2, seconds=60)
            assert sorted(nodes_of(job, "only-spot").values()) == ["back-a", "back-b"]
            job.wait("spot again", lambda: job.condition("SpotSufficient")["status"] == "True")
            assert "fallback" not in job.status()
            assert (job.status()["reclaims"], job.status()["failures"]) == (1, 0)
            assert operator.metric("spottrain_job_fallback_workers", namespace=job.namespace) == 0


def test_an_index_without_spot_falls_back_and_nothing_is_counted(job: play.Job, api: Api) -> None:
    with play.machines(api, {"name": "index-bought", "labels": play.ON_DEMAND}):
        spot = {"fallback": {"after": "3s", "for": "1h"}}
        job.applied(with_gpu(mode="Independent", workers=2, parallelism=2, spot=spot))
        job.wait("both", lambda: list(nodes_of(job, "spot").values()) == ["index-bought"] * 2)
        assert job.events("FellBack")
        status = job.status()
        assert (status["reclaims"], status["failures"]) == (0, 0)
