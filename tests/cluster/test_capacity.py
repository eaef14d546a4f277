"""Which capacity workers get, on a real control plane: the floor, the fallback to on-demand, pools."""

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


# Pools.


def in_pool(name: str, zone: str, *, capacity: Object = play.SPOT, gpus: int = 8) -> Object:
    """A machine of a pool that no other test knows of."""
    pool = {"topology.kubernetes.io/zone": f"pools-{zone}", "node.kubernetes.io/instance-type": "pools-g5"}
    return {"name": f"pools-{name}", "labels": {**capacity, **pool}, "gpus": gpus}


HOT = ("pools-a1", "pools-a2", "pools-a3")
LISTED = [{"zone": "pools-a", "instanceType": "pools-g5", "weight": 100}, {"zone": "pools-b"}]


def spot_nodes(job: play.Job) -> list[str]:
    return sorted(nodes_of(job, "spot").values())


def test_workers_on_spot_run_in_listed_pools_alone_and_leave_one_that_takes_machines_back(
    job: play.Job, api: Api
) -> None:
    """Six on spot and one on the floor. Nothing is learnt at first, so it is the weight that counts.

    The heavy pool's three machines hold two each, so that all have workers when they are taken back: three is
    what a pool rests for at once. The other pool then has room for four.
    """
    hot = [in_pool(name.removeprefix("pools-"), "a", gpus=2) for name in HOT]
    bought = in_pool("bought", "c", capacity=play.ON_DEMAND)
    spot = {"onDemandFloor": 1, "spread": "none", "pools": LISTED}
    with play.machines(api, *hot, in_pool("b", "b", gpus=4), in_pool("c", "c"), bought):
        job.applied(with_gpu(mode="Independent", workers=7, parallelism=7, spot=spot))
        job.wait("all run", lambda: len(spot_nodes(job)) == 6)
        assert list(nodes_of(job, "on-demand").values()) == ["pools-bought"]
        assert set(spot_nodes(job)) <= {*HOT, "pools-b"}
        assert spot_nodes(job).count("pools-b") <= 1
        assert set(HOT) <= set(spot_nodes(job))
        for name in HOT:
            kwok.remove(api, name)
        places = ["pools-b"] * 4 + ["pools-bought"] * 2
        job.wait("all moved", lambda: spot_nodes(job) == places, seconds=60)
        with play.machines(api, in_pool("new", "a")):
            before = nodes_of(job, "spot")
            there = [one for one in job.pods().values() if before.get(one["metadata"]["uid"]) == "pools-b"]
            job.evict(there[0]["metadata"]["name"])
            job.wait("its successor", lambda: len(nodes_of(job, "spot").keys() - before.keys()) == 1)
            assert spot_nodes(job) == places


def zones_of(job: play.Job) -> set[str]:
    return {name.split("-")[1] for name in spot_nodes(job)}


def test_a_gang_keeps_together_in_one_zone_of_three(job: play.Job, api: Api) -> None:
    """Attempt after attempt, and without a pod affinity: the operator has seen the pools to choose from.

    A worker takes nearly half of a machine, so that the scheduler by itself would rather use an empty one.
    Each zone has room for two attempts: the scheduler sees a little later than the operator that a worker has
    ended.
    """
    machines = [in_pool(f"{zone}-{number}", zone, gpus=2) for zone in "xyz" for number in range(6)]
    document = with_gpu(workers=6)
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"] = {"cpu": "15", "memory": "120Gi"}
    with play.machines(api, *machines):
        job.applied(document)
        for attempt in (1, 2, 3):
            job.wait_running(attempt, seconds=60)
            assert len(spot_nodes(job)) == 6
            assert len(zones_of(job)) == 1
            assert all("podAffinity" not in pod["spec"]["affinity"] for pod in job.pods().values())
            job.evict(f"tr-3-{attempt}")


def test_a_gang_that_no_zone_has_room_for_keeps_together_in_two_of_three(job: play.Job, api: Api) -> None:
    machines = [in_pool(f"{zone}-{number}", zone, gpus=2) for zone in "xyz" for number in range(2)]
    with play.machines(api, *machines):
        job.applied(with_gpu(workers=6)).wait_running(1, seconds=60)
        assert len(spot_nodes(job)) == 6
        assert len(zones_of(job)) == 2


def test_an_edit_of_the_pools_reaches_those_who_wait_and_nobody_else(job: play.Job, api: Api) -> None:
    """A typing error in a zone is said, and mended without a restart."""
    with play.machines(api, in_pool("b", "b", gpus=1), in_pool("c", "c", gpus=1)):
        job.applied(with_gpu(workers=2, spot={"pools": [{"zone": "pools-b"}, {"zone": "pools-C"}]}))
        job.wait("one waits", lambda: spot_nodes(job) == ["pools-b"])
        (kept,) = nodes_of(job, "spot")
        job.patch({"spec": {"spot": {"pools": [{"zone": "pools-c"}]}}}).expect("other pools")
        job.wait_running(1)
        assert spot_nodes(job) == ["pools-b", "pools-c"]
        assert kept in nodes_of(job, "spot")
        assert (job.status()["reclaims"], job.status()["failures"]) == (0, 0)


def test_pools_that_no_node_has_are_told(job: play.Job, api: Api) -> None:
    with play.machines(api, in_pool("b", "b")):
        job.applied(with_gpu(workers=1, spot={"pools": [{"zone": "pools-B"}]}))
        words = "no spot node was ever seen in spec.spot.pools: compare its names with the nodes' labels"
        job.wait("the words", lambda: words in job.condition("Running").get("message", ""))
