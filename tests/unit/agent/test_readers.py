"""From the bytes of each cloud to notices."""

import datetime as dt
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from spottrain.agent import alibaba, aws, azure, gcp, notice, wire

DEADLINE = dt.datetime(2017, 9, 18, 8, 22, tzinfo=dt.UTC)
GOOGLE = {"metadata-flavor": "Google"}
END = notice.Kind.END


def answer(body: object = "", status: int = 200, headers: dict[str, str] | None = None) -> wire.Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return wire.Answer(status, headers or {}, text.encode())


@pytest.mark.parametrize(
    ("action", "cause"),
    [("terminate", "SpotTermination"), ("stop", "SpotStop"), ("hibernate", "SpotHibernation")],
)
def test_each_action_of_aws_is_a_notice_with_its_time(action: str, cause: str):
    said = answer({"action": action, "time": "2017-09-18T08:22:00Z"})

    assert aws.read_action(said) == (notice.Notice(END, "aws-instance-action", cause, action, DEADLINE),)


def test_nothing_pending_is_no_notice():
    """404 of AWS and Alibaba, FALSE and NONE of GCP, no events of Azure."""
    missing = answer(status=404)

    assert aws.read_action(missing) == aws.read_rebalance(missing) == alibaba.read(missing) == ()
    assert gcp.read_preempted(answer("FALSE\n", headers=GOOGLE), 15) == ()
    assert gcp.read_maintenance(answer("NONE", headers=GOOGLE)) == ()
    assert azure.read(answer({"DocumentIncarnation": 1, "Events": []}), "vm0") == ()


def test_a_rebalance_recommendation_is_a_hint_for_half_an_hour():
    over = DEADLINE + dt.timedelta(minutes=30)
    time = "2017-09-18T08:22:00Z"
    hint = notice.Notice(notice.Kind.HINT, "aws-rebalance", "Rebalance", time, over)

    assert aws.read_rebalance(answer({"noticeTime": time})) == (hint,)


def test_google_names_no_time_so_the_notice_tells_how_long_it_is():
    preempted = notice.Notice(END, "gcp-preempted", "Preempted", "preempted", within=15)

    assert gcp.read_preempted(answer("TRUE", headers=GOOGLE), 15) == (preempted,)
    assert preempted.ends(DEADLINE) == DEADLINE + dt.timedelta(seconds=15)


@pytest.mark.parametrize(
    ("said", "causes"),
    [
        ("TERMINATE_ON_HOST_MAINTENANCE", ["HostMaintenance"]),
        ("MIGRATE_ON_HOST_MAINTENANCE", ["HostMigration"]),
    ],
)
def test_a_migration_and_a_termination_are_told_apart(said: str, causes: list[str]):
    assert [one.cause for one in gcp.read_maintenance(answer(said, headers=GOOGLE))] == causes


def test_the_time_of_alibaba_is_the_deadline():
    found = notice.Notice(END, "alibaba-termination", "Released", "termination-time", DEADLINE)

    assert alibaba.read(answer("2017-09-18T08:22:00Z\n")) == (found,)


def event(**changes: object) -> dict[str, object]:
    return {
        "EventId": "e1",
        "EventType": "Preempt",
        "Resources": ["vmss_0", "other"],
        "EventStatus": "Scheduled",
        "NotBefore": "Mon, 18 Sep 2017 08:22:00 GMT",
    } | changes


def test_azures_time_is_read_and_names_are_compared_without_case():
    found = azure.read(answer({"Events": [event()]}), "VMSS_0")

    assert [(one.cause, one.event, one.deadline) for one in found] == [("Preempted", "e1", DEADLINE)]


def test_an_event_that_has_started_has_no_time_and_ends_soon():
    found = azure.read(answer({"Events": [event(NotBefore="", EventStatus="Started")]}), "vmss_0")

    assert [(one.deadline, one.within) for one in found] == [(None, 10.0)]


