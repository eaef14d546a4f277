"""`spot.pools` in a pod's affinity, as the scheduler reads it and as Karpenter does."""

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from spottrain.api import allowed, clouds, spec
from spottrain.plan import snapshot as snap
from tests.unit.render import test_pod

Object = dict[str, Any]

TWO = (allowed.Entry("zone-a", "g5"), allowed.Entry("zone-b", "p4", 5))
"""They can't be written as one term."""
ROWS = (allowed.Entry("zone-a"), allowed.Entry("zone-b"))
KARPENTER = "karpenter.sh/capacity-type"
A, B = (snap.Pool(clouds.Capacity.SPOT, zone, "g5") for zone in ("zone-a", "zone-b"))


def node_affinity(pools: allowed.Entries, template: Object | None = None, **overlay: Any) -> Object:
    pod = test_pod.rendered(template, spot=spec.Spot(pools=pools), **overlay)
    found: Object = pod["spec"]["affinity"]["nodeAffinity"]
    return found


def required(node: Object) -> list[Object]:
    terms: list[Object] = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return terms


def labels(zone: str, kind: str, marks: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": zone, "node.kubernetes.io/instance-type": kind, **marks}


def holds(term: Object, node: dict[str, str]) -> bool:
    """All of its expressions hold."""
    return all(
        one["key"] in node if one["operator"] == "Exists" else test_pod.holds(one, node)
        for one in term["matchExpressions"]
    )


def may_run(affinity: Object, node: dict[str, str]) -> bool:
    """Terms are ORed."""
    return any(holds(term, node) for term in required(affinity))


SPOT_MARKS = [{mark.key: value} for mark in clouds.SPOT_MARKS for value in mark.values]


@pytest.mark.parametrize("ask", [clouds.Ask.SPOT, clouds.Ask.ONLY_SPOT])
@pytest.mark.parametrize("mark", SPOT_MARKS, ids=str)
def test_on_spot_of_whatever_mark_a_worker_runs_in_those_pools_alone(
    ask: clouds.Ask, mark: dict[str, str]
) -> None:
    gke = {"cloud.google.com/gke-nodepool": "p", "kubernetes.azure.com/cluster": "c"}
    affinity = node_affinity(TWO, ask=ask)
    places = itertools.product(("zone-a", "zone-b", "zone-c"), ("g5", "p4"))
    found = {place for place in places if may_run(affinity, labels(*place, {**mark, **gke}))}
    assert found == {("zone-a", "g5"), ("zone-b", "p4")}


ON_DEMAND = [
    {KARPENTER: "on-demand"},
    {KARPENTER: "reserved"},
    {"eks.amazonaws.com/capacityType": "ON_DEMAND"},
    {"cloud.google.com/gke-nodepool": "p"},
    {"kubernetes.azure.com/cluster": "c"},
]


@pytest.mark.parametrize("mark", ON_DEMAND, ids=str)
def test_who_may_go_to_on_demand_may_go_to_any(mark: dict[str, str]) -> None:
    elsewhere = labels("zone-x", "x1", mark)
    asks = (clouds.Ask.ON_DEMAND, clouds.Ask.SPOT, clouds.Ask.ONLY_SPOT)
    assert [may_run(node_affinity(TWO, ask=ask), elsewhere) for ask in asks] == [True, True, False]


def test_a_floor_worker_is_not_bound_to_pools() -> None:
    bound, free = (node_affinity(pools, ask=clouds.Ask.ON_DEMAND) for pools in (TWO, ()))
    assert bound == free


def test_a_node_of_which_nobody_knows_how_it_was_bought_has_to_be_in_a_pool() -> None:
    affinity = node_affinity(TWO)
    assert may_run(affinity, labels("zone-a", "g5"))
    assert not may_run(affinity, labels("zone-a", "p4"))


def test_the_templates_own_terms_hold_together_with_the_pools() -> None:
    theirs = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}
        for value in ("nvme", "ssd")
    ]
    own = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": theirs}}
    affinity = node_affinity(TWO, {"affinity": {"nodeAffinity": own}}, ask=clouds.Ask.ONLY_SPOT)
    spot = labels("zone-a", "g5", {KARPENTER: "spot"})
    found = [may_run(affinity, {**spot, "disk": disk}) for disk in ("nvme", "ssd", "hdd")]
    assert found == [True, True, False]
    assert not may_run(affinity, labels("zone-c", "g5", {KARPENTER: "spot", "disk": "ssd"}))


def test_zones_alone_are_one_term_for_each_mark() -> None:
    terms = required(node_affinity(ROWS, ask=clouds.Ask.ONLY_SPOT))
    assert len(terms) == len({mark.key for mark in clouds.SPOT_MARKS})


def test_the_longest_list_stays_far_below_what_an_object_may_have() -> None:
    """etcd takes 1.5 MiB; a gang of 1000 has a thousand of them."""
    zones = [f"northamerica-northeast{number}-c" for number in range(allowed.MOST)]
    longest = tuple(allowed.Entry(zone, f"a3-megagpu-8g-{zone}") for zone in zones)
    assert len(str(node_affinity(longest, ask=clouds.Ask.ONLY_SPOT))) < 100_000


