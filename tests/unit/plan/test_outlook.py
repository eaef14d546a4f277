"""What is read off a job's lives about its deadline: starts, and how spot came and went."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import prices, spec, status
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


STARTS = {
    "the first one restores nothing": (None, life(1, at=0, ran=1), 2, 600.0),
    "the first one took longer": (None, life(1, at=0, ran=5), 25, 1500.0),
    "one from a checkpoint": (None, life(2, at=0, ran=2), 4, 240.0),
    "a longer one before": (1500.0, life(2, at=0, ran=2), 4, 1200.0),
    "a shorter one before": (100.0, life(2, at=0, ran=2), 4, 240.0),
    "a long wait for spot is no start": (None, life(2, at=0, ran=60), 62, 720.0),
    "one for on-demand machines is": (None, life(2, at=0, ran=60, on_demand=True), 62, 3720.0),
}


@pytest.mark.parametrize(("known", "one", "step", "seconds"), STARTS.values(), ids=STARTS)
def test_a_start_is_the_longest_measured_and_outliers_fade(
    known: float | None, one: status.Attempt, step: int, seconds: float
) -> None:
    assert outlook.measured(known, one, virtual.EPOCH + step * MINUTE) == seconds


def test_a_loss_may_take_a_start_and_what_was_done_since_the_last_save() -> None:
    cluster = cluster_of(life(1, at=0, ran=1, step=2), life(2, at=100))
    assert seen(cluster).start == outlook.START + 600.0 + 30.0
    cluster.status = dataclasses.replace(cluster.status, restart=90.0)
    assert seen(cluster).start == 90.0 + 600.0 + 30.0


def test_spot_that_has_come_is_kept_while_its_start_takes_no_longer_than_it_may() -> None:
    """Images of some GB are pulled: that is no wait for spot."""
    first, placed = life(1, at=0, ran=1, step=2), virtual.EPOCH + 510 * MINUTE
    second = dataclasses.replace(life(2, at=500), placed=placed)
    found = seen(cluster_of(first, second, minutes=520))
    assert (found.place, found.start, found.overdue) == (Place.SPOT, 1230.0, placed + 20.5 * MINUTE)
    assert seen(cluster_of(first, second, minutes=531)).place is Place.IDLE


def test_the_work_left_is_what_the_newest_checkpoint_leaves() -> None:
    found = seen(cluster_of(life(1, at=0, ran=1, step=2), life(2, at=100)))
    assert (found.work, found.place) == (36000.0, Place.IDLE)
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


@pytest.mark.parametrize(
    ("offer", "ratio"),
    [
        (None, outlook.RATIO),
        (prices.Prices(prices.Amount("1.10"), prices.Amount("3.30")), 3.0),
        (prices.Prices(prices.Amount("1.10"), prices.Amount("0.90")), 1.0),
    ],
)
def test_what_on_demand_costs_is_read_off_the_prices(offer: prices.Prices | None, ratio: float) -> None:
    question = outlook.question(cluster_of(life(1, at=0, ran=1), prices=offer).snapshot())
    assert question is not None
    assert question.terms.ratio == pytest.approx(ratio)


def test_a_job_that_is_over_or_cannot_make_it_asks_for_no_plan() -> None:
    cluster = cluster_of(life(1, at=0, ran=1))
    assert outlook.question(cluster.snapshot()) is not None
    late = dataclasses.replace(virtual.wishes(), complete_by=cluster.now)
    cluster.edit(late)
    assert outlook.question(cluster.snapshot()) is None
    cluster.edit(virtual.wishes(complete_by=DUE))
    cluster.status = dataclasses.replace(cluster.status, phase=status.Phase.COMPLETE)
    assert outlook.question(cluster.snapshot()) is None


def test_a_wait_goes_back_over_attempts_that_gave_up_to_the_last_time_that_spot_was_there() -> None:
    """On-demand ends the wait, and not the time that spot has been away."""
    lives = [life(1, at=0, ran=1), life(2, at=100), life(3, at=200)]
    found = seen(cluster_of(*lives, minutes=300))
    assert (found.waiting, found.since) == (200 * 60.0, virtual.EPOCH + 100 * MINUTE)
    bought = [*lives, life(4, at=300, on_demand=True), life(5, at=400), life(6, at=450)]
    found = seen(cluster_of(*bought, minutes=500))
    assert (found.waiting, found.since) == (100 * 60.0, virtual.EPOCH + 100 * MINUTE)
