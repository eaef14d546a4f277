"""A plan in the making."""

import dataclasses

from spottrain.api import conditions
from spottrain.plan import draft as drafts
from spottrain.plan import loss
from tests.unit.plan import virtual


def test_how_the_workers_fare_is_worked_out_once_a_pass() -> None:
    cluster = virtual.Cluster().running()
    cluster.evict("tr-1-1")
    draft = drafts.Draft(cluster.snapshot())
    first = draft.members
    draft.status = dataclasses.replace(draft.status, attempt=2, attempt_id="next")
    assert [one.verdict.fate for one in first] == [loss.Fate.ALIVE, loss.Fate.RECLAIMED, loss.Fate.ALIVE]
    assert draft.members is first


def test_whether_an_event_is_a_warning_is_known_by_its_reason() -> None:
    draft = drafts.Draft(virtual.Cluster().snapshot())
    draft.say(conditions.ATTEMPT_STARTED, "attempt 1 starts")
    draft.say(conditions.RECLAIMED, "worker 1: gone")
    assert [one.warning for one in draft.plan().events] == [False, True]
