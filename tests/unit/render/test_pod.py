"""Pods: the template with the overlay on top."""

from typing import Any

import pytest

from spottrain.api import clouds, spec
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from spottrain.render import identity, pod, scheduling, shells

JOB = identity.Identity("t", "tr", "u1")


def rendered(
    template: dict[str, Any] | None = None,
    *,
    spot: spec.Spot | None = None,
    settings: snap.Settings | None = None,
    progress_timeout: float | None = None,
    **overlay: Any,
) -> dict[str, Any]:
    whole = {"spec": {"containers": [{"name": "c", "image": "i"}], **(template or {})}}
    wishes = spec.Spec(
        workers=3,
        template=whole,
        checkpoint=spec.Checkpoint("s3://b/p"),
        spot=spot or spec.Spot(),
        progress_timeout=progress_timeout,
    )
    mold = pod.Mold(JOB, wishes, "j1", whole, settings or snap.Settings())
    base: dict[str, Any] = {
        "index": 1,
        "attempt": 2,
        "attempt_id": "abc",
        "ask": clouds.Ask.SPOT,
        "grace": 28,
    }
    return pod.render(mold, actions.Overlay(**{**base, **overlay}))


def environment(one: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value") for entry in one["spec"]["containers"][0]["env"]}


def required_terms(one: dict[str, Any]) -> list[dict[str, Any]]:
    node = one["spec"]["affinity"]["nodeAffinity"]
    terms = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return list(terms)


def test_name_and_host_name_are_the_same_and_the_service_gives_it_a_domain() -> None:
    one = rendered()
    assert one["metadata"]["name"] == one["spec"]["hostname"] == "tr-1-2"
    assert one["spec"]["subdomain"] == "tr"


def test_torchrun_finds_its_whole_command_line_in_the_environment() -> None:
    env = environment(rendered())
    assert {key: env[key] for key in env if key.startswith("PET_")} == {
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "tr-0-2.tr",
        "PET_MASTER_PORT": "29500",
        "PET_RDZV_ID": "abc",
    }


def independent(*, index: int = 7, **changes: Any) -> dict[str, Any]:
    """The pod of an index of an Independent job."""
    whole = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    base: dict[str, Any] = {"workers": 9, "checkpoint": spec.Checkpoint("s3://b/p")}
    wishes = spec.Spec(template=whole, mode=spec.Mode.INDEPENDENT, **{**base, **changes})
    mold = pod.Mold(JOB, wishes, "j1", whole, snap.Settings())
    return pod.render(mold, actions.Overlay(index, 2, "abc", ask=clouds.Ask.SPOT, grace=28))


def test_an_index_is_a_world_of_its_own_with_checkpoints_of_its_own() -> None:
    env = environment(independent())
    assert {key: env[key] for key in env if key.startswith("PET_")} == {"PET_STANDALONE": "1"}
    assert (env["SPOTTRAIN_MODE"], env["SPOTTRAIN_CHECKPOINT_URI"]) == ("Independent", "s3://b/p/7")
    assert (env["SPOTTRAIN_INDEX"], env["SPOTTRAIN_WORKERS"], env["JOB_COMPLETION_INDEX"]) == ("7", "9", "7")
    assert "subdomain" not in independent()["spec"], "there is no Service"


def test_an_index_has_no_place_for_checkpoints_where_the_job_names_none() -> None:
    assert "SPOTTRAIN_CHECKPOINT_URI" not in environment(independent(checkpoint=spec.Checkpoint("")))


def test_indexes_are_spread_over_zones_whatever_their_attempts() -> None:
    one = independent(spot=spec.Spot(spread=spec.Spread.ZONE))
    (constraint,) = one["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"spottrain.dev/job": "tr"}}


def test_what_is_empty_is_not_in_the_environment() -> None:
    env = environment(rendered())
    assert "" not in env.values()
    assert "SPOTTRAIN_CHECKPOINT_URI" in env
    assert "SPOTTRAIN_CHECKPOINT_ENDPOINT" not in env


def test_torchrun_starts_a_process_for_each_gpu_of_its_container() -> None:
    for resources, processes in (
        ({"limits": {"nvidia.com/gpu": 8}}, "8"),
        ({"requests": {"amd.com/gpu": "4"}, "limits": {"amd.com/gpu": "4"}}, "4"),
        ({"limits": {"cpu": 4, "nvidia.com/mig-1g.5gb": 2}}, None),
        ({"limits": {"nvidia.com/gpu": 1}}, None),
        ({}, None),
    ):
        container = {"name": "c", "image": "i", "resources": resources}
        assert environment(rendered({"containers": [container]})).get("PET_NPROC_PER_NODE") == processes


def test_only_worker_0_of_a_gang_is_told_where_to_tell_its_step() -> None:
    for index, port in ((0, "29580"), (1, None)):
        assert environment(rendered(index=index)).get("SPOTTRAIN_PROGRESS_PORT") == port
    assert "SPOTTRAIN_PROGRESS_PORT" not in environment(independent(index=0))


def declared(one: dict[str, Any]) -> list[dict[str, Any]]:
    return list(one["spec"]["containers"][0].get("ports", []))


def test_worker_0_of_a_gang_declares_the_port_on_which_prometheus_finds_its_metrics() -> None:
    port = {"name": "spottrain", "containerPort": 29580}
    own = {"name": "debug", "containerPort": 80}
    assert declared(rendered(index=0)) == [port]
    assert declared(rendered(index=1)) == []
    assert declared(independent(index=0)) == []
    with_own = {"containers": [{"name": "c", "image": "i", "ports": [own]}, {"name": "d", "image": "i"}]}
    assert declared(rendered(with_own, index=0)) == [own, port]
    assert "ports" not in rendered(with_own, index=0)["spec"]["containers"][1]


def test_no_port_is_declared_where_it_would_be_the_hosts_or_the_template_has_it() -> None:
    assert declared(rendered({"hostNetwork": True}, index=0)) == []
    for taken in ({"name": "spottrain", "containerPort": 1}, {"name": "x", "containerPort": 29580}):
        container = {"name": "c", "image": "i", "ports": [taken]}
        assert declared(rendered({"containers": [container]}, index=0)) == [taken]


def test_torchruns_agent_leaves_its_workers_the_whole_grace() -> None:
    """Its own 30 s are as good where the kubelet ends everything before they are over."""
    for grace, told in ((114, "114"), (31, "31"), (30, None), (12, None)):
        assert environment(rendered(grace=grace)).get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") == told


def test_what_the_job_leaves_open_is_left_to_the_programs_own_arguments() -> None:
    told = ("SPOTTRAIN_CHECKPOINT_KEEP", "SPOTTRAIN_CHECKPOINT_INTERVAL", "SPOTTRAIN_ON_BROKEN")
    assert [environment(independent()).get(name) for name in told] == [None, None, None]
    checkpoint = spec.Checkpoint("s3://b/p", keep=5, interval=90.0, on_broken="StartFresh")
    env = environment(independent(checkpoint=checkpoint))
    assert [env[name] for name in told] == ["5", "90", "StartFresh"]


def test_a_name_that_the_template_sets_is_left_to_it_and_order_is_kept() -> None:
    own = [{"name": "PET_MASTER_PORT", "value": "1"}, {"name": "B", "value": "$(SPOTTRAIN_INDEX)"}]
    one = rendered({"containers": [{"name": "c", "image": "i", "env": own}]})
    assert one["spec"]["containers"][0]["env"][-2:] == own
    assert [entry["name"] for entry in one["spec"]["containers"][0]["env"]].count("PET_MASTER_PORT") == 1


def test_owner_labels_and_annotations_are_what_tools_expect_of_a_jobs_pod() -> None:
    metadata = rendered()["metadata"]
    assert metadata["labels"] == {
        "spottrain.dev/job": "tr",
        "spottrain.dev/index": "1",
        "spottrain.dev/attempt": "2",
        "spottrain.dev/capacity": "spot",
        "batch.kubernetes.io/job-name": "tr",
        "batch.kubernetes.io/controller-uid": "j1",
        "batch.kubernetes.io/job-completion-index": "1",
    }
    assert metadata["ownerReferences"][0]["blockOwnerDeletion"] is False
    assert metadata["annotations"]["spottrain.dev/attempt-id"] == "abc"
    assert "spottrain.dev/go" not in metadata["annotations"]


def test_of_the_templates_annotations_those_that_are_the_operators_own_words_are_left_out() -> None:
    given = {"team": "vision", "spottrain.dev/pools": "0123456789", "spottrain.dev/train-until": "soon"}
    whole = {"metadata": {"annotations": given}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    wishes = spec.Spec(3, whole, spec.Checkpoint("s3://b/p"))
    overlay = actions.Overlay(1, 2, "abc", ask=clouds.Ask.SPOT, grace=28)
    made = pod.render(pod.Mold(JOB, wishes, "j1", whole, snap.Settings()), overlay)
    annotations = made["metadata"]["annotations"]
    assert annotations["team"] == "vision"
    assert {key for key in annotations if key.startswith("spottrain.dev/")} == {"spottrain.dev/attempt-id"}


def test_spot_is_preferred_with_weight_80_by_every_clouds_mark() -> None:
    node = rendered()["spec"]["affinity"]["nodeAffinity"]
    preferred = node["preferredDuringSchedulingIgnoredDuringExecution"]
    keys = {term["preference"]["matchExpressions"][0]["key"] for term in preferred}
    assert keys == {mark.key for mark in clouds.SPOT_MARKS}
    assert {term["weight"] for term in preferred} == {80}


def test_a_floor_worker_requires_on_demand_and_prefers_no_spot() -> None:
    one = rendered(ask=clouds.Ask.ON_DEMAND)
    node = one["spec"]["affinity"]["nodeAffinity"]
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in node
    last = required_terms(one)[-1]["matchExpressions"]
    assert last == [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "reserved"]}
    ]
    assert one["metadata"]["labels"]["spottrain.dev/capacity"] == "on-demand"


def test_a_worker_for_spot_alone_requires_some_clouds_mark() -> None:
    one = rendered(ask=clouds.Ask.ONLY_SPOT)
    keys = [term["matchExpressions"][0]["key"] for term in required_terms(one)]
    karpenter, *others = dict.fromkeys(mark.key for mark in clouds.SPOT_MARKS)
    assert keys == [*others, karpenter]
    assert one["metadata"]["labels"]["spottrain.dev/capacity"] == "only-spot"


def test_a_sites_on_demand_label_is_one_of_the_floors_terms() -> None:
    settings = snap.Settings(on_demand_marks=(clouds.Mark("pool", ("paid",)),))
    terms = required_terms(rendered(ask=clouds.Ask.ON_DEMAND, settings=settings))
    assert {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["paid"]}]} in terms


