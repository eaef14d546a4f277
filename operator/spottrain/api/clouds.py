"""How each cloud marks spot nodes, and how long its notice is.

Sources: the providers' public documentation and the open-source handlers named beside each entry. Clouds
change these yearly, so the operator takes further labels from its settings.
"""

import collections.abc as cabc
import dataclasses
import enum


class Capacity(enum.StrEnum):
    """What a node is bought as. UNKNOWN never fills a floor."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    NOT_SPOT = "not-spot"
    """Reserved or otherwise bought capacity that no cloud reclaims."""
    UNKNOWN = "unknown"

    @property
    def fills_floor(self) -> bool:
        """A worker on such a node counts for `onDemandFloor`."""
        return self in {Capacity.ON_DEMAND, Capacity.NOT_SPOT}


class Ask(enum.StrEnum):
    """What a worker is asked to run on, each firmer than the one before; its pod's label says it."""

    ONLY_SPOT = "only-spot"
    """On spot nodes alone."""
    SPOT = "spot"
    """Rather on spot nodes, and on any others where there is no room on those."""
    ON_DEMAND = "on-demand"
    """On nodes that fill a floor alone."""

    def exceeds(self, other: "Ask") -> bool:
        """It is firmer about on-demand than the other one."""
        order = tuple(Ask)
        return order.index(self) > order.index(other)


@dataclasses.dataclass(frozen=True)
class Mark:
    """A node label with one of some values. `provider`: whose nodes alone carry it; empty: anybody's."""

    key: str
    values: tuple[str, ...]
    provider: str = ""

    def on(self, labels: cabc.Mapping[str, str]) -> bool:
        """The labels carry this mark."""
        return labels.get(self.key) in self.values


OTHER = "other"
"""The provider of a node that no known cloud has made."""
KARPENTER = "karpenter.sh/capacity-type"
"""The label by which Karpenter tells how a node was bought."""
SPOT_MARKS = (
    Mark(KARPENTER, ("spot",)),  # Karpenter on every cloud, EKS Auto, AKS NAP
    Mark("eks.amazonaws.com/capacityType", ("SPOT",), "aws"),  # EKS managed node groups
    Mark("cloud.google.com/gke-spot", ("true",), "gcp"),
    Mark("cloud.google.com/gke-preemptible", ("true",), "gcp"),
    Mark("cloud.google.com/gke-provisioning", ("spot", "preemptible"), "gcp"),
    Mark("kubernetes.azure.com/scalesetpriority", ("spot",), "azure"),
    Mark("oci.oraclecloud.com/oke-is-preemptible", ("true",), "oci"),
    Mark("together.ai/compute-class", ("preemptible",), OTHER),
)
ON_DEMAND_MARKS = (
    Mark(KARPENTER, ("on-demand",)),
    Mark("eks.amazonaws.com/capacityType", ("ON_DEMAND",), "aws"),
)
NOT_SPOT_MARKS = (Mark(KARPENTER, ("reserved",)),)

SPOT_TAINT_KEYS = (
    KARPENTER,  # set by hand on Karpenter pools, by custom of many clusters
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-preemptible",
    "kubernetes.azure.com/scalesetpriority",
    "oci.oraclecloud.com/oke-is-preemptible",
    "qos.coreweave.cloud/interruptable",  # NoExecute: without a toleration pods die there
)

PROVIDERS = {"aws": "aws", "azure": "azure", "gce": "gcp", "oci": "oci", "coreweave": "coreweave"}
"""Scheme of `spec.providerID` → the provider's name in metrics and status."""

MARKS_ALL_SPOT = frozenset({"gcp", "azure"})
"""Providers whose managed clusters mark every spot node, so that a node without a mark is on-demand."""

WINDOWS = {"aws": 120.0, "azure": 30.0, "gcp": 15.0}
"""Seconds of notice a pod gets. GKE gives ordinary pods 15 of its 30 s; pools may be set to more."""
DEFAULT_WINDOW = 30.0
LEAST_MARGIN = 2.0
MARGIN_SHARE = 0.05


def usable(window: float) -> float:
    """Seconds of a window that a grace may take: a margin is left at its end."""
    return max(0.0, window - max(LEAST_MARGIN, MARGIN_SHARE * window))


def provider(provider_id: str) -> str:
    """The cloud of a node from its `spec.providerID`; `other` when there is none or it is unknown."""
    return PROVIDERS.get(provider_id.partition("://")[0], OTHER)


def that_occur(marks: tuple[Mark, ...], providers: cabc.Set[str]) -> tuple[Mark, ...]:
    """The marks that nodes of these providers may carry: all, where not every provider is known."""
    if not providers or OTHER in providers:
        return marks
    return tuple(mark for mark in marks if not mark.provider or mark.provider in providers)


def capacity(
    labels: cabc.Mapping[str, str],
    provider_id: str,
    *,
    spot: tuple[Mark, ...] = (),
    on_demand: tuple[Mark, ...] = (),
) -> Capacity:
    """What a node is bought as, from labels and provider; `spot`, `on_demand`: the site's own marks."""
    if any(mark.on(labels) for mark in (*spot, *SPOT_MARKS)):
        return Capacity.SPOT
    if any(mark.on(labels) for mark in (*on_demand, *ON_DEMAND_MARKS)):
        return Capacity.ON_DEMAND
    if any(mark.on(labels) for mark in NOT_SPOT_MARKS):
        return Capacity.NOT_SPOT
    if provider(provider_id) in MARKS_ALL_SPOT:
        return Capacity.ON_DEMAND
    return Capacity.UNKNOWN