def test_with_as_many_terms_of_the_template_as_are_taken_it_does_too() -> None:
    theirs = [
        {"matchExpressions": [{"key": "rack", "operator": "In", "values": [f"r{n}"]}]} for n in range(4)
    ]
    own = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": theirs}}
    zones = [f"northamerica-northeast{number}-c" for number in range(allowed.MOST // 4)]
    longest = tuple(allowed.Entry(zone, f"a3-megagpu-8g-{zone}") for zone in zones)
    node = node_affinity(longest, {"affinity": {"nodeAffinity": own}}, ask=clouds.Ask.ONLY_SPOT)
    assert len(required(node)) == 256
    assert len(str(node)) < 100_000


def test_a_pod_says_which_pools_it_was_made_for_unless_it_is_not_for_spot() -> None:
    asks = (clouds.Ask.SPOT, clouds.Ask.ONLY_SPOT, clouds.Ask.ON_DEMAND)
    pods = [test_pod.rendered(spot=spec.Spot(pools=TWO), ask=ask) for ask in asks]
    said = [pod["metadata"]["annotations"].get("spottrain.dev/pools") for pod in pods]
    assert said == [allowed.digest(TWO), allowed.digest(TWO), None]
    assert "spottrain.dev/pools" not in test_pod.rendered()["metadata"]["annotations"]


def test_the_best_pool_is_wanted_most_and_any_spot_more_than_what_is_bought() -> None:
    node = node_affinity((*ROWS, allowed.Entry("zone-c")), preferred=(B, A))
    spot = [test_pod.liking(node, f"zone-{zone}", "g5", "spot") for zone in "bac"]
    assert spot == sorted(spot, reverse=True)
    assert len(set(spot)) == 3
    assert min(spot) > test_pod.liking(node, "zone-b", "g5", "on-demand")


# Karpenter. It takes the first required and the heaviest preferred term; while it can buy nothing that meets
# both it drops required ones from the front up to the last, and then preferred ones, the heaviest first
# (kubernetes-sigs/karpenter, pkg/controllers/provisioning/scheduling/preferences.go). Labels of other
# provisioners no node of its has.


def bought(affinity: Object, offers: list[dict[str, str]]) -> dict[str, str] | None:
    """The first of the offers, the cheapest first, that it would buy; it does not buy what has run out."""
    musts = list(required(affinity))
    likes = list(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ()))
    likes = [one["preference"] for one in sorted(likes, key=lambda one: -one["weight"])]
    while True:
        for offer in offers:
            if holds(musts[0], offer) and (not likes or holds(likes[0], offer)):
                return offer
        if len(musts) > 1:
            del musts[0]
        elif likes:
            del likes[0]
        else:
            return None


def offer(zone: str, kind: str, capacity: str) -> dict[str, str]:
    return labels(zone, kind, {KARPENTER: capacity})


SPOT_A, SPOT_B, SPOT_C = (offer(zone, "g5", "spot") for zone in ("zone-a", "zone-b", "zone-c"))
APART = (allowed.Entry("zone-a", "g5"), allowed.Entry("zone-b", "g5"), allowed.Entry("zone-b", "p4"))
BOUGHT_A, BOUGHT_C = (offer(zone, "g5", "on-demand") for zone in ("zone-a", "zone-c"))


@pytest.mark.parametrize("ask", [clouds.Ask.SPOT, clouds.Ask.ONLY_SPOT])
@pytest.mark.parametrize("pools", [ROWS, APART], ids=["one term", "a term for each"])
@pytest.mark.parametrize(
    ("offers", "wanted"),
    [
        ([SPOT_C, SPOT_A, SPOT_B, BOUGHT_A], SPOT_B),
        ([SPOT_C, SPOT_A, BOUGHT_A, BOUGHT_C], SPOT_A),
    ],
    ids=["the best pool", "it has run out: the next one, before on-demand"],
)
def test_karpenter_buys_in_the_best_pool_and_then_in_the_others(
    ask: clouds.Ask, pools: allowed.Entries, offers: list[dict[str, str]], wanted: dict[str, str]
) -> None:
    labelled = snap.Settings(spot_marks=(clouds.Mark("site/spot", ("yes",)),))
    affinity = node_affinity(pools, ask=ask, preferred=(B, A), settings=labelled)
    assert bought(affinity, offers) == wanted


def test_karpenter_buys_on_demand_where_no_pool_has_room_unless_spot_is_waited_for() -> None:
    offers = [SPOT_C, BOUGHT_C]
    asks = (clouds.Ask.SPOT, clouds.Ask.ONLY_SPOT)
    found = [bought(node_affinity(ROWS, ask=ask, preferred=(B, A)), offers) for ask in asks]
    assert found == [BOUGHT_C, None]


def test_karpenter_buys_spot_although_the_template_prefers_a_zone_most_of_all() -> None:
    likes = {
        "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]
    }
    own = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": likes}]}
    affinity = node_affinity(ROWS, {"affinity": {"nodeAffinity": own}}, preferred=(B, A))
    assert bought(affinity, [SPOT_B, SPOT_A, BOUGHT_A]) == SPOT_A


def test_karpenter_leaves_a_pool_that_rests_for_last_among_what_it_waits_for() -> None:
    """Without lists too: what it can buy is the last term, which stays while preferences are given up."""
    pod = test_pod.rendered(ask=clouds.Ask.ONLY_SPOT, resting=(A,))
    assert bought(pod["spec"]["affinity"]["nodeAffinity"], [SPOT_A]) == SPOT_A