def test_the_templates_required_terms_hold_together_with_ours() -> None:
    """Terms are ORed, so every one of theirs meets every one of ours."""
    theirs = [
        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": [value]}]}
        for value in ("a100", "h100")
    ]
    given = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": theirs}}
    }
    ours = scheduling.on_demand_terms(snap.Settings())
    terms = required_terms(rendered({"affinity": given}, ask=clouds.Ask.ON_DEMAND))
    assert len(terms) == 2 * len(ours)
    assert all(term["matchExpressions"][0]["key"] == "gpu" for term in terms)
    assert required_terms(rendered({"affinity": given})) == theirs


def test_doomed_nodes_are_avoided_by_name() -> None:
    assert required_terms(rendered(avoid=("n1", "n2"))) == [
        {
            "matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]},
                {"key": "metadata.name", "operator": "NotIn", "values": ["n2"]},
            ]
        }
    ]


def test_the_gpu_taint_is_tolerated_only_by_those_who_ask_for_gpus() -> None:
    gpu = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    assert "nvidia.com/gpu" in {one["key"] for one in rendered(gpu)["spec"]["tolerations"]}
    assert "nvidia.com/gpu" not in {one["key"] for one in rendered()["spec"]["tolerations"]}


def test_every_clouds_spot_taint_is_tolerated_whatever_its_effect() -> None:
    found = {one["key"]: one for one in rendered()["spec"]["tolerations"]}
    for key in clouds.SPOT_TAINT_KEYS:
        assert found[key] == {"key": key, "operator": "Exists"}


