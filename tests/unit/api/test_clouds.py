"""What a node is bought as."""

import pytest

from spottrain.api import clouds


@pytest.mark.parametrize(
    ("labels", "provider_id", "expected"),
    [
        ({"karpenter.sh/capacity-type": "spot"}, "", "spot"),
        ({"karpenter.sh/capacity-type": "on-demand"}, "", "on-demand"),
        ({"karpenter.sh/capacity-type": "reserved"}, "", "not-spot"),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "aws:///z/i", "spot"),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "aws:///z/i", "on-demand"),
        ({"cloud.google.com/gke-spot": "true"}, "gce://p/z/i", "spot"),
        ({"cloud.google.com/gke-preemptible": "true"}, "gce://p/z/i", "spot"),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, "azure:///x", "spot"),
        ({"oci.oraclecloud.com/oke-is-preemptible": "true"}, "", "spot"),
        ({"together.ai/compute-class": "preemptible"}, "", "spot"),
        ({}, "gce://p/z/i", "on-demand"),
        ({}, "azure:///x", "on-demand"),
        ({}, "aws:///z/i", "unknown"),
        ({}, "", "unknown"),
    ],
)
def test_a29_class_of_a_node(labels: dict[str, str], provider_id: str, expected: str) -> None:
    assert str(clouds.capacity(labels, provider_id)) == expected


def test_a29_only_known_capacity_fills_a_floor() -> None:
    fills = {str(one) for one in clouds.Capacity if one.fills_floor}
    assert fills == {"on-demand", "not-spot"}


def test_a_sites_own_marks_are_believed() -> None:
    mark = clouds.Mark("pool", ("cheap",))
    assert clouds.capacity({"pool": "cheap"}, "", spot=(mark,)) is clouds.Capacity.SPOT
    assert clouds.capacity({"pool": "cheap"}, "", on_demand=(mark,)) is clouds.Capacity.ON_DEMAND


def test_a_spot_mark_outweighs_an_on_demand_mark() -> None:
    """A node that any mark calls spot can be taken away."""
    labels = {"karpenter.sh/capacity-type": "on-demand", "cloud.google.com/gke-spot": "true"}
    assert clouds.capacity(labels, "") is clouds.Capacity.SPOT
