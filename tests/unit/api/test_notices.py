"""Marks of nodes that are about to be taken away."""

import datetime as dt
from typing import Any

import pytest

from spottrain.api import notices
from spottrain.kube import views


def node(**parts: Any) -> notices.Signs:
    metadata = {"name": "n", **parts.pop("metadata", {})}
    return views.signs({"metadata": metadata, **parts})


def condition(type: str, status: str = "True", message: str = "") -> dict[str, Any]:  # noqa: A002
    one = {"type": type, "status": status, "reason": f"{type}Reason", "message": message}
    return {"status": {"conditions": [one]}}


@pytest.mark.parametrize("mark", notices.BUILT_IN, ids=str)
def test_every_built_in_mark_is_written_as_it_is_read(mark: notices.Mark) -> None:
    assert notices.parse(str(mark)) == mark


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("taint:a/b", {"spec": {"taints": [{"key": "a/b", "effect": "NoSchedule"}]}}),
        ("taint:a/b=c", {"spec": {"taints": [{"key": "a/b", "value": "c", "effect": "NoSchedule"}]}}),
        ("label:a=true", {"metadata": {"labels": {"a": "true"}}}),
        ("label:a", {"metadata": {"labels": {"a": ""}}}),
        ("annotation:a", {"metadata": {"annotations": {"a": "soon"}}}),
        ("condition:Leaving", condition("Leaving")),
        ("condition:Leaving=LeavingReason", condition("Leaving")),
        ("condition:Leaving=Preempt Sch", condition("Leaving", message="Preempt Scheduled: now")),
    ],
)
def test_a_node_that_carries_a_mark_is_under_notice(text: str, carried: dict[str, Any]) -> None:
    mark = notices.parse(text)
    assert notices.first([mark], node(**carried)) == (mark.key, None)


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("taint:a/b", {}),
        ("taint:a/b=c", {"spec": {"taints": [{"key": "a/b", "value": "d", "effect": "NoSchedule"}]}}),
        ("label:a=true", {"metadata": {"labels": {"a": "false"}}}),
        ("condition:Leaving", condition("Leaving", status="False")),
        ("condition:Leaving=Preempt", condition("Leaving", message="Freeze Scheduled: now")),
    ],
)
def test_another_value_is_another_mark(text: str, carried: dict[str, Any]) -> None:
    assert notices.first([notices.parse(text)], node(**carried)) == ("", None)


@pytest.mark.parametrize("type", ["PreemptionScheduled", "VMEventScheduled"])
def test_azures_condition_tells_the_deadline(type: str) -> None:  # noqa: A002
    text = "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. EventId: 7"
    found = notices.first(notices.BUILT_IN, node(**condition(type, message=text)))
    assert found == (type, dt.datetime(2026, 8, 1, 5, 41, 2, tzinfo=dt.UTC))


def test_a_freeze_or_a_time_that_is_none_is_no_deadline() -> None:
    frozen = condition("VMEventScheduled", message="Freeze Scheduled: Sat, 01 Aug 2026 05:41:02 GMT")
    assert notices.first(notices.BUILT_IN, node(**frozen)) == ("", None)
    odd = condition("PreemptionScheduled", message="Preempt Scheduled: Sat, 41 Aug 2026 05:41:02 GMT")
    assert notices.first(notices.BUILT_IN, node(**odd)) == ("PreemptionScheduled", None)


def test_a_site_adds_marks_and_takes_away_built_in_ones() -> None:
    marks = notices.heeded(["annotation:acme/leaving", "-taint:karpenter.sh/disrupted"])
    changed = {notices.parse("annotation:acme/leaving"), notices.parse("taint:karpenter.sh/disrupted")}
    assert set(marks) ^ set(notices.BUILT_IN) == changed


@pytest.mark.parametrize("text", ["gone", "taint:", "cordon:a", "label:a b", "label:a="])
def test_what_marks_nothing_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="write taint:KEY"):
        notices.parse(text)
