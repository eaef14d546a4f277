"""Nodes, names and the addresses that keep labs apart."""

import itertools

import pytest

from lab import config
from lab.config import Addresses, Config, NodeSpec, Timings
from lab.errors import LabError


def test_node_is_read_from_its_short_form() -> None:
    """What --nodes takes."""
    assert config.parse_node("spot-1=spot/zone-a") == NodeSpec("spot-1", "spot", "zone-a")


@pytest.mark.parametrize(
    "text", ["spot-1", "spot-1=cheap/zone-a", "spot-1=spot", "=spot/zone-a", "a=spot/Zone A"]
)
def test_node_in_another_form_is_refused_with_the_expected_one(text: str) -> None:
    """One sentence that says how to write it."""
    with pytest.raises(LabError, match=r"must be written NAME=on-demand/ZONE|must be 1-20 characters"):
        config.parse_node(text)


def test_what_to_type_names_the_lab_unless_it_is_the_main_one() -> None:
    """A hint can be copied as it stands."""
    assert [config.command(name) for name in ("main", "two")] == ["python -m lab", "python -m lab --name two"]


@pytest.mark.parametrize("name", ["Main", "a_b", "-a", "a-", "1a", "a" * 21, "", "../x"])
def test_name_that_is_no_kernel_object_name_is_refused(name: str) -> None:
    """Names end up in folders, namespaces and certificates."""
    with pytest.raises(LabError, match="must be 1-20 characters"):
        config.check_name(name)


@pytest.mark.parametrize(
    "nodes",
    [tuple(NodeSpec(f"n{i}", "spot", "z") for i in range(101)), (NodeSpec("a", "spot", "z"),) * 2],
    ids=["too many", "twice the same"],
)
def test_impossible_set_of_nodes_is_refused(nodes: tuple[NodeSpec, ...]) -> None:
    """Before anything is started."""
    with pytest.raises(LabError, match=r"at most 100 nodes|used twice: a"):
        config.check(Config(nodes=nodes))


def test_configuration_survives_being_written() -> None:
    """`up` compares what is wanted with what was started."""
    odd = Config(nodes=(NodeSpec("n", "spot", "z"),), timings=Timings(lease=40))
    assert config.from_json(config.to_json(odd)) == odd


@pytest.mark.parametrize(
    ("name", "taken", "slot"),
    [
        ("main", {}, 0),
        ("main", {"other": 1}, 0),
        ("b", {}, 1),
        ("b", {"main": 0, "a": 1, "c": 3}, 2),
        ("c", {"main": 0, "a": 1, "c": 3}, 3),
    ],
    ids=["main", "main after others", "main's is never given away", "lowest free", "kept"],
)
def test_slot_of_a_lab(name: str, taken: dict[str, int], slot: int) -> None:
    """Each lab keeps its slot, new ones take the lowest."""
    assert config.choose_slot(name, taken) == slot


def test_no_slot_left_says_how_to_free_one() -> None:
    """One sentence that says what to do."""
    taken = {f"lab{slot}": slot for slot in range(config.SLOTS)}
    with pytest.raises(LabError, match="remove one with"):
        config.choose_slot("another", taken)


def test_no_two_slots_share_a_network_port_or_name() -> None:
    """Labs run side by side."""
    everything = [
        {
            lab.bridge,
            lab.cgroup,
            lab.veth(0),
            lab.namespace("n"),
            *(str(lab.port(offset)) for offset in range(10)),
        }
        for lab in map(Addresses, range(config.SLOTS))
    ]
    networks = [
        network
        for lab in map(Addresses, range(config.SLOTS))
        for network in (lab.node_network, lab.pod_network, lab.service_network)
    ]
    assert [a & b for a, b in itertools.combinations(everything, 2) if a & b] == []
    assert [(a, b) for a, b in itertools.combinations(networks, 2) if a.overlaps(b)] == []


def test_no_two_machines_share_an_address_and_none_is_in_the_fake_network() -> None:
    """The last machine still has pods of its own."""
    lab = Addresses(0)
    assert len({lab.node(index) for index in range(config.MAX_NODES)}) == config.MAX_NODES
    pods = [type(lab.pod_network)(lab.pods(index)) for index in range(config.MAX_NODES)]
    assert all(
        network.subnet_of(lab.pod_network) and not network.overlaps(lab.fake_network) for network in pods
    )


def test_interface_names_fit_into_the_kernel() -> None:
    """15 characters."""
    longest = Addresses(config.SLOTS - 1)
    assert max(len(name) for name in (longest.bridge, longest.veth(config.MAX_NODES - 1))) <= 15
