"""`spot.pools`: what is preferred among allowed pools, and what an edit does to whom."""

import collections

import pytest

from spottrain.api import allowed, clouds, conditions, spec
from spottrain.plan import preferences, storms
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard
from tests.unit.plan import test_brakes, virtual

A, B, C = (test_brakes.in_zone(f"zone-{name}") for name in "abc")
held = test_brakes.held


def spot(*entries: allowed.Entry, **changes: object) -> spec.Spot:
    return spec.Spot(pools=entries, **changes)  # type: ignore[arg-type]


def gang(*entries: allowed.Entry) -> virtual.Cluster:
    return virtual.Cluster(virtual.wishes(spot=spot(*entries)))


def zones(*names: str) -> tuple[allowed.Entry, ...]:
    return tuple(allowed.Entry(f"zone-{name}") for name in names)


def with_node(cluster: virtual.Cluster, pool: snap.Pool) -> virtual.Cluster:
    cluster.nodes[pool.zone] = snap.Node(
        pool.zone, "u", pool.capacity, "aws", zone=pool.zone, instance_type=pool.instance_type
    )
    return cluster


def firsts(cluster: virtual.Cluster) -> collections.Counter[str]:
    """The zone that comes first, in 200 draws."""
    snapshot = cluster.snapshot()
    drawn = [preferences.preferred(snapshot, f"id{number}") for number in range(200)]
    return collections.Counter(one[0].zone for one in drawn)


def running_message(cluster: virtual.Cluster) -> str:
    return test_brakes.running_condition(cluster).message


# Where a gang keeps together.


def test_the_home_of_an_attempt_that_has_nobody_yet_is_the_zone_of_its_best_pool() -> None:
    cluster = gang()
    for pool in (A, B):
        with_node(cluster, pool)
    found = collections.Counter(
        preferences.home(snapshot, preferences.preferred(snapshot, f"id{number}"))
        for snapshot in [cluster.snapshot()]
        for number in range(200)
    )
    assert set(found) == {"zone-a", "zone-b"}
    assert min(found.values()) > 50


def test_the_home_is_unknown_where_there_is_no_choice_of_pools_or_they_have_no_zone() -> None:
    cluster = with_node(gang(), A)
    snapshot = cluster.snapshot()
    assert preferences.home(snapshot, preferences.preferred(snapshot, "id")) == ""
    assert preferences.home(snapshot, (snap.Pool(clouds.Capacity.SPOT, "", "g5"),)) == ""


def test_a_worker_that_is_made_later_goes_to_the_zone_where_most_of_its_attempt_is() -> None:
    """Wherever the scheduler found room for those, and whatever pool was the best one."""
    cluster = gang()
    for pool in (A, B, C):
        with_node(cluster, pool)
    cluster.running()
    cluster.evict("tr-2-1")
    cluster.end("tr-2-1", 143)
    cluster.settle()  # the other two have their places until they end
    cluster.pass_time(10.0)
    wanted = next(zone for zone in ("zone-a", "zone-b", "zone-c") if zone != cluster.overlays["tr-2-2"].home)
    cluster.bind("tr-2-2", wanted)
    for name in ("tr-0-1", "tr-1-1"):
        cluster.end(name, 143)
        cluster.settle()
        assert cluster.overlays[name.removesuffix("1") + "2"].home == wanted


# Which are preferred.


def test_of_the_pools_that_are_known_only_allowed_ones_are_preferred() -> None:
    cluster = gang(*zones("a", "b"))
    cluster.known = {A: held(cluster, 5.0), B: held(cluster, 5.0), C: held(cluster, 500.0)}
    assert set(preferences.preferred(cluster.snapshot(), "an id")) == {A, B}


def test_an_allowed_pool_that_nobody_has_met_is_tried_as_one_of_which_nothing_is_known() -> None:
    cluster = gang(*zones("a", "x"))
    cluster.known = {A: held(cluster, 0.1)}
    found = firsts(cluster)
    assert set(found) == {"zone-a", "zone-x"}
    unmet = snap.Pool(clouds.Capacity.SPOT, "zone-x", "")
    assert unmet in preferences.preferred(cluster.snapshot(), "an id")


def test_of_pools_of_which_nothing_is_known_each_comes_first_with_the_share_of_its_weight() -> None:
    found = firsts(gang(allowed.Entry("zone-a", weight=3), allowed.Entry("zone-b")))
    assert found["zone-a"] == pytest.approx(150, abs=20)


def test_a_pool_that_held_out_is_preferred_to_a_new_one_of_some_more_weight() -> None:
    cluster = gang(allowed.Entry("zone-a"), allowed.Entry("zone-b", weight=2))
    cluster.known = {A: held(cluster, 300.0), B: held(cluster, 0.1)}
    assert firsts(cluster)["zone-a"] > 150


def test_a_pool_that_rests_comes_after_all_others_whatever_its_weight() -> None:
    cluster = gang(allowed.Entry("zone-a", weight=100), allowed.Entry("zone-b"))
    cluster.known = {A: held(cluster, 5.0, lost=True), B: held(cluster, 0.1)}
    cluster.settle()
    (overlay, *_) = cluster.overlays.values()
    assert (overlay.preferred, overlay.resting) == ((B,), (A,))


def test_a_pool_that_rests_where_the_job_may_not_go_is_none_of_its_business() -> None:
    cluster = gang(*zones("a", "b"))
    cluster.known = {C: held(cluster, 5.0, lost=True)}
    cluster.settle()
    assert storms.resting(cluster.snapshot()) == ()
    assert [one for one in cluster.events if one.reason == conditions.POOL_RESTS] == []


