"""A hint on the Node: passed on once, and gone when it is over."""

import json

import pytest

from lab import clock, fakes
from spottrain.api import names
from tests.agent import mock, plane
from tests.agent.conftest import StartAgent, soon


def hint(api: plane.Plane) -> plane.Object | None:
    with api.lock:
        annotations = api.node["metadata"].get("annotations", {}) if api.node else {}
        text = annotations.get(names.ANNOTATION_HINT)
    return json.loads(text) if text else None


def recommendation(age: float) -> dict[str, str]:
    return {"noticeTime": f"{soon(-age):%Y-%m-%dT%H:%M:%SZ}"}


def test_c9_a_recommendation_is_passed_on_once_also_over_restarts_and_repetitions(
    api: plane.Plane, start_agent: StartAgent
):
    """Each change of the Node's hint would cost a gang a save."""
    fake = fakes.Imds()
    fake.rebalance = recommendation(60)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        first = clock.wait_for("the hint", lambda: hint(api), seconds=10)
        clock.wait_for("the Event", lambda: api.reasons() == ["ReclaimHint"], seconds=5)
        fake.rebalance = recommendation(0)
        agent.stop()

        again = start_agent("aws", fake.url)
        clock.wait_for("ready again", lambda: again.ready, seconds=10)
        changed = clock.poll(lambda: hint(api) != first or len(api.reasons()) > 1, seconds=8)

        assert not changed
        assert first["cause"] == "Rebalance"
        assert api.mark() is None
        assert [one["key"] for one in api.taints()] == ["nvidia.com/gpu"]


def test_c9_after_its_time_no_trace_of_a_hint_is_left(api: plane.Plane, start_agent: StartAgent):
    """A recommendation is never taken back: after half an hour it has come to nothing."""
    fake = fakes.Imds()
    fake.rebalance = recommendation(30 * 60 - 8)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        clock.wait_for("the hint", lambda: hint(api), seconds=8)
        clock.wait_for("no hint", lambda: hint(api) is None, seconds=12)

        assert api.node is not None
        assert api.node["metadata"]["annotations"] == {"other": "stays"}
        assert agent.ready


@pytest.mark.slow
def test_a_hint_that_ran_out_while_no_agent_was_there_is_taken_away(
    api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Imds()
    fake.rebalance = recommendation(60)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        clock.wait_for("the hint", lambda: hint(api), seconds=10)
        agent.stop()
        fake.rebalance = None

        start_agent("aws", fake.url)
        clock.wait_for("no hint", lambda: hint(api) is None, seconds=15)


def test_a_freeze_asks_for_a_checkpoint_while_it_is_announced(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Azure()
    fake.set(fakes.event("Freeze", soon(900)))
    api.add_pod("tr-0-a")
    with fakes.running(fake):
        start_agent("azure", fake.url)
        found = clock.wait_for("the hint", lambda: hint(api), seconds=10)
        assert (found["cause"], found["event"]) == ("Frozen", "e1")

        fake.quiet()
        clock.wait_for("no hint", lambda: hint(api) is None, seconds=10)
        assert (api.mark(), api.deletions) == (None, [])


def test_a_move_to_another_host_asks_for_a_checkpoint(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Google()
    fake.set("maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
    with fakes.running(fake):
        start_agent("gcp", fake.url)
        found = clock.wait_for("the hint", lambda: hint(api), seconds=10)

        assert found["cause"] == "HostMigration"
        assert api.mark() is None


@pytest.mark.slow
def test_a_hint_is_passed_on_when_the_api_server_is_back(
    api: plane.Plane, start_agent: StartAgent, ec2: mock.Ec2Mock
):
    ec2.quiet()
    agent = start_agent("aws", ec2.url)
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
    api.cut_off = True
    ec2.recommend(soon(-5))
    clock.poll(lambda: False, seconds=8)
    api.cut_off = False

    clock.wait_for("the hint", lambda: hint(api), seconds=5)
