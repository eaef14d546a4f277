"""Where a worker may and should run: tolerations, affinity, spread."""

import collections.abc as cabc
import itertools
from typing import Any

from spottrain.api import allowed, clouds, names, spec
from spottrain.plan import actions
from spottrain.plan import snapshot as snap

ZONE = "topology.kubernetes.io/zone"
SPOT_WEIGHT = 80
PACK_WEIGHT = 50
REST_WEIGHT = 100
"""Each way of not being in a pool that rests outweighs being spot: on-demand is preferred to that pool."""
POOL_WEIGHT, POOL_STEP = 100, 5
LISTED_WEIGHT = 75
"""Of the best pool of a list: less than spot, since Karpenter finds the order in the required terms."""
HOME_WEIGHT = 75
AWAY_WEIGHTS = (60, 20, 1)
"""Of the zone in which a gang keeps together, and of the best pools in others: spot there is preferred to a
better pool elsewhere, and spot elsewhere to on-demand there. The steps are large, so that those who find no
room at home keep together too."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NODE_FAULTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
GPU_TAINT = "nvidia.com/gpu"

Object = dict[str, Any]


def tolerations(given: list[Object], *, gpu: bool, node_loss: float) -> list[Object]:
    """The template's own, then ours for keys it doesn't name.

    Every cloud's spot taint, the GPU taint where GPUs are asked for, and a short patience with a node that is
    not ready; without it, admission would add 300 s.
    """
    keys = {one.get("key") for one in given}
    wanted: list[Object] = [{"key": key, "operator": "Exists"} for key in clouds.SPOT_TAINT_KEYS]
    if gpu:
        wanted.append({"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"})
    wanted += [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int(node_loss)}
        for key in NODE_FAULTS
    ]
    return [*given, *(one for one in wanted if one["key"] not in keys)]


def asks_for_gpus(pod_spec: cabc.Mapping[str, Any]) -> bool:
    """Some container limits or requests a GPU resource."""
    containers = itertools.chain(pod_spec.get("containers", ()), pod_spec.get("initContainers", ()))
    resources = [one.get("resources") or {} for one in containers]
    asked = {key for one in resources for part in ("limits", "requests") for key in one.get(part) or {}}
    return any(key in names.GPU_RESOURCES or key.startswith("nvidia.com/") for key in asked)


def home(overlay: actions.Overlay, spot: spec.Spot) -> str:
    """The zone that a packed worker's node affinity names; empty: none, and a pod affinity packs it."""
    return overlay.home if spot.spread is spec.Spread.PACK else ""


def affinity(given: Object, overlay: actions.Overlay, settings: snap.Settings, spot: spec.Spot) -> Object:
    """The template's affinity with ours added: both have to hold.

    Required node terms are ORed, so each of theirs is combined with each of ours.
    """
    node = dict(given.get("nodeAffinity") or {})
    terms = _required(node, overlay, settings, spot.pools)
    zone = home(overlay, spot)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    if terms:
        node[required] = {"nodeSelectorTerms": terms}
    ours = [{"weight": HOME_WEIGHT, "preference": _expressions(_in(ZONE, [zone]))}] if zone else []
    if overlay.ask is not clouds.Ask.ON_DEMAND:
        ours = [
            *_pool_preferences(overlay, settings, LISTED_WEIGHT if spot.pools else POOL_WEIGHT, zone),
            *_spot_preferences(overlay, settings),
            *ours,
            *_rest_preferences(overlay, settings),
        ]
    if ours:
        node[preferred] = [*(node.get(preferred) or ()), *ours]
    return {**given, "nodeAffinity": node} if node else dict(given)


def _required(
    node: Object, overlay: actions.Overlay, settings: snap.Settings, pools: allowed.Entries
) -> list[Object]:
    given = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or [
        {}
    ]
    ours = _capacity_terms(overlay, settings, pools)
    avoid = {"matchFields": _not_on(overlay.avoid)}
    combined = [_both(_both(theirs, term), avoid) for term in ours for theirs in given]
    return [term for term in combined if term]


def _not_on(names: tuple[str, ...]) -> list[Object]:
    """A requirement for each node, as a field selector takes one value alone."""
    return [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]


def _both(left: Object, right: Object) -> Object:
    """A term that holds where both do."""
    keys = ("matchExpressions", "matchFields")
    merged = {key: [*(left.get(key) or ()), *(right.get(key) or ())] for key in keys}
    return {key: value for key, value in merged.items() if value}


def _capacity_terms(
    overlay: actions.Overlay, settings: snap.Settings, pools: allowed.Entries
) -> list[Object]:
    """The nodes that the worker may run on by how they are bought: one of these terms has to hold.

    Their order is for Karpenter. It reads one at a time, and goes on to the next when it can buy nothing
    there; the last one it keeps, and gives up preferences instead, the heaviest first. So its own mark comes
    last, and of a list of pools the best ones come first, and all of them before on-demand.
    """
    places, best = _places(pools), _best_places(overlay.preferred, pools)
    match overlay.ask:
        case clouds.Ask.ON_DEMAND:
            return on_demand_terms(settings)
        case clouds.Ask.ONLY_SPOT:
            karpenter, *others = _spot_terms(settings)
            elsewhere = [_both(mark, place) for mark in others for place in places]
            return [*elsewhere, *best, *(_both(karpenter, place) for place in places)]
        case clouds.Ask.SPOT if pools:
            return [*best, *places, *on_demand_terms(settings)]
        case clouds.Ask.SPOT:
            return [{}]