def test_all_allowed_pools_beyond_the_brake_are_a_reason_to_fall_back() -> None:
    cluster = virtual.Cluster(virtual.wishes(spot=spot(*zones("a"), fallback=spec.Fallback())))
    with_node(with_node(cluster, A), B)
    cluster.losses = test_brakes.losses(cluster, "x", "y", "z")
    cluster.settle()
    told = [one.message for one in cluster.events if one.reason == conditions.FELL_BACK]
    assert [one.partition(":")[0] for one in told] == ["every spot pool that is known has just lost machines"]


def test_while_an_allowed_pool_was_never_tried_only_waiting_is_a_reason_to_fall_back() -> None:
    cluster = virtual.Cluster(virtual.wishes(spot=spot(*zones("a", "x"), fallback=spec.Fallback(900.0))))
    with_node(cluster, A)
    cluster.losses = test_brakes.losses(cluster, "x", "y", "z")
    waiting(cluster, "tr-0-1", "tr-1-1", "tr-2-1")
    assert {one.ask for one in cluster.overlays.values()} == {clouds.Ask.ONLY_SPOT}
    cluster.pass_time(900.0)
    cluster.settle()
    told = [one.message for one in cluster.events if one.reason == conditions.FELL_BACK]
    assert [one.partition(":")[0] for one in told] == ["3 workers have found no spot node for 15m"]


# Edits.


def waiting(cluster: virtual.Cluster, *names: str) -> virtual.Cluster:
    """Up to workers of which these find no node, and the others run."""
    cluster.settle()
    for name in names:
        cluster.find_no_node(name)
    for name in cluster.pods.keys() - set(names):
        cluster.bind(name, "n1")
        cluster.run(name)
    cluster.settle()
    return cluster


@pytest.mark.parametrize("job", [virtual.wishes, virtual.shards], ids=["gang", "independent"])
def test_an_edit_of_the_pools_makes_those_anew_that_wait_and_moves_nobody_who_runs(job: object) -> None:
    make = virtual.shards if job is virtual.shards else virtual.wishes
    cluster = waiting(virtual.Cluster(make(spot=spot(*zones("a")))), "tr-1-1")
    before = {pod.index: pod.uid for pod in cluster.pods.values()}
    cluster.edit(make(spot=spot(*zones("b"))))
    cluster.settle()
    after = {pod.index: pod.uid for pod in cluster.pods.values()}
    assert [index for index in before if before[index] != after[index]] == [1]
    assert (cluster.status.reclaims, cluster.status.failures) == (0, 0)
    (made,) = [pod for pod in cluster.pods.values() if pod.index == 1]
    assert made.pools == allowed.digest(zones("b"))


def test_an_edit_that_is_taken_back_before_the_next_pod_is_made_restarts_nothing() -> None:
    first, second = (virtual.wishes(spot=spot(*zones(name))) for name in "ab")
    cluster = waiting(virtual.Cluster(first), "tr-1-1")
    before = {pod.index: pod.uid for pod in cluster.pods.values()}
    cluster.edit(second)
    cluster.step()
    assert "tr-1-1" not in cluster.pods
    cluster.edit(first)
    cluster.settle()
    assert cluster.wake is not None
    cluster.pass_time(cluster.wake)
    cluster.settle()
    after = {pod.index: pod.uid for pod in cluster.pods.values()}
    assert [index for index in before if before[index] != after[index]] == [1]
    assert (cluster.status.attempt, len(cluster.status.attempts)) == (1, 1)


def test_other_weights_are_no_reason_to_make_a_worker_anew() -> None:
    cluster = waiting(gang(*zones("a", "b")), "tr-1-1")
    before = cluster.pods["tr-1-1"].uid
    heavier = (allowed.Entry("zone-b", weight=9), allowed.Entry("zone-a"))
    cluster.edit(virtual.wishes(spot=spot(*heavier)))
    cluster.settle()
    assert cluster.pods["tr-1-1"].uid == before


def test_a_floor_worker_that_waits_is_not_made_anew_for_other_pools() -> None:
    cluster = virtual.Cluster(virtual.wishes(spot=spot(*zones("a"), floor=1)))
    cluster.settle()
    before = cluster.pods["tr-0-1"].uid
    waiting(cluster, "tr-0-1")
    cluster.edit(virtual.wishes(spot=spot(*zones("b"), floor=1)))
    cluster.settle()
    assert cluster.pods["tr-0-1"].uid == before


# Names that nothing has.


def test_who_waits_for_pools_that_nobody_has_met_is_told_to_compare_the_names() -> None:
    cluster = waiting(gang(*zones("x")), "tr-0-1", "tr-1-1", "tr-2-1")
    assert running_message(cluster) == (
        "0 of 3 workers run; no node fits; no spot node was ever seen in spec.spot.pools: compare its names "
        "with the nodes' labels"
    )


def test_who_waits_for_a_pool_that_is_full_is_not() -> None:
    cluster = waiting(with_node(gang(*zones("a")), A), "tr-0-1", "tr-1-1", "tr-2-1")
    assert running_message(cluster) == "0 of 3 workers run; no node fits"


def test_what_is_learnt_of_a_pool_without_nodes_is_enough_to_know_it() -> None:
    cluster = gang(*zones("a"))
    cluster.known = {A: hazard.Record()}
    waiting(cluster, "tr-0-1", "tr-1-1", "tr-2-1")
    assert running_message(cluster) == "0 of 3 workers run; no node fits"