def test_spread_over_zones_never_keeps_a_worker_pending() -> None:
    (constraint,) = rendered(spot=spec.Spot(spread=spec.Spread.ZONE))["spec"]["topologySpreadConstraints"]
    assert (constraint["maxSkew"], constraint["whenUnsatisfiable"]) == (1, "ScheduleAnyway")


def test_pack_prefers_the_zone_of_the_same_attempt() -> None:
    affinity = rendered()["spec"]["affinity"]["podAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert affinity[0]["podAffinityTerm"]["labelSelector"]["matchLabels"] == {
        "spottrain.dev/job": "tr",
        "spottrain.dev/attempt": "2",
    }


def test_spread_none_adds_nothing() -> None:
    one = rendered(spot=spec.Spot(spread=spec.Spread.NONE))["spec"]
    assert "topologySpreadConstraints" not in one
    assert "podAffinity" not in one["affinity"]


def test_the_template_itself_is_left_as_it_was() -> None:
    template = {"containers": [{"name": "c", "image": "i"}], "tolerations": [], "volumes": []}
    rendered(template)
    assert template == {"containers": [{"name": "c", "image": "i"}], "tolerations": [], "volumes": []}


def test_go_is_there_from_the_start_when_nobody_came_before() -> None:
    assert rendered(go=True)["metadata"]["annotations"]["spottrain.dev/go"] == "abc"