def _places(pools: allowed.Entries) -> list[Object]:
    """The nodes in these pools, however they are bought."""
    if not pools:
        return [{}]
    return [_expressions(*_at(zones, types)) for zones, types in allowed.rectangles(pools)]


def _best_places(preferred: tuple[snap.Pool, ...], pools: allowed.Entries) -> list[Object]:
    """Of a list of pools those that are preferred, as terms: they allow nothing that the list doesn't."""
    spot = _in(clouds.KARPENTER, ["spot"])
    return [_expressions(spot, *_at([one.zone], [one.instance_type])) for one in preferred if pools]


def _at(zones: list[str], types: list[str]) -> list[Object]:
    """Expressions for one of these zones and one of these instance types; where none is known, any."""
    known = {ZONE: [*filter(None, zones)], INSTANCE_TYPE: [*filter(None, types)]}
    return [_in(key, values) for key, values in known.items() if values]


def on_demand_terms(settings: snap.Settings) -> list[Object]:
    """Nodes that fill a floor: a term per way of knowing, marked so or unmarked where all spot is marked."""
    marks = (*clouds.ON_DEMAND_MARKS, *clouds.NOT_SPOT_MARKS, *settings.on_demand_marks)
    karpenter, *others = [_expressions(_in(key, values)) for key, values in _by_key(marks).items()]
    unmarked = [
        _expressions({"key": key, "operator": "Exists"}, *_not_spot(settings))
        for key in ("cloud.google.com/gke-nodepool", "kubernetes.azure.com/cluster")
    ]
    return [*others, *unmarked, karpenter]


def _spot_terms(settings: snap.Settings, marks: tuple[clouds.Mark, ...] = clouds.SPOT_MARKS) -> list[Object]:
    """Nodes with a spot mark, a term for each label; Karpenter's first."""
    by_key = _by_key((*marks, *settings.spot_marks))
    return [_expressions(_in(key, values)) for key, values in by_key.items()]


def _spot_preferences(overlay: actions.Overlay, settings: snap.Settings) -> list[Object]:
    marks = clouds.that_occur(clouds.SPOT_MARKS, overlay.providers)
    return [{"weight": SPOT_WEIGHT, "preference": term} for term in _spot_terms(settings, marks)]


def _pool_preferences(
    overlay: actions.Overlay, settings: snap.Settings, heaviest: int, zone: str
) -> list[Object]:
    """The best pool weighs most, and comes first: of preferences, Karpenter heeds the heaviest it can meet.

    What is bought otherwise in the same zone is left out as far as it is marked.
    """
    ours = clouds.that_occur((*clouds.ON_DEMAND_MARKS, *clouds.NOT_SPOT_MARKS), overlay.providers)
    marks = (*settings.on_demand_marks, *ours)
    not_bought = [
        {"key": key, "operator": "NotIn", "values": values} for key, values in _by_key(marks).items()
    ]
    terms, away = [], iter(AWAY_WEIGHTS)
    for rank, pool in enumerate(overlay.preferred):
        known = _at([pool.zone], [pool.instance_type])
        weight = next(away) if zone and pool.zone != zone else heaviest - POOL_STEP * rank
        terms.append({"weight": weight, "preference": _expressions(*known, *not_bought)})
    return terms


def _rest_preferences(overlay: actions.Overlay, settings: snap.Settings) -> list[Object]:
    """Another zone, another type, or a node there that isn't spot: one in the pools gets none of the three.

    Of the places outside, spot ones come first, as everywhere.
    """
    resting = overlay.resting
    labels = {ZONE: {one.zone for one in resting}, INSTANCE_TYPE: {one.instance_type for one in resting}}
    known = {key: sorted(values - {""}) for key, values in labels.items()}
    known = {key: values for key, values in known.items() if values}
    terms = [[{"key": key, "operator": "NotIn", "values": values}] for key, values in known.items()]
    if terms:
        marks = clouds.that_occur(clouds.SPOT_MARKS, overlay.providers)
        terms.append([*(_in(key, values) for key, values in known.items()), *_not_spot(settings, marks)])
    return [{"weight": REST_WEIGHT, "preference": _expressions(*one)} for one in terms]


def _not_spot(settings: snap.Settings, marks: tuple[clouds.Mark, ...] = clouds.SPOT_MARKS) -> list[Object]:
    return [
        {"key": mark.key, "operator": "NotIn", "values": list(mark.values)}
        for mark in (*settings.spot_marks, *marks)
    ]


def _by_key(marks: tuple[clouds.Mark, ...]) -> dict[str, list[str]]:
    by_key: dict[str, list[str]] = {}
    for mark in marks:
        by_key.setdefault(mark.key, []).extend(mark.values)
    return by_key


def _in(key: str, values: list[str]) -> Object:
    return {"key": key, "operator": "In", "values": values}


def _expressions(*expressions: Object) -> Object:
    return {"matchExpressions": list(expressions)}


def spread(pod_spec: Object, how: spec.Spread, labels: dict[str, str]) -> Object:
    """The pod spec with the workers that have these labels spread over zones, packed into one, or neither."""
    selector = {"matchLabels": labels}
    if how is spec.Spread.ZONE:
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
        given = pod_spec.get("topologySpreadConstraints") or []
        return {**pod_spec, "topologySpreadConstraints": [*given, constraint]}
    if how is spec.Spread.PACK:
        term = {"weight": PACK_WEIGHT, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": selector}}
        given = dict(pod_spec.get("affinity") or {})
        pods = dict(given.get("podAffinity") or {})
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        pods[preferred] = [*(pods.get(preferred) or ()), term]
        return {**pod_spec, "affinity": {**given, "podAffinity": pods}}
    return pod_spec
