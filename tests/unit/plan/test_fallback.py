"""Fallback: who finds no spot node may go to on-demand for a while, and comes back at a restart."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, spec, status
from spottrain.plan import actions, capacity, decide
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

AFTER, LENGTH = 900.0, 7200.0
SPOT = spec.Spot(fallback=spec.Fallback(AFTER, LENGTH))
POOL = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5.xlarge")


def gang(**changes: object) -> virtual.Cluster:
    return virtual.Cluster(virtual.wishes(**{"spot": SPOT, **changes}))


def without_spot(cluster: virtual.Cluster) -> virtual.Cluster:
    """No spot node takes a worker any more."""
    for name in ("n1", "n2", "n3", "n4", "n5"):
        cluster.change_node(name, unschedulable=True)
    return cluster


def with_spot(cluster: virtual.Cluster) -> virtual.Cluster:
    for name in ("n1", "n2", "n3", "n4", "n5"):
        cluster.change_node(name, unschedulable=False)
    return cluster


def waiting(cluster: virtual.Cluster) -> virtual.Cluster:
    """Up to workers that find no node."""
    without_spot(cluster).settle()
    cluster.run_all()
    cluster.settle()
    return cluster


def fallen_back(cluster: virtual.Cluster) -> virtual.Cluster:
    """Up to workers that have gone to on-demand."""
    waiting(cluster).pass_time(AFTER)
    return cluster.running()


def wait(cluster: virtual.Cluster, seconds: float) -> None:
    cluster.pass_time(seconds)
    cluster.settle()


def said(cluster: virtual.Cluster, *reasons: str) -> list[tuple[str, str]]:
    wanted = reasons or (conditions.FELL_BACK, conditions.FALLBACK_OVER, conditions.SPOT_FOUND)
    return [(one.reason, one.message) for one in cluster.events if one.reason in wanted]


def asks(cluster: virtual.Cluster) -> list[str]:
    pods = sorted(cluster.snapshot().current.values(), key=lambda pod: pod.index)
    return [str(pod.ask) for pod in pods]


def places(cluster: virtual.Cluster) -> list[str]:
    pods = sorted(cluster.snapshot().current.values(), key=lambda pod: pod.index)
    return [pod.node for pod in pods]


def sufficient(cluster: virtual.Cluster) -> tuple[bool | None, str, str] | None:
    found = conditions.find(cluster.status.conditions, conditions.SPOT_SUFFICIENT)
    return None if found is None else (found.status, found.reason, found.message)


# Going.


def test_without_a_fallback_workers_go_anywhere_and_rather_to_spot() -> None:
    cluster = waiting(gang(spot=spec.Spot()))
    assert (asks(cluster), places(cluster)) == (["spot"] * 3, ["od"] * 3)
    assert (cluster.status.fallback, sufficient(cluster)) == (None, None)


def test_with_one_they_wait_for_spot_alone() -> None:
    cluster = waiting(gang())
    assert (asks(cluster), places(cluster)) == (["only-spot"] * 3, [""] * 3)
    assert cluster.wake is not None
    assert cluster.wake <= AFTER
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.message == (
        "0 of 3 workers run; no node fits; from 2026-01-01T00:15:00Z on they may go to on-demand nodes too"
    )


def test_who_found_no_spot_node_for_that_long_goes_anywhere_in_the_same_attempt() -> None:
    cluster = waiting(gang())
    wait(cluster, AFTER - 1)
    assert asks(cluster) == ["only-spot"] * 3
    wait(cluster, 1)
    assert asks(cluster) == ["spot"] * 3
    cluster.run_all()
    cluster.settle()
    assert places(cluster) == ["od"] * 3
    assert (cluster.status.attempt, cluster.status.phase) == (1, status.Phase.RUNNING)
    assert cluster.status.workers.fallback == 3
    allowed = "until 2026-01-01T02:15:00Z workers may go to on-demand nodes"
    assert said(cluster) == [("FellBack", f"3 workers have found no spot node for 15m: {allowed}")]
    assert sufficient(cluster) == (False, "FellBack", f"{allowed}; 3 are there")


def test_of_a_gang_only_those_go_that_wait_and_the_others_keep_their_pods() -> None:
    cluster = gang()
    cluster.settle()
    kept = cluster.pods["tr-1-1"].uid
    without_spot(cluster).bind("tr-1-1", "n1")
    cluster.run("tr-1-1")
    cluster.run_all()
    wait(cluster, AFTER)
    cluster.run_all()
    cluster.settle()
    assert places(cluster) == ["od", "n1", "od"]
    assert (cluster.pods["tr-1-1"].uid, cluster.status.attempt) == (kept, 1)
    assert (cluster.status.reclaims, cluster.status.phase) == (0, status.Phase.RUNNING)


def test_the_time_goes_on_over_a_restart_of_the_operator() -> None:
    cluster = waiting(gang())
    wait(cluster, AFTER / 2)
    cluster.departed.clear()
    wait(cluster, AFTER / 2)
    assert asks(cluster) == ["spot"] * 3


def test_a_pod_makes_way_only_as_long_as_it_is_as_it_was_seen_without_a_node() -> None:
    cluster = waiting(gang())
    cluster.pass_time(AFTER)
    cluster.step()
    cluster.pods = {name: dataclasses.replace(pod, version=f"v-{name}") for name, pod in cluster.pods.items()}
    plan = cluster.step()
    deleted = {one.name: one.version for one in plan.actions if isinstance(one, actions.DeletePod)}
    assert deleted == {name: f"v-{name}" for name in ("tr-0-1", "tr-1-1", "tr-2-1")}


def test_a_pod_that_makes_way_is_told_nothing_any_more() -> None:
    """A write to it would be another state than the one that may be deleted."""
    cluster = waiting(gang())
    cluster.pods = {name: dataclasses.replace(pod, go="") for name, pod in cluster.pods.items()}
    cluster.pass_time(AFTER)
    cluster.step()
    plan = cluster.step()
    deleted = [one.name for one in plan.actions if isinstance(one, actions.DeletePod)]
    assert deleted
    assert not {one.name for one in plan.actions if isinstance(one, actions.SayGo)} & set(deleted)


def test_it_goes_before_a_gang_gives_its_nodes_back_that_waits_as_long() -> None:
    cluster = gang(placement_timeout=AFTER)
    cluster.settle()
    without_spot(cluster).bind("tr-1-1", "n1")
    cluster.run("tr-1-1")
    cluster.run_all()
    cluster.settle()
    cluster.pass_time(AFTER)
    cluster.running()
    assert (cluster.status.attempt, places(cluster)) == (1, ["od", "n1", "od"])


def test_a_worker_lost_while_another_makes_way_restarts_the_gang_all_the_same() -> None:
    cluster = gang()
    cluster.settle()
    without_spot(cluster).bind("tr-1-1", "n1")
    cluster.run("tr-1-1")
    cluster.run_all()
    cluster.settle()
    cluster.pass_time(AFTER)
    cluster.step()
    cluster.step()
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert places(cluster) == ["od"] * 3


def test_where_on_demand_is_out_too_workers_take_what_comes_first() -> None:
    cluster = gang()
    cluster.change_node("od", unschedulable=True)
    waiting(cluster)
    wait(cluster, AFTER)
    cluster.run_all()
    wait(cluster, 3 * LENGTH)
    assert (asks(cluster), places(cluster)) == (["spot"] * 3, [""] * 3)
    with_spot(cluster).running()
    assert "od" not in places(cluster)


def test_the_floor_stays_on_demand_and_is_no_part_of_it() -> None:
    cluster = gang(spot=dataclasses.replace(SPOT, floor=1))
    fallen_back(cluster)
    assert asks(cluster) == ["on-demand", "spot", "spot"]
    assert (cluster.status.workers.on_demand, cluster.status.workers.fallback) == (3, 2)


# Pools beyond the brake.


def braked(cluster: virtual.Cluster) -> virtual.Cluster:
    """The only pool there is has just lost three machines."""
    for name in ("n1", "n2", "n3", "n4", "n5"):
        cluster.change_node(name, zone=POOL.zone, instance_type=POOL.instance_type)
    cluster.losses = tuple(snap.Loss(POOL, node, cluster.now) for node in "abc")
    return cluster


def test_where_every_pool_is_beyond_the_brake_workers_are_made_for_anywhere_at_once() -> None:
    cluster = braked(gang())
    cluster.settle()
    assert asks(cluster) == ["spot"] * 3
    assert {one.resting for one in cluster.overlays.values()} == {(POOL,)}
    ((_, text),) = said(cluster)
    assert text.startswith(
        "every spot pool that is known has just lost machines: until 2026-01-01T02:00:00Z "
    )


def test_one_other_pool_is_enough_to_wait_for_spot() -> None:
    cluster = braked(gang())
    cluster.change_node("n5", zone="zone-b")
    cluster.settle()
    assert asks(cluster) == ["only-spot"] * 3


def test_a_gang_that_runs_is_left_alone_whatever_its_pool_does() -> None:
    cluster = gang().running()
    braked(cluster).settle()
    assert (cluster.status.fallback, cluster.status.attempt) == (None, 1)


# Returning.


def test_when_the_time_is_over_nobody_who_runs_is_moved() -> None:
    cluster = with_spot(fallen_back(gang()))
    wait(cluster, LENGTH)
    assert (cluster.status.attempt, places(cluster)) == (1, ["od"] * 3)
    text = (
        "the time of the fallback is over: new workers wait for spot nodes; 3 stay on on-demand nodes until "
        "their next restart"
    )
    assert said(cluster, conditions.FALLBACK_OVER) == [("FallbackOver", text)]
    assert sufficient(cluster) == (False, "FallbackOver", text)


def test_at_the_next_restart_all_are_back_on_spot() -> None:
    cluster = with_spot(fallen_back(gang()))
    wait(cluster, LENGTH)
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert asks(cluster) == ["only-spot"] * 3
    assert "od" not in places(cluster)
    assert (cluster.status.fallback, cluster.status.workers.fallback) == (None, 0)
    assert sufficient(cluster) == (True, "SpotFound", "no worker needs the fallback")
    assert [reason for reason, _ in said(cluster)] == ["FellBack", "FallbackOver", "SpotFound"]


def test_a_restart_while_the_time_is_not_over_may_go_to_on_demand_without_another_wait() -> None:
    cluster = fallen_back(gang())
    cluster.pass_time(LENGTH / 2)
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert (asks(cluster), places(cluster)) == (["spot"] * 3, ["od"] * 3)


def test_each_return_that_finds_no_spot_again_makes_the_next_fallback_longer_up_to_four_times() -> None:
    cluster = fallen_back(gang())
    lengths = []
    for _ in range(4):
        now = cluster.status.fallback
        assert now is not None
        assert now.until is not None
        lengths.append((now.until - now.since).total_seconds() / LENGTH)
        cluster.pass_time(4 * LENGTH)
        cluster.settle()
        cluster.evict(cluster.pod(1).name)
        cluster.recovered()
        wait(cluster, AFTER)
        cluster.running()
    assert lengths == [1, 2, 4, 4]


def test_once_spot_has_held_all_workers_the_next_fallback_is_a_first_one() -> None:
    cluster = with_spot(fallen_back(gang()))
    wait(cluster, LENGTH)
    cluster.evict("tr-1-1")
    cluster.recovered()
    without_spot(cluster)
    cluster.evict("tr-1-2")
    cluster.recovered()
    wait(cluster, AFTER)
    assert cluster.status.fallback is not None
    assert cluster.status.fallback.times == 1


def test_a_fallback_taken_out_of_the_spec_is_over() -> None:
    cluster = fallen_back(gang())
    cluster.edit(virtual.wishes())
    cluster.settle()
    assert (cluster.status.fallback, cluster.status.workers.fallback) == (None, 0)
    found = sufficient(cluster)
    assert found is not None
    assert found[0] is True


# Independent.


def test_an_index_that_gets_a_spot_node_as_it_makes_way_keeps_it() -> None:
    """The DELETE is of the pod as it was seen, without a node; nothing is recorded before that has gone."""
    cluster = waiting(virtual.Cluster(virtual.shards(workers=1, spot=SPOT)))
    cluster.pass_time(AFTER)
    cluster.step()
    cluster.pods["tr-0-1"] = dataclasses.replace(cluster.pods["tr-0-1"], version="v1")
    plan = decide.decide(cluster.snapshot())
    deleted = [(one.name, one.version) for one in plan.actions if isinstance(one, actions.DeletePod)]
    assert deleted == [("tr-0-1", "v1")]
    with_spot(cluster).bind("tr-0-1", "n1")
    cluster.run("tr-0-1")
    cluster.settle()
    assert (list(cluster.pods), cluster.status.reclaims) == (["tr-0-1"], 0)


def test_indexes_that_wait_go_and_those_that_come_after_do_not_wait_again() -> None:
    cluster = virtual.Cluster(virtual.shards(workers=4, parallelism=2, spot=SPOT))
    waiting(cluster)
    assert {str(pod.ask) for pod in cluster.pods.values()} == {"only-spot"}
    wait(cluster, AFTER)
    cluster.run_all()
    cluster.settle()
    assert {pod.node for pod in cluster.pods.values()} == {"od"}
    assert (cluster.status.workers.running, cluster.status.workers.fallback) == (2, 2)
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)
    cluster.end("tr-0-2", 0)
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert cluster.pods["tr-2-1"].node == "od"


# The answer.


def test_each_answer_has_its_reason() -> None:
    cluster = gang(spot=dataclasses.replace(SPOT, floor=1))
    answers = []
    for fallback in (None, status.Fallback(cluster.now, cluster.now + dt.timedelta(hours=1))):
        cluster.status = dataclasses.replace(cluster.status, fallback=fallback)
        answers += [capacity.of_member(cluster.snapshot(), index) for index in (0, 1)]
    cluster.spec = virtual.wishes()
    answers.append(capacity.of_member(cluster.snapshot(), 1))
    assert [(str(one.ask), str(one.why)) for one in answers] == [
        ("on-demand", "Floor"),
        ("only-spot", "Spot"),
        ("on-demand", "Floor"),
        ("spot", "Fallback"),
        ("spot", "Spot"),
    ]
