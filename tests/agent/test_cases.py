"""Single clouds in bad weather; the letters and numbers stand for faults that others met in public."""

import datetime as dt
import socket

import pytest

from lab import clock, fakes
from spottrain.api import duration
from tests.agent import mock, plane
from tests.agent.conftest import Agent, StartAgent, soon


def armed(agent: Agent) -> None:
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)


def test_c1_a_hidden_key_is_blindness_and_no_quiet(api: plane.Plane, start_agent: StartAgent):
    """Told by readiness, metric, condition and one Event; over when the key is there."""
    fake = fakes.Google()
    fake.values["preempted"] = None
    with fakes.running(fake):
        agent = start_agent("gcp", fake.url)
        blind = "spottrain_agent_blind"
        clock.wait_for("blindness", lambda: agent.metric(blind, source="gcp-preempted") == 1, seconds=60)
        clock.wait_for("the condition", lambda: api.condition().get("reason") == "Blind", seconds=3)
        assert not agent.ready
        assert agent.get("/healthz") == "ok"
        assert agent.metric("spottrain_agent_armed") == 0
        assert api.reasons() == ["NoticesUnheard"]
        assert "404" in api.condition()["message"]

        fake.set("preempted", "FALSE")
        clock.wait_for("ready", lambda: agent.ready, seconds=6)
        assert agent.metric(blind, source="gcp-preempted") == 0
        clock.wait_for("the condition", lambda: api.condition()["status"] == "True", seconds=3)
        assert api.mark() is None


