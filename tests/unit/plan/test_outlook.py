"""What is read off a job's lives about its deadline: starts, and how spot came and went."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import spec, status
from spottrain.plan import outlook
from spottrain.policy import spells
from spottrain.policy.deadline import Place
from tests.unit.plan import virtual

MINUTE = dt.timedelta(minutes=1)
DUE = virtual.EPOCH + dt.timedelta(hours=40)


def life(
    number: int, *, at: int, ran: int | None = None, step: int | None = None, **more: object
) -> status.Attempt:
    """A life that began, ran, and told its first step at these minutes."""
    return status.Attempt(
        number,
        f"a{number}",
        status.Cause.RECLAIMED if number > 1 else status.Cause.INITIAL,
        start=virtual.EPOCH + at * MINUTE,
        running=None if ran is None else virtual.EPOCH + ran * MINUTE,
        stepping=None if step is None else virtual.EPOCH + step * MINUTE,
        **more,  # type: ignore[arg-type]
    )


def cluster_of(*lives: status.Attempt, minutes: int = 600, **changes: object) -> virtual.Cluster:
    """A job with these lives behind it, the last one under way, whose saves are ten minutes apart."""
    wishes = virtual.wishes(complete_by=DUE, checkpoint=spec.Checkpoint(uri="s3://ck/tr", interval=600.0))
    cluster = virtual.Cluster(dataclasses.replace(wishes, **changes))  # type: ignore[arg-type]
    ends = [*(one.start for one in lives[1:]), None]
    ended = [dataclasses.replace(one, end=end) for one, end in zip(lives, ends, strict=True)]
    cluster.now = virtual.EPOCH + minutes * MINUTE
    cluster.status = status.Status(
        start=virtual.EPOCH,
        attempt=lives[-1].number,
        attempt_id=lives[-1].id,
        attempts=tuple(ended),
        progress=status.Progress(total=7200, per_second=0.1),
        checkpoint=status.Checkpoint(3599, virtual.EPOCH, 30.0),
    )
    return cluster


def seen(cluster: virtual.Cluster) -> outlook.Outlook:
    found = outlook.of(cluster.snapshot(), cluster.status)
    assert found is not None
    return found


RESTARTS = {
    "none was measured": ((life(1, at=0),), 600.0),
    "the first one restores nothing": ((life(1, at=0, ran=1, step=2),), 600.0),
    "the first one took longer": ((life(1, at=0, ran=5, step=25),), 1500.0),
    "the longest of those from a checkpoint": (
        (
            life(1, at=0, ran=5, step=25),
            life(2, at=100, ran=101, step=103),
            life(3, at=200, ran=202, step=204),
        ),
        240.0,
    ),
    "a long wait for spot is no start": ((life(1, at=0), life(2, at=100, ran=160, step=162)), 720.0),
    "one for on-demand machines is": (
        (life(1, at=0), life(2, at=100, ran=110, step=112, on_demand=True)),
        720.0,
    ),
}


@pytest.mark.parametrize(("lives", "seconds"), RESTARTS.values(), ids=RESTARTS)
def test_a_start_is_the_longest_measured_and_what_a_loss_has_done_again(
    lives: tuple[status.Attempt, ...], seconds: float
) -> None:
    assert seen(cluster_of(*lives)).start == seconds + 600.0 + 30.0


def test_spot_that_has_come_is_kept_while_its_start_takes_no_longer_than_it_may() -> None:
    """Images of some GB are pulled: that is no wait for spot."""
    first, placed = life(1, at=0, ran=1, step=2), virtual.EPOCH + 510 * MINUTE
    second = dataclasses.replace(life(2, at=500), placed=placed)
    found = seen(cluster_of(first, second, minutes=520))
    assert (found.place, found.start, found.overdue) == (Place.SPOT, 1230.0, placed + 20.5 * MINUTE)
    assert seen(cluster_of(first, second, minutes=531)).place is Place.IDLE


def test_the_work_left_is_what_the_newest_checkpoint_leaves() -> None:
    found = seen(cluster_of(life(1, at=0, ran=1, step=2), life(2, at=100)))
    assert (found.work, found.done, found.place) == (36000.0, 0.5, Place.IDLE)
    assert found.left == 30 * 3600
    assert found.slack == found.left - 36000.0 - found.start
    assert found.net == DUE - dt.timedelta(seconds=36000.0 + 2 * found.start)


def test_a_rate_of_nearly_nothing_is_no_reason_to_break() -> None:
    cluster = cluster_of(life(1, at=0, ran=1, step=2))
    told = status.Progress(total=2**62, per_second=1e-300)
    cluster.status = dataclasses.replace(cluster.status, progress=told)
    assert seen(cluster).work == outlook.MOST_WORK
    cluster.settle()


def test_a_floor_of_all_workers_is_on_on_demand_already() -> None:
    cluster = cluster_of(life(1, at=0, ran=1), spot=spec.Spot(floor=3))
    assert seen(cluster).place is Place.ON_DEMAND


def test_spells_of_spot_are_read_off_the_lives() -> None:
    """There for 100 minutes and taken, away for 40, there again and gone with a failure, then bought."""
    failed = dataclasses.replace(life(3, at=200, ran=201), cause=status.Cause.FAILED)
    cluster = cluster_of(
        life(1, at=0, ran=1),
        life(2, at=101, ran=141),
        failed,
        life(4, at=300),
        life(5, at=360, ran=365, on_demand=True),
    )
    there = [spells.Spell(10), spells.Spell(6, ended=False), spells.Spell(10)]
    away = [spells.Spell(4), spells.Spell(6, ended=False)]
    question = outlook.question(cluster.snapshot())
    assert question is not None
    assert question.chances == spells.learn(there, away)


def test_a_job_that_is_over_or_cannot_make_it_asks_for_no_plan() -> None:
    cluster = cluster_of(life(1, at=0, ran=1))
    assert outlook.question(cluster.snapshot()) is not None
    late = dataclasses.replace(virtual.wishes(), complete_by=cluster.now)
    cluster.edit(late)
    assert outlook.question(cluster.snapshot()) is None
    cluster.edit(virtual.wishes(complete_by=DUE))
    cluster.status = dataclasses.replace(cluster.status, phase=status.Phase.COMPLETE)
    assert outlook.question(cluster.snapshot()) is None