def test_the_templates_first_container_is_marked_as_the_one_that_decides() -> None:
    """A webhook may put another one before it; what the template says itself stands."""
    assert rendered()["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "c"


def holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    """As the scheduler reads it."""
    among = labels.get(expression["key"]) in expression["values"]
    return among if expression["operator"] == "In" else not among


def liking(node: dict[str, Any], zone: str, kind: str, capacity: str) -> int:
    """The weights of the preferences that a node meets."""
    labels = {
        "topology.kubernetes.io/zone": zone,
        "node.kubernetes.io/instance-type": kind,
        "karpenter.sh/capacity-type": capacity,
    }
    return sum(
        one["weight"]
        for one in node["preferredDuringSchedulingIgnoredDuringExecution"]
        if all(holds(expression, labels) for expression in one["preference"]["matchExpressions"])
    )


def test_a_pool_that_rests_is_less_wanted_than_any_other_place_and_spot_elsewhere_is_wanted_most() -> None:
    pools = tuple(snap.Pool(clouds.Capacity.SPOT, zone, "g5") for zone in ("zone-a", "zone-b"))
    node = rendered(resting=pools)["spec"]["affinity"]["nodeAffinity"]
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in node
    for pool in pools:
        there = pool.zone
        resting = liking(node, there, "g5", "spot")
        elsewhere = [liking(node, "zone-c", "g5", "spot"), liking(node, there, "p4", "spot")]
        bought = [liking(node, zone, "g5", "on-demand") for zone in (there, "zone-c")]
        assert resting < min(bought) <= max(bought) < min(elsewhere)


def test_the_best_pool_is_wanted_most_and_any_spot_more_than_what_is_bought() -> None:
    first, second = (snap.Pool(clouds.Capacity.SPOT, zone, "g5") for zone in ("zone-a", "zone-b"))
    node = rendered(preferred=(first, second))["spec"]["affinity"]["nodeAffinity"]
    best, next_best = (liking(node, pool.zone, "g5", "spot") for pool in (first, second))
    elsewhere = [liking(node, "zone-c", "g5", "spot"), liking(node, "zone-a", "p4", "spot")]
    bought = liking(node, "zone-a", "g5", "on-demand")
    assert best > next_best > max(elsewhere) >= min(elsewhere) > bought


def test_the_heaviest_preference_alone_names_the_best_pool() -> None:
    """Karpenter heeds that one, and the next only where it can't be met."""
    pool = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5")
    resting = snap.Pool(clouds.Capacity.SPOT, "zone-b", "g5")
    node = rendered(preferred=(pool,), resting=(resting,))["spec"]["affinity"]["nodeAffinity"]
    terms = node["preferredDuringSchedulingIgnoredDuringExecution"]
    heaviest = max(terms, key=lambda one: one["weight"])  # the first of several
    expressions = {one["key"]: one["values"] for one in heaviest["preference"]["matchExpressions"]}
    assert expressions["topology.kubernetes.io/zone"] == ["zone-a"]


def test_a_gang_keeps_together_at_home_and_rather_on_spot_elsewhere_than_on_what_is_bought_there() -> None:
    """Whichever pools are preferred; of those at home the best one alone names what Karpenter buys first."""
    home, away = (snap.Pool(clouds.Capacity.SPOT, zone, "g5") for zone in ("zone-a", "zone-b"))
    for preferred in ((home, away), (away, home), (away,)):
        spot = spec.Spot(spread=spec.Spread.PACK)
        one = rendered(spot=spot, preferred=preferred, home="zone-a")["spec"]
        assert "podAffinity" not in one["affinity"]
        node = one["affinity"]["nodeAffinity"]
        there, best_away = (liking(node, pool.zone, "g5", "spot") for pool in (home, away))
        other_type = liking(node, "zone-a", "p4", "spot")
        spot_away = liking(node, "zone-c", "g5", "spot")
        bought, bought_away = (liking(node, zone, "g5", "on-demand") for zone in ("zone-a", "zone-c"))
        assert there >= other_type > best_away > spot_away > bought > bought_away
        assert (there > other_type) == (home in preferred)


def test_a_floor_worker_of_a_gang_prefers_its_home_and_no_spot() -> None:
    spot = spec.Spot(spread=spec.Spread.PACK)
    one = rendered(spot=spot, home="zone-a", ask=clouds.Ask.ON_DEMAND)["spec"]["affinity"]
    assert "podAffinity" not in one
    assert liking(one["nodeAffinity"], "zone-a", "g5", "on-demand") > 0
    assert liking(one["nodeAffinity"], "zone-b", "g5", "spot") == 0


@pytest.mark.parametrize("spread", [spec.Spread.ZONE, spec.Spread.NONE])
def test_workers_that_are_not_to_be_packed_have_no_home(spread: spec.Spread) -> None:
    free, given = (rendered(spot=spec.Spot(spread=spread), home=home) for home in ("", "zone-a"))
    assert given == free


@pytest.mark.parametrize(
    ("providers", "labels"),
    [
        ({"aws"}, {"karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType"}),
        ({"azure"}, {"karpenter.sh/capacity-type", "kubernetes.azure.com/scalesetpriority"}),
        ({"aws", "other"}, {mark.key for mark in clouds.SPOT_MARKS}),
        (set(), {mark.key for mark in clouds.SPOT_MARKS}),
    ],
    ids=["AWS", "Azure", "AWS and others", "none seen"],
)
def test_spot_is_preferred_by_the_marks_that_nodes_of_these_clouds_carry(
    providers: set[str], labels: set[str]
) -> None:
    """Each preference is compared with each node, and stored with each pod."""
    node = rendered(providers=frozenset(providers))["spec"]["affinity"]["nodeAffinity"]
    terms = node["preferredDuringSchedulingIgnoredDuringExecution"]
    assert {term["preference"]["matchExpressions"][0]["key"] for term in terms} == labels


def test_what_is_required_names_every_clouds_marks_whatever_nodes_there_are() -> None:
    """A node of another cloud may join while the worker waits, and nothing mends a requirement."""
    for ask in (clouds.Ask.ONLY_SPOT, clouds.Ask.ON_DEMAND):
        known, unknown = (rendered(ask=ask, providers=one) for one in (frozenset({"gcp"}), frozenset()))
        assert required_terms(known) == required_terms(unknown)


def test_a_floor_worker_has_no_preference_among_pools() -> None:
    pool = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5.xlarge")
    one = rendered(resting=(pool,), preferred=(pool,), ask=clouds.Ask.ON_DEMAND)
    node = one["spec"]["affinity"]["nodeAffinity"]
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in node


@pytest.mark.parametrize(
    "command", [["sh", "-c", "cd /app && python train.py"], ["/bin/bash", "run"], ["/app/run.sh"]], ids=str
)
def test_b01_a_container_whose_command_is_a_shell_passes_sigterm_on(command: list[str]) -> None:
    lifecycle = {"postStart": {"exec": {"command": ["true"]}}}
    containers = [{"name": "c", "image": "i", "command": command, "lifecycle": lifecycle}]
    (one,) = rendered({"containers": containers})["spec"]["containers"]
    assert one["lifecycle"] == {
        **lifecycle,
        "preStop": {"exec": {"command": ["sh", "-c", shells.HAND_DOWN]}},
    }


@pytest.mark.parametrize(
    ("container", "pod"),
    [
        ({"command": ["python", "train.py"]}, {}),
        ({}, {}),
        ({"command": ["sh"]}, {"shareProcessNamespace": True}),
        ({"command": ["sh"]}, {"hostPID": True}),
    ],
    ids=["a program", "the image's own command", "PID 1 is the pod's", "PID 1 is the machine's"],
)
def test_b01_other_containers_get_no_hook(container: dict[str, Any], pod: dict[str, Any]) -> None:
    containers = [{"name": "c", "image": "i", **container}]
    assert "lifecycle" not in rendered({**pod, "containers": containers})["spec"]["containers"][0]


def test_b01_a_hook_of_the_templates_own_is_left_alone() -> None:
    own = {"preStop": {"exec": {"command": ["save"]}}}
    containers = [{"name": "c", "image": "i", "command": ["sh"], "lifecycle": own}]
    assert rendered({"containers": containers})["spec"]["containers"][0]["lifecycle"] == own