def test_c2_gcp_is_asked_by_a_request_that_hangs_and_the_mark_comes_at_once(
    api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Google()
    with fakes.running(fake):
        armed(start_agent("gcp", fake.url))
        clock.wait_for("a request that hangs", lambda: hanging(fake) == 1, seconds=3)
        clock.poll(lambda: hanging(fake) > 1, seconds=3)
        assert hanging(fake) == 1

        fake.set("preempted", "TRUE")
        clock.wait_for("the mark", api.mark, seconds=1, every=0.02)


def test_c2_a_cut_request_is_armed_again_within_a_second(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Google()
    with fakes.running(fake):
        armed(start_agent("gcp", fake.url))
        clock.wait_for("a request that hangs", lambda: hanging(fake) == 1, seconds=3)

        fake.cut()
        clock.wait_for("another one", lambda: hanging(fake) == 2, seconds=1, every=0.02)
        fake.set("preempted", "TRUE")
        clock.wait_for("the mark", api.mark, seconds=1, every=0.02)


def hanging(fake: fakes.Google) -> int:
    asked = [one for one in list(fake.asked) if one.path.endswith("/preempted")]
    return sum(one.query.get("wait_for_change") == "true" for one in asked)


@pytest.mark.parametrize("told_ttl", [2, 21600], ids=["as-told", "sooner-than-told"])
def test_c3_an_expired_token_is_renewed_and_the_same_look_goes_on(
    told_ttl: int, api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Imds(ttl=2, told_ttl=told_ttl)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        armed(agent)
        clock.wait_for("the third token of each source", lambda: fake.tokens >= 6, seconds=20)
        fake.give_notice(soon(120))
        clock.wait_for("the mark", api.mark, seconds=5)

        assert agent.metric("spottrain_agent_errors_total") == 0
        assert fake.without_token == 0
        assert bool(fake.unauthorized) == (told_ttl > 2)


@pytest.mark.slow
def test_c3_refused_tokens_are_blindness_and_nothing_is_asked_without_one(
    api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Imds(refuses_tokens=True)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        clock.wait_for("blindness", lambda: api.condition().get("reason") == "Blind", seconds=40)

        assert not agent.ready
        assert {one.path for one in fake.asked} == {"/latest/api/token"}
        assert "403" in api.condition()["message"]


@pytest.mark.slow
def test_a_hop_limit_of_one_is_blindness_that_names_it(api: plane.Plane, start_agent: StartAgent):
    """The answer with the token is lost on its way; the agent lives and asks for nothing without one."""
    fake = fakes.Imds(hop_limit=1)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        clock.wait_for("blindness", lambda: api.condition().get("reason") == "Blind", seconds=50)

        assert "timed out" in api.condition()["message"]
        assert {one.path for one in list(fake.asked)} == {"/latest/api/token"}
        assert agent.get("/healthz") == "ok"


@pytest.mark.slow
def test_a_blocked_metadata_service_is_blindness(api: plane.Plane, start_agent: StartAgent):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # and nobody listens there
        agent = start_agent("azure", f"http://127.0.0.1:{probe.getsockname()[1]}")
        clock.wait_for("blindness", lambda: api.condition().get("reason") == "Blind", seconds=45)

    assert "refused" in api.condition()["message"]
    assert agent.get("/healthz") == "ok"
    assert api.reasons() == ["NoticesUnheard"]


@pytest.mark.parametrize("skew", [-90, 90])
def test_a_node_whose_clock_is_wrong_counts_by_the_api_servers(
    skew: int, api: plane.Plane, start_agent: StartAgent
):
    """By its own a worker would get a minute and a half too much, or no time at all."""
    api.clock_skew = skew
    api.add_pod("tr-0-a", grace=600)
    fake = fakes.Azure()
    with fakes.running(fake):
        armed(start_agent("azure", fake.url))
        fake.give_notice(soon(30 + skew))
        clock.wait_for("the worker deleted", lambda: api.deletions, seconds=8)

    ((_, body),) = api.deletions[:1]
    assert 14 <= body["gracePeriodSeconds"] <= 28


def test_c5_a_page_in_place_of_a_token_is_a_fault_that_passes(api: plane.Plane, start_agent: StartAgent):
    """As a captive proxy sends; it is no word that could be sent back as a header."""
    fake = fakes.Imds()
    fake.watched = "token"
    fake.faults.extend([fakes.Reply(200, "<html>\n<p>caf\u00e9</p>\n</html>")] * 4)
    with fakes.running(fake):
        agent = start_agent("aws", fake.url)
        armed(agent)
        assert agent.get("/healthz") == "ok"
        fake.give_notice(soon(60))
        clock.wait_for("the mark", api.mark, seconds=5)


BAD = (
    *[fakes.Reply(503)] * 5,
    fakes.Reply(200, ""),
    fakes.Reply(200, '{"action":'),
    fakes.RESET,
)


@pytest.mark.parametrize("make", [fakes.Imds, fakes.Azure], ids=["aws", "azure"])
def test_c5_bad_answers_in_a_row_are_counted_and_the_notice_after_them_is_heard(
    make: type[fakes.Imds | fakes.Azure], api: plane.Plane, start_agent: StartAgent
):
    fake = make()
    fake.faults.extend(BAD)
    with fakes.running(fake):
        agent = start_agent(fake.provider, fake.url)
        clock.wait_for("all faults told", lambda: not fake.faults, seconds=40)
        clock.wait_for("quiet again", lambda: agent.ready, seconds=8)
        assert agent.metric("spottrain_agent_errors_total") == len(BAD)
        assert api.mark() is None

        fake.give_notice(soon(60))
        clock.wait_for("the mark", api.mark, seconds=5)


def test_too_many_requests_slow_the_agent_down(api: plane.Plane, start_agent: StartAgent):
    """Each try waits twice as long as the one before, up to four seconds; a notice after them is heard."""
    fake = fakes.Alibaba()
    fake.faults.extend([fakes.Reply(429)] * 100)
    with fakes.running(fake):
        agent = start_agent("alibaba", fake.url)
        clock.poll(lambda: len(fake.asked) > 6, seconds=6)

        assert 3 <= len(fake.asked) <= 6
        assert agent.get("/healthz") == "ok"
        fake.faults.clear()
        fake.give_notice(soon(60))
        clock.wait_for("the mark", api.mark, seconds=6)


def test_c9_a_rebalance_recommendation_stops_nobody(
    api: plane.Plane, start_agent: StartAgent, ec2: mock.Ec2Mock
):
    """It is told and counted; what is left on the Node keeps nobody off it (test_hints.py)."""
    ec2.recommend(soon(-5))
    api.add_pod("tr-0-a")
    agent = start_agent("aws", ec2.url)
    clock.wait_for("the Event", lambda: api.reasons() == ["ReclaimHint"], seconds=10)
    clock.poll(lambda: api.mark() or api.deletions, seconds=4)

    assert api.mark() is None
    assert api.deletions == []
    assert [one["key"] for one in api.taints()] == ["nvidia.com/gpu"]
    assert agent.metric("spottrain_agent_notices_total", cause="Rebalance") == 1
    assert agent.ready


def test_c9_a_recommendation_of_long_ago_says_nothing(
    api: plane.Plane, start_agent: StartAgent, ec2: mock.Ec2Mock
):
    ec2.recommend(soon(-3600))
    armed(start_agent("aws", ec2.url))
    clock.poll(api.reasons, seconds=6)

    assert api.reasons() == []


FAR = dt.timedelta(minutes=10)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("Preempt", "Preempted"),
        ("Terminate", "Terminated"),
        ("Redeploy", "Redeployed"),
        ("Reboot", "Rebooted"),
        ("Freeze", None),
    ],
)
@pytest.mark.parametrize("started", [False, True], ids=["scheduled", "started"])
def test_c10_azure_events_that_end_the_machine_are_notices_and_a_freeze_is_none(
    kind: str, cause: str | None, started: bool, api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Azure()
    with fakes.running(fake):
        armed(start_agent("azure", fake.url))
        fake.set(fakes.event(kind, None if started else soon(0) + FAR))

        mark = clock.poll(api.mark, seconds=3)

        assert (mark or {}).get("cause") == cause
        assert len(api.taints()) == (2 if cause else 1)
        assert {one.method for one in fake.asked} == {"GET"}


def test_c10_an_event_of_another_machine_is_not_ours(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Azure()
    fake.set(fakes.event("Preempt", soon(30), machine="vm1"))
    with fakes.running(fake):
        armed(start_agent("azure", fake.url))
        clock.poll(api.mark, seconds=2)

        assert api.mark() is None


def test_an_event_that_starts_keeps_the_deadline_it_was_scheduled_for(
    api: plane.Plane, start_agent: StartAgent
):
    fake = fakes.Azure()
    deadline = soon(30)
    fake.set(fakes.event("Preempt", deadline))
    with fakes.running(fake):
        start_agent("azure", fake.url)
        first = clock.wait_for("the mark", api.mark, seconds=10)
        fake.set(fakes.event("Preempt", None))
        clock.poll(lambda: api.mark() != first, seconds=3)

        assert api.mark() == first
        assert api.reasons() == ["ReclaimNotice"]


def test_a_notice_that_overtakes_another_takes_over_its_mark(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Azure()
    reboot = fakes.event("Reboot", soon(900), id="e1")
    fake.set(reboot)
    with fakes.running(fake):
        agent = start_agent("azure", fake.url)
        clock.wait_for("the mark", api.mark, seconds=10)
        fake.set(reboot, fakes.event("Preempt", soon(30), id="e2"))

        clock.wait_for("the other mark", lambda: (api.mark() or {}).get("event") == "e2", seconds=3)
        clock.wait_for("both told", lambda: len(api.reasons()) == 2, seconds=3)
        assert agent.metric("spottrain_agent_notices_total", cause="Preempted") == 1


def test_c12_the_first_answer_of_azure_may_take_minutes(api: plane.Plane, start_agent: StartAgent):
    """Longer than any other answer may; the agent lives, isn't ready, and hears what the answer says."""
    fake = fakes.Azure()
    fake.awake.clear()
    fake.set(fakes.event("Preempt", soon(40)))
    with fakes.running(fake):
        agent = start_agent("azure", fake.url)
        clock.wait_for("the agent alive", lambda: agent.get("/healthz") == "ok", seconds=5)
        clock.poll(lambda: agent.ready, seconds=8)
        assert not agent.ready
        assert api.condition()["reason"] == "Starting"
        assert len(fake.asked) == 1

        fake.awake.set()
        clock.wait_for("the mark", api.mark, seconds=5)
        clock.wait_for("ready", lambda: agent.ready, seconds=5)
        assert agent.metric("spottrain_agent_errors_total") == 0


def test_a_cloud_without_notices_is_said_to_be_one(api: plane.Plane, start_agent: StartAgent):
    agent = start_agent("none", "")
    clock.wait_for("the condition", lambda: api.condition().get("reason") == "NoNotices", seconds=5)

    assert agent.ready
    assert agent.metric("spottrain_agent_armed") == 0


def test_a_worker_that_cannot_be_deleted_keeps_no_other_from_it(api: plane.Plane, start_agent: StartAgent):
    api.protected = {"first"}
    api.add_pod("first")
    api.add_pod("second")
    fake = fakes.Alibaba()
    fake.give_notice(soon(60))
    with fakes.running(fake):
        agent = start_agent("alibaba", fake.url)
        clock.wait_for("both tried", lambda: {"first", "second"} <= {n for n, _ in api.deletions}, seconds=6)

        assert agent.metric("spottrain_agent_pods_deleted_total") == 1
        assert agent.get("/healthz") == "ok"


def test_a_notice_without_a_time_counts_from_when_it_was_heard_though_nobody_could_be_told(
    api: plane.Plane, start_agent: StartAgent
):
    """From the start on there is no API server; Google's 15 seconds run all the same."""
    api.cut_off = True
    fake = fakes.Google()
    fake.give_notice(soon(15))
    heard = soon(0)
    with fakes.running(fake):
        start_agent("gcp", fake.url)
        clock.wait_for("the notice heard", lambda: hanging(fake), seconds=5)
        clock.poll(lambda: False, seconds=4)
        api.cut_off = False
        mark = clock.wait_for("the mark", api.mark, seconds=5)

        assert (duration.parse_time(mark["deadline"]) - heard).total_seconds() <= 15 + 2


@pytest.mark.slow
def test_faults_that_vary_are_not_written_to_the_node_each_time(api: plane.Plane, start_agent: StartAgent):
    fake = fakes.Alibaba()
    fake.faults.extend([fakes.Reply(500), fakes.RESET, fakes.Reply(200, "?")] * 99)
    with fakes.running(fake):
        agent = start_agent("alibaba", fake.url)
        clock.wait_for("blindness", lambda: api.condition().get("reason") == "Blind", seconds=45)
        before = len(api.patches)
        clock.poll(lambda: len(api.patches) > before, seconds=9)

        assert len(api.patches) == before
        assert api.reasons() == ["NoticesUnheard"]
        assert not agent.ready
