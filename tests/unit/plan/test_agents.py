"""Where nobody would hear a notice, the job says so; where agents aren't wanted, it doesn't."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from spottrain.api import clouds, conditions
from spottrain.plan import agents
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

MINUTE = dt.timedelta(minutes=1)


def cluster(*, installed: bool = True, **changes: object) -> virtual.Cluster:
    """A gang of three on old spot nodes of AWS whose agents are armed, but for these changes of node n1."""
    one = virtual.Cluster(settings=snap.Settings(agents=installed))
    old = one.now - 60 * MINUTE
    for name, node in one.nodes.items():
        one.nodes[name] = dataclasses.replace(
            node, provider="aws", created=old, listens="Armed", listened=one.now
        )
    one.change_node("n1", **changes)
    return one.running()


def said(one: virtual.Cluster) -> conditions.Condition | None:
    return conditions.find(one.status.conditions, conditions.NOTICES_HEARD)


def warnings(one: virtual.Cluster) -> list[str]:
    return [event.message for event in one.events if event.reason == conditions.AGENT_MISSING]


def test_c15_a_spot_node_without_an_agent_is_said_once_with_the_way_to_see_why() -> None:
    one = cluster(listens="", listened=None)
    one.pass_time(60)
    one.settle()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (False, "AgentMissing")
    assert found.message == (
        "2 of 3 spot nodes that its workers run on have an agent that hears notices, and without warning go "
        "n1 (no agent): `kubectl get pods -A -o wide -l app.kubernetes.io/component=agent` and the chart's "
        "agent.nodeSelector say why"
    )
    assert warnings(one) == [found.message]


def test_c15_no_agent_at_all_is_0_of_n() -> None:
    one = cluster()
    for name in one.nodes:
        one.change_node(name, listens="", listened=None)
    one.settle()

    found = said(one)
    assert found is not None
    assert found.message.startswith("0 of 3 spot nodes that its workers run on have an agent")


def test_where_all_are_armed_nothing_is_said() -> None:
    assert said(cluster()) is None


def test_where_agents_are_not_installed_nothing_is_said() -> None:
    assert said(cluster(installed=False, listens="", listened=None)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"capacity": clouds.Capacity.ON_DEMAND},
        {"provider": "other"},
        {"created": virtual.EPOCH - MINUTE},
    ],
    ids=["on-demand", "no-notices", "just-joined"],
)
def test_no_agent_is_missed_on_such_a_node(changes: dict[str, Any]) -> None:
    assert said(cluster(listens="", listened=None, **changes)) is None


def test_a_node_that_has_just_joined_is_looked_at_again() -> None:
    one = cluster(listens="", listened=None, created=virtual.EPOCH - MINUTE)
    assert one.wake == 120
    one.pass_time(120)
    one.settle()

    assert said(one) is not None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"listens": "Blind"}, "n1 (Blind)"),
        ({"listens": "NoNotices"}, "n1 (NoNotices)"),
        ({"listened": virtual.EPOCH - 20 * MINUTE}, "n1 (silent)"),
    ],
)
def test_an_agent_that_hears_nothing_is_as_good_as_none(changes: dict[str, Any], why: str) -> None:
    found = said(cluster(**changes))
    assert found is not None
    assert why in found.message


def test_it_is_taken_back_when_the_agent_hears_again() -> None:
    one = cluster(listens="Blind")
    one.change_node("n1", listens="Armed", listened=one.now)
    one.settle()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (True, "AgentsListen")


def no_cloud() -> virtual.Cluster:
    """All three agents are installed and know no cloud."""
    return cluster_of(provider="other", listens="NoNotices")


def cluster_of(**changes: object) -> virtual.Cluster:
    """As `cluster`, with the changes of every node."""
    one = cluster()
    for name in one.nodes:
        one.change_node(name, **changes)
    one.settle()
    return one


def test_agents_that_know_no_cloud_hear_nothing_and_nothing_is_wrong() -> None:
    one = no_cloud()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (None, "NoCloud")
    assert found.message == (
        "on 3 of 3 spot nodes that its workers run on the agent knows no cloud to hear notices from "
        "(NoNotices): n1, n2, n3; that such a node is lost is only known when it falls silent. On a cloud "
        "that gives notices, set the chart's agent.provider"
    )
    assert warnings(one) == []


def test_a_node_that_nobody_hears_comes_before_agents_without_a_cloud() -> None:
    one = no_cloud()
    one.change_node("n1", provider="aws", listens="Blind")
    one.settle()

    found = said(one)
    assert found is not None
    assert found.message.startswith("0 of 1 spot nodes that its workers run on have an agent")


def test_a_missing_agent_that_turns_out_to_know_no_cloud_is_not_called_heard() -> None:
    one = cluster(listens="", listened=None)
    one.change_node("n1", provider="other", listens="NoNotices", listened=one.now)
    one.settle()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (None, "NoCloud")


def test_a_cloud_that_is_found_is_heard() -> None:
    one = no_cloud()
    for name in one.nodes:
        one.change_node(name, listens="Armed")
    one.settle()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (True, "AgentsListen")


def test_between_two_attempts_nothing_new_is_said() -> None:
    one = cluster(listens="", listened=None)
    before = said(one)
    one.pods.clear()
    one.step()

    assert said(one) == before


def test_a_job_that_is_on_no_spot_node_any_more_misses_no_agent() -> None:
    one = cluster_of(listens="", listened=None)
    for name in one.nodes:
        one.change_node(name, capacity=clouds.Capacity.ON_DEMAND)
    one.settle()

    found = said(one)
    assert found is not None
    assert (found.status, found.reason) == (None, "NotOnSpot")


def test_only_some_are_named() -> None:
    nodes = [snap.Node(f"n{index}", "u", clouds.Capacity.SPOT, "aws") for index in range(9)]
    assert "n0 (no agent), n1 (no agent), n2 (no agent), …:" in agents._sentence(nodes, 9, virtual.EPOCH)


def test_indexes_that_run_by_themselves_say_it_too() -> None:
    one = virtual.Cluster(virtual.shards(), snap.Settings(agents=True))
    for name in one.nodes:
        one.change_node(name, provider="aws")
    one.running()

    assert said(one) is not None


def test_what_an_agent_says_anew_is_no_change() -> None:
    before = snap.Node("n1", "u", clouds.Capacity.SPOT, "aws", listens="Armed", listened=virtual.EPOCH)
    assert dataclasses.replace(before, listened=virtual.EPOCH + MINUTE) == before
    assert dataclasses.replace(before, listens="Blind") != before
