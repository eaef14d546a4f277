"""The hint on the Node: one for as long as its source says anything, and none after that."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from spottrain.agent import azure, gcp, hints, notice, wire
from spottrain.api import names
from spottrain.kube import views
from spottrain.plan import snapshot as snap

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
LATER = NOW + dt.timedelta(minutes=10)
REBALANCE = notice.Notice(
    notice.Kind.HINT, "aws-rebalance", "Rebalance", "11:59", NOW + dt.timedelta(minutes=30)
)
MIGRATION = notice.Notice(notice.Kind.HINT, "gcp-maintenance-event", "HostMigration", "MIGRATE")
HINT = hints.Hint("Rebalance", "11:59", "aws-rebalance", NOW)


def node(text: str | None = None) -> dict[str, Any]:
    metadata = {"name": "n1", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata | {"annotations": {names.ANNOTATION_HINT: text} if text else {}}, "spec": {}}


def test_a_hint_is_dated_when_it_is_first_heard():
    assert hints.chosen([REBALANCE], None, NOW) == HINT


def test_a_recommendation_that_is_said_again_in_other_words_is_the_same_hint():
    again = dataclasses.replace(REBALANCE, event="12:09", deadline=LATER + dt.timedelta(minutes=30))

    assert hints.chosen([again], HINT, LATER) == HINT


def test_a_hint_ends_with_its_time_and_one_without_a_time_when_it_is_no_longer_said():
    assert hints.chosen([REBALANCE], HINT, NOW + dt.timedelta(minutes=30)) is None
    migration = hints.chosen([MIGRATION], None, NOW)
    assert hints.chosen([MIGRATION], migration, NOW + dt.timedelta(days=1)) == migration
    assert hints.chosen([], migration, LATER) is None


def test_a_hint_is_read_back_by_the_agent_as_it_was_written():
    assert hints.on(node(HINT.text())) == HINT


@pytest.mark.parametrize("text", ["", "{}", "[", "3", '{"by": "someone", "since": "2026-01-01T12:00:00Z"}'])
def test_what_somebody_else_wrote_is_not_taken_away(text: str):
    assert hints.on(node(text)) is None
    assert hints.patch(node(text), None) is None


def test_a_node_is_written_only_where_something_changes():
    assert hints.patch(node(HINT.text()), HINT) is None
    assert hints.patch(node(), HINT) == {"metadata": {"annotations": {names.ANNOTATION_HINT: HINT.text()}}}
    assert hints.patch(node(HINT.text()), None) == {
        "metadata": {"annotations": {names.ANNOTATION_HINT: None}}
    }


def test_the_operator_reads_when_the_hint_came():
    assert views.node(node(HINT.text()), snap.Settings()).hint == NOW


@pytest.mark.parametrize("text", ["", "[]", "{", '{"since": 3}', '{"since": "soon"}', "{}"])
def test_a_hint_that_cannot_be_read_is_none(text: str):
    assert views.node(node(text), snap.Settings()).hint is None


def test_a_move_to_another_host_is_a_hint_on_gcp():
    answer = wire.Answer(200, {"metadata-flavor": "Google"}, b"MIGRATE_ON_HOST_MAINTENANCE\n")
    (found,) = gcp.read_maintenance(answer)

    assert (found.kind, found.cause) == (notice.Kind.HINT, "HostMigration")
    assert found.cause in gcp.Maintenance.causes


def test_a_freeze_is_a_hint_on_azure():
    body = b'{"Events": [{"EventId": "e1", "EventType": "Freeze", "Resources": ["vm0"], "NotBefore": ""}]}'
    (found,) = azure.read(wire.Answer(200, {}, body), "vm0")

    assert (found.kind, found.cause, found.event) == (notice.Kind.HINT, "Frozen", "e1")
    assert found.cause in azure.ScheduledEvents.causes
