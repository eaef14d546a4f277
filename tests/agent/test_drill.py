"""A drill on the agent's side: asked for by an annotation, a notice in all, and gone at its end."""

import json

import pytest

from lab import clock, fakes
from spottrain.api import duration, names
from tests.agent import plane
from tests.agent.conftest import StartAgent, soon


def ask(api: plane.Plane, window: float = 20, *, age: float = 0, event: str = "d1") -> None:
    asked = {"id": event, "window": window, "asked": duration.format_time(soon(-age))}
    write(api, json.dumps(asked))


def write(api: plane.Plane, text: str) -> None:
    with api.lock:
        assert api.node is not None
        api.node["metadata"]["annotations"][names.ANNOTATION_DRILL] = text


def annotations(api: plane.Plane) -> plane.Object:
    with api.lock:
        return dict(api.node["metadata"]["annotations"]) if api.node else {}


@pytest.mark.parametrize("provider", ["azure", pytest.param("none", marks=pytest.mark.slow)])
def test_a_drill_is_a_notice_that_says_what_it_is_and_is_over_at_its_end(
    provider: str, api: plane.Plane, start_agent: StartAgent
):
    """Also on a cloud that gives no notices, and where the agent hears late that it has ended the drill."""
    fake = fakes.Azure()
    with fakes.running(fake):
        agent = start_agent(provider, fake.url)
        clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
        api.add_pod("tr-0-a", grace=600)
        ask(api, 10)
        mark = clock.wait_for("the mark", api.mark, seconds=5)
        api.watch_pause = 2.5
        assert (mark["cause"], mark["event"]) == ("Drill", "d1")
        assert 6 <= (duration.parse_time(mark["deadline"]) - soon(0)).total_seconds() <= 10
        assert api.taints()[1:] == [{"key": names.TAINT_RECLAIM, "value": "Drill", "effect": "NoSchedule"}]
        clock.wait_for("the worker deleted", lambda: api.deletions, seconds=5)
        assert 1 <= api.deletions[0][1]["gracePeriodSeconds"] <= 8

        clock.wait_for("its end", lambda: api.mark() is None, seconds=15)
        clock.poll(api.mark, seconds=3)

        assert annotations(api) == {"other": "stays"}
        assert [one["key"] for one in api.taints()] == ["nvidia.com/gpu"]
        assert api.reasons() == ["ReclaimDrill"]
        assert agent.metric("spottrain_agent_notices_total", source="drill", cause="Drill") == 1
        assert agent.metric("spottrain_agent_notices_total") == 1
        assert agent.ready


def test_a_drill_goes_on_and_ends_once_when_the_agent_is_restarted_in_it(
    api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent("none", "")
    ask(api, 12)
    mark = clock.wait_for("the mark", api.mark, seconds=5)
    agent.stop()

    start_agent("none", "")
    clock.poll(lambda: api.mark() != mark, seconds=4)
    assert api.mark() == mark
    clock.wait_for("its end", lambda: api.mark() is None, seconds=15)
    clock.poll(api.mark, seconds=2)

    assert (annotations(api), api.reasons()) == ({"other": "stays"}, ["ReclaimDrill"])


@pytest.mark.slow
def test_a_drill_that_ended_while_no_agent_was_there_is_not_begun_anew(
    api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent("none", "")
    ask(api, 5)
    clock.wait_for("the mark", api.mark, seconds=5)
    agent.stop()
    clock.poll(lambda: False, seconds=5)

    start_agent("none", "")
    clock.wait_for("its end", lambda: api.mark() is None, seconds=5)
    clock.poll(api.mark, seconds=3)

    assert (api.mark(), annotations(api)) == (None, {"other": "stays"})


def test_a_notice_in_the_middle_of_a_drill_takes_its_place_for_good(
    api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Azure()
    with fakes.running(fake):
        start_agent("azure", fake.url)
        ask(api, 8)
        clock.wait_for("the drill", api.mark, seconds=10)
        fake.give_notice(soon(60))
        clock.wait_for("the notice", lambda: (api.mark() or {}).get("cause") == "Preempted", seconds=3)
        changed = clock.poll(lambda: (api.mark() or {}).get("cause") != "Preempted", seconds=9)

        assert not changed
        assert names.ANNOTATION_DRILL not in annotations(api)
        assert sorted(api.reasons()) == ["ReclaimDrill", "ReclaimNotice"]


def test_a_drill_that_is_called_off_is_over(api: plane.Plane, start_agent: StartAgent):
    start_agent("none", "")
    ask(api, 60)
    clock.wait_for("the mark", api.mark, seconds=5)
    with api.lock:
        assert api.node is not None
        del api.node["metadata"]["annotations"][names.ANNOTATION_DRILL]

    clock.wait_for("no mark", lambda: api.mark() is None, seconds=5)


@pytest.mark.parametrize("text", ["now", "{}", '{"id": "d1", "window": -1, "asked": "2999-01-01T00:00:00Z"}'])
def test_what_is_no_drill_is_a_fault_and_no_blindness(text: str, api: plane.Plane, start_agent: StartAgent):
    agent = start_agent("none", "")
    write(api, text)
    errors = "spottrain_agent_errors_total"
    clock.wait_for("the fault", lambda: agent.metric(errors, source="drill", kind="unreadable"), seconds=5)

    assert api.mark() is None
    assert agent.ready


def test_a_drill_of_long_ago_that_nobody_took_up_does_not_come_out_of_the_blue(
    api: plane.Plane, start_agent: StartAgent
):
    ask(api, 20, age=3600)
    agent = start_agent("none", "")
    clock.wait_for("the agent ready", lambda: agent.ready, seconds=5)

    assert clock.poll(api.mark, seconds=4) is None


@pytest.mark.parametrize(
    "line",
    [
        b"<html>\n",
        b"[]\n",
        b"{}\n",
        b'{"type": "ERROR", "object": {"code": 410, "message": "too old"}}\n',
        b'{"type": "ERROR", "object": {}}\n',
    ],
)
def test_an_answer_to_the_watch_that_makes_no_sense_is_a_fault_that_passes(
    line: bytes, api: plane.Plane, start_agent: StartAgent
):
    api.watch_faults.append(line)
    agent = start_agent("none", "")
    errors = "spottrain_agent_errors_total"
    clock.wait_for("the fault", lambda: agent.metric(errors, source="drill") == 1, seconds=5)
    ask(api, 60)

    clock.wait_for("the mark", api.mark, seconds=5)
    assert agent.get("/healthz") == "ok"
