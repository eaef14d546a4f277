"""What is remembered of machines that were taken away."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, names, status
from spottrain.kube import losses
from spottrain.plan import snapshot as snap

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
RECLAIM = status.Reclaim(NOON, "NodeGone", "n1", "zone-a", "spot", "aws", 0, 1, "g5.xlarge")
POOL = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5.xlarge")


def test_a_machine_that_many_jobs_name_is_one_loss() -> None:
    memory = losses.Losses()
    for _ in range(3):
        memory.note(RECLAIM)
    assert memory.since(NOON - dt.timedelta(minutes=1)) == (snap.Loss(POOL, "n1", NOON),)
    assert memory.since(NOON) == ()


def test_an_older_loss_of_the_machine_does_not_replace_a_newer_one() -> None:
    memory = losses.Losses()
    memory.note(RECLAIM)
    memory.note(dataclasses.replace(RECLAIM, time=NOON - dt.timedelta(hours=1)))
    assert [one.time for one in memory.since(NOON - dt.timedelta(days=1))] == [NOON]


def test_what_names_no_machine_is_none_and_a_newer_versions_word_for_capacity_is_unknown() -> None:
    memory = losses.Losses()
    memory.note(None)
    memory.note(dataclasses.replace(RECLAIM, node=""))
    memory.note(dataclasses.replace(RECLAIM, node="n2", capacity="leased"))
    (one,) = memory.since(NOON - dt.timedelta(minutes=1))
    assert (one.node, one.pool.capacity) == ("n2", clouds.Capacity.UNKNOWN)


def test_a_drill_takes_no_machine() -> None:
    memory = losses.Losses()
    memory.note(dataclasses.replace(RECLAIM, cause=names.DRILL))
    assert memory.since(NOON - dt.timedelta(minutes=1)) == ()


def test_only_the_newest_are_kept() -> None:
    memory = losses.Losses()
    for number in range(losses.KEPT + 10):
        moment = NOON + dt.timedelta(seconds=number)
        memory.note(dataclasses.replace(RECLAIM, node=f"n{number}", time=moment))
    kept = memory.since(NOON - dt.timedelta(minutes=1))
    assert len(kept) == losses.KEPT
    assert min(one.time for one in kept) == NOON + dt.timedelta(seconds=10)