def test_an_event_of_an_unknown_type_is_taken_seriously():
    events = [event(EventType="Vanish", EventId="e2")]

    found = azure.read(answer({"Events": events}), "vmss_0")

    assert [(one.kind, one.cause) for one in found] == [(notice.Kind.END, "Other")]


def test_events_without_resources_are_nobodys():
    assert azure.read(answer({"Events": [event(Resources=None)]}), "vmss_0") == ()


AZURE = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute"


@pytest.mark.parametrize(
    ("provider_id", "name"),
    [
        (
            f"{AZURE}/virtualMachineScaleSets/aks-gpu-vmss/virtualMachines/3",
            "aks-gpu-vmss_3",
        ),
        (f"{AZURE}/virtualMachines/vm0", "vm0"),
        ("", ""),
    ],
)
def test_the_machines_name_comes_from_its_provider_id(provider_id: str, name: str):
    assert azure.machine_name(provider_id) == name


KEYS = ["action", "time", "noticeTime", "Events", "EventId", "EventType", "Resources", "NotBefore"]
WORDS = ["terminate", "vm0", "Preempt", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:00", "TRUE"]
UNREADABLE = [
    "",
    "{",
    "[]",
    "null",
    '{"action": "dance"}',
    '{"action": "stop", "time": 7}',
    "[" * 9999,
]


@pytest.mark.parametrize("body", UNREADABLE)
@pytest.mark.parametrize("cloud", ["aws", "aws-rebalance", "gcp", "azure", "alibaba"])
def test_nonsense_is_a_fault_and_never_a_notice_nor_quiet(cloud: str, body: str):
    said = answer(body, headers=GOOGLE)
    readers = {
        "aws": lambda: aws.read_action(said),
        "aws-rebalance": lambda: aws.read_rebalance(said),
        "gcp": lambda: gcp.read_preempted(said, 15),
        "azure": lambda: azure.read(said, "vm0"),
        "alibaba": lambda: alibaba.read(said),
    }
    with pytest.raises(wire.AnswerError) as caught:
        readers[cloud]()

    assert caught.value.kind == "unreadable"


@hypothesis.example(200, {"noticeTime": "9999-12-31T23:59:59Z"})
@hypothesis.example(200, {"action": []})
@hypothesis.example(200, {"action": "stop", "time": "0001-01-01T00:00:00+23:00"})
@hypothesis.example(200, {"Events": [{"EventType": "Preempt", "Resources": ["vm0"], "NotBefore": 7}]})
@hypothesis.given(
    st.sampled_from([200, 204, 301, 400, 404, 500]) | st.integers(100, 599),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from(WORDS),
        lambda some: st.lists(some) | st.dictionaries(st.sampled_from(KEYS), some),
        max_leaves=8,
    ),
)
def test_whatever_is_answered_is_notices_or_a_fault(status: int, body: object):
    """Anything else would end the thread that listens."""
    said = answer(body, status=status, headers=GOOGLE)
    for read in (
        aws.read_action,
        aws.read_rebalance,
        alibaba.read,
        gcp.read_maintenance,
        lambda one: gcp.read_preempted(one, 15),
        lambda one: azure.read(one, "vm0"),
    ):
        try:
            found = read(said)
        except wire.AnswerError as fault:
            assert fault.kind in {"unreadable", f"{status // 100}xx"}  # noqa: PT017
        else:
            assert all(one.cause and one.event for one in found)


@pytest.mark.parametrize(("status", "kind"), [(401, "4xx"), (429, "4xx"), (500, "5xx"), (503, "5xx")])
@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "alibaba"])
def test_a_refusal_is_a_fault(cloud: str, status: int, kind: str):
    said = answer("{}", status=status, headers=GOOGLE)
    readers = {
        "aws": lambda: aws.read_action(said),
        "gcp": lambda: gcp.read_preempted(said, 15),
        "azure": lambda: azure.read(said, "vm0"),
        "alibaba": lambda: alibaba.read(said),
    }
    with pytest.raises(wire.AnswerError) as caught:
        readers[cloud]()

    assert caught.value.kind == kind
