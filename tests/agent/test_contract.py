"""What holds on every cloud: from its metadata service to the Node, its Events and its pods."""

import datetime as dt
from collections.abc import Iterator
from typing import Protocol

import pytest

from lab import clock, fakes
from spottrain.agent import providers
from spottrain.api import duration, names
from tests.agent import mock, plane
from tests.agent.conftest import StartAgent, soon


class Cloud(Protocol):
    """A metadata service that can be told what to say."""

    @property
    def provider(self) -> str: ...

    @property
    def cause(self) -> str: ...

    @property
    def names_deadline(self) -> bool: ...

    @property
    def url(self) -> str: ...

    def quiet(self) -> None: ...

    def give_notice(self, deadline: dt.datetime) -> None: ...


@pytest.fixture(params=["aws", "gcp", "azure", "alibaba"])
def cloud(request: pytest.FixtureRequest, ec2: mock.Ec2Mock) -> Iterator[Cloud]:
    """AWS is the public amazon-ec2-metadata-mock, the others are ours."""
    if request.param == "aws":
        ec2.quiet()
        yield ec2
        return
    fake = {"gcp": fakes.Google, "azure": fakes.Azure, "alibaba": fakes.Alibaba}[request.param]()
    with fakes.running(fake):
        yield fake


def test_a_notice_marks_the_node_with_cause_deadline_and_event(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent(cloud.provider, cloud.url)
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
    assert api.mark() is None

    deadline = soon(120)
    cloud.give_notice(deadline)
    mark = clock.wait_for("the mark", api.mark, seconds=5)

    assert mark["cause"] == cloud.cause
    assert mark["event"]
    if cloud.names_deadline:
        assert duration.parse_time(mark["deadline"]) == deadline
    else:
        assert 5 < (duration.parse_time(mark["deadline"]) - soon(0)).total_seconds() <= 15
    taint = {"key": names.TAINT_RECLAIM, "value": cloud.cause, "effect": "NoSchedule"}
    assert api.taints() == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, taint]
    assert api.node is not None
    assert api.node["metadata"]["annotations"]["other"] == "stays"


def test_the_provider_is_found_by_asking_where_nothing_else_tells(cloud: Cloud):
    assert providers.by_asking(cloud.url) == cloud.provider


def test_a_notice_is_told_and_counted_once_also_after_a_restart(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent(cloud.provider, cloud.url)
    cloud.give_notice(soon(120))
    clock.wait_for("the count", lambda: agent.metric("spottrain_agent_notices_total") == 1, seconds=10)
    first = clock.wait_for("the mark", api.mark, seconds=5)
    agent.stop()

    again = start_agent(cloud.provider, cloud.url)
    clock.wait_for("ready again", lambda: again.ready, seconds=10)
    clock.poll(lambda: len(api.reasons()) > 1, seconds=2)

    assert api.reasons() == ["ReclaimNotice"]
    assert again.metric("spottrain_agent_notices_total") == 0
    assert api.mark() == first


def test_c10_a_withdrawn_notice_leaves_no_mark(cloud: Cloud, api: plane.Plane, start_agent: StartAgent):
    agent = start_agent(cloud.provider, cloud.url)
    cloud.give_notice(soon(120))
    clock.wait_for("the mark", api.mark, seconds=5)

    cloud.quiet()
    clock.wait_for("the mark gone", lambda: api.mark() is None, seconds=50)

    assert [one["key"] for one in api.taints()] == ["nvidia.com/gpu"]
    assert agent.ready


def test_c13_workers_that_nobody_stops_are_deleted_within_the_window(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    """And what is no worker, or on another node, is left alone."""
    api.add_pod("tr-0-a", grace=600)
    api.add_pod("short", grace=3)
    api.add_pod("elsewhere", node="n2")
    api.add_pod("other", job=None)
    start_agent(cloud.provider, cloud.url, margin=5.0)

    deadline = soon(30)
    cloud.give_notice(deadline)
    clock.wait_for("both deleted", lambda: len(api.deletions) == 2, seconds=6)

    graces = {name: body["gracePeriodSeconds"] for name, body in api.deletions}
    assert graces.keys() == {"tr-0-a", "short"}
    assert graces["short"] == 3
    assert 1 <= graces["tr-0-a"] <= (deadline - soon(-1)).total_seconds() - 5
    if cloud.names_deadline:
        assert graces["tr-0-a"] >= 18


def test_a_worker_that_the_operator_lets_train_is_stopped_when_that_time_is_over_and_it_was_not(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    """The operator may be gone by then. One whose moment leaves no time to save is stopped now."""
    for name, until in (("trains", soon(6)), ("too-long", soon(600)), ("broken", None)):
        api.add_pod(name)
        moment = "soon" if until is None else duration.format_time(until)
        api.pods[name]["metadata"]["annotations"] = {names.ANNOTATION_TRAIN_UNTIL: moment}
    start_agent(cloud.provider, cloud.url, window=14.0)
    cloud.give_notice(soon(14))

    clock.wait_for("the broken one's end", lambda: api.deletions, seconds=5)
    assert {name for name, _ in api.deletions} == {"broken"}
    clock.wait_for("the others' end", lambda: len(api.deletions) == 3, seconds=12)

    graces = {name: body["gracePeriodSeconds"] for name, body in api.deletions}
    assert min(graces.values()) >= 3


def test_workers_that_the_operator_has_stopped_are_left_to_it(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    api.add_pod("tr-0-a")
    api.pods["tr-0-a"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    start_agent(cloud.provider, cloud.url)
    cloud.give_notice(soon(60))
    clock.wait_for("the mark", api.mark, seconds=5)

    clock.poll(lambda: api.deletions, seconds=4)

    assert api.deletions == []


def test_an_api_server_out_of_reach_at_the_notice_is_tried_again_within_the_window(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent(cloud.provider, cloud.url)
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
    api.add_pod("tr-0-a")
    api.cut_off = True
    cloud.give_notice(soon(60))
    clock.poll(lambda: False, seconds=3)

    api.cut_off = False

    clock.wait_for("the mark", api.mark, seconds=4)
    clock.wait_for("the worker deleted", lambda: api.deletions, seconds=2)


def test_c7_a_node_that_is_gone_is_not_made_and_gets_the_mark_when_it_is_back(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent, caplog: pytest.LogCaptureFixture
):
    agent = start_agent(cloud.provider, cloud.url)
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
    api.node = None
    cloud.give_notice(soon(60))
    clock.wait_for("word of it", lambda: plane.NODE in caplog.text and "404" in caplog.text, seconds=6)

    assert agent.get("/healthz") == "ok"
    assert api.created_nodes == 0

    api.node = plane.new_node("uid-2")
    clock.wait_for("the mark", api.mark, seconds=5)


def test_a_node_that_others_write_at_the_same_moment_is_marked_all_the_same(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    agent = start_agent(cloud.provider, cloud.url)
    clock.wait_for("the agent armed", lambda: agent.ready, seconds=10)
    api.conflicts = 3
    cloud.give_notice(soon(60))

    clock.wait_for("the mark", api.mark, seconds=5)

    assert api.conflicts == 0


def test_a_mark_of_someone_else_is_left_where_the_cloud_says_nothing(
    cloud: Cloud, api: plane.Plane, start_agent: StartAgent
):
    assert api.node is not None
    api.node["metadata"]["annotations"][names.ANNOTATION_RECLAIM] = '{"cause": "drill"}'
    agent = start_agent(cloud.provider, cloud.url)
    clock.wait_for("the condition", lambda: api.condition().get("status") == "True", seconds=10)

    assert api.mark() == {"cause": "drill"}
    assert agent.ready
