"""The mark: which notice it is for, how it is read back, and what a Node's taints look like with it."""

import dataclasses
import datetime as dt
from typing import Any

from spottrain.agent import marks, notice, own_node
from spottrain.api import names
from spottrain.kube import views
from spottrain.plan import snapshot as snap

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SOON, LATER = NOW + dt.timedelta(seconds=30), NOW + dt.timedelta(minutes=15)
PREEMPT = notice.Notice(notice.Kind.END, "azure-scheduled-events", "Preempted", "e2", SOON)
REBOOT = notice.Notice(notice.Kind.END, "azure-scheduled-events", "Rebooted", "e1", LATER)


def mark(one: notice.Notice) -> marks.Mark:
    found = marks.chosen([one], None, NOW)
    assert found is not None
    return found


def node(*taints: dict[str, str], annotation: str | None = None) -> dict[str, Any]:
    annotations = {names.ANNOTATION_RECLAIM: annotation} if annotation else {}
    metadata = {"name": "n1", "uid": "u", "resourceVersion": "7", "annotations": annotations}
    return {"metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"taints": taints}}


TAINT = {"key": names.TAINT_RECLAIM, "value": "Preempted", "effect": "NoSchedule"}
FOREIGN = {"key": "team", "value": "x", "effect": "NoSchedule"}


def test_the_notice_that_ends_the_machine_first_gets_the_mark():
    found = marks.chosen([REBOOT, PREEMPT], mark(REBOOT), NOW)

    assert found == mark(PREEMPT)


def test_a_deadline_moves_forward_and_never_back():
    later, sooner = (dataclasses.replace(PREEMPT, deadline=one) for one in (LATER, NOW))

    assert marks.chosen([later], mark(PREEMPT), NOW) == mark(PREEMPT)
    assert marks.chosen([sooner], mark(PREEMPT), NOW) == dataclasses.replace(mark(PREEMPT), deadline=NOW)


def test_a_notice_without_a_time_keeps_the_deadline_from_when_it_was_first_seen():
    timeless = dataclasses.replace(PREEMPT, deadline=None, within=15)
    first = mark(timeless)

    assert first.deadline == NOW + dt.timedelta(seconds=15)
    assert marks.chosen([timeless], first, SOON) == first


def test_no_notice_is_no_mark():
    assert marks.chosen([], mark(PREEMPT), NOW) is None


def test_the_operator_reads_from_the_mark_why_and_until_when():
    marked = node(annotation=mark(PREEMPT).text())

    seen = views.node(marked, snap.Settings())

    assert (seen.notice, seen.deadline) == ("Preempted", SOON)
    assert marks.on(marked) == mark(PREEMPT)


def test_marking_keeps_other_taints_and_is_done_once():
    patch = marks.patch(node(FOREIGN), mark(PREEMPT))

    assert patch is not None
    assert patch["spec"] == {"taints": [FOREIGN, TAINT]}
    assert patch["metadata"]["resourceVersion"] == "7"
    timed = TAINT | {"timeAdded": "2026-01-01T12:00:00Z"}
    assert marks.patch(node(FOREIGN, timed, annotation=mark(PREEMPT).text()), mark(PREEMPT)) is None


def test_unmarking_takes_away_annotation_and_taint_of_ours_alone():
    patch = marks.patch(node(FOREIGN, TAINT, annotation=mark(PREEMPT).text()), None)

    assert patch is not None
    assert patch["spec"] == {"taints": [FOREIGN]}
    assert patch["metadata"]["annotations"] == {names.ANNOTATION_RECLAIM: None}
    assert marks.patch(node(FOREIGN, annotation='{"cause": "drill"}'), None) is None
    assert marks.patch(node(FOREIGN), None) is None


def test_anything_else_in_the_annotation_is_no_mark_of_ours():
    for text in ("", "{", "[]", "7", '{"by": "spottrain-agent"}', '{"cause": "Preempted"}'):
        assert marks.on(node(annotation=text)) is None


def worker(grace: int | None) -> dict[str, Any]:
    return {"spec": {} if grace is None else {"terminationGracePeriodSeconds": grace}}


def test_the_grace_is_the_workers_own_or_what_is_left_and_never_nothing():
    assert own_node.grace(worker(10), SOON, NOW, 2) == 10
    assert own_node.grace(worker(600), SOON, NOW, 2) == 28
    assert own_node.grace(worker(None), SOON, NOW, 2) == 28
    assert own_node.grace(worker(600), NOW, SOON, 2) == 1
    assert own_node.grace(worker(0), SOON, NOW, 2) == 1
