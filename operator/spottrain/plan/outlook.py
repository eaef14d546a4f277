"""What is known of the way to `spec.completeBy`: the work left, what a start takes, how spot came and went.

The memory is the status: its last attempts say when the gang was placed, ran, made its first step and was
lost, and on which capacity; `restart` is what starts took. So a restart of the operator forgets nothing.

Work is counted in seconds of training at the rate that was last told. It is what the newest checkpoint leaves
to be done, or the step of a life that has told one. A start is what lies between the decision for a place
and the first *new* step there: machines, images, restore, and what came since the last save done once more.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
import itertools
import math

from spottrain.api import clouds, spec, status
from spottrain.plan import snapshot as snap
from spottrain.policy import deadline, hazard, interval, spells
from spottrain.policy.deadline import Place
from spottrain.policy.induction import Terms

ARRIVAL = spells.TICK
"""Seconds that workers wait for machines before spot counts as away: so long they may take to come."""
START = 600.0
"""Seconds of a start, the work done once more apart, until one from a checkpoint was measured."""
REMEMBERED = 0.8
RATIO = 3.0
"""On-demand's price over spot's where no prices are given."""
NEAR = 0.2
"""What has changed by a smaller share than this asks for no new plan."""
MOST_WORK = 3e9
"""Seconds, a hundred years: a rate that is nearly 0 says no more."""


@dataclasses.dataclass(frozen=True)
class Outlook:
    """A job's way to its deadline at one moment; durations are seconds.

    `work`: None while it isn't known. `starting`: what is still ahead of the start under way. `waiting`: for
    how long workers have waited for spot machines in a row; `untried`: none of its lives has ended on spot.
    `since`: from when on spot has been away; for a job on on-demand where workers of other jobs hold spot
    machines (`held`), it is there since then. `overdue`: when a start on spot that is under way will have
    taken longer than it may.
    """

    now: dt.datetime
    due: dt.datetime
    place: Place
    work: float | None
    start: float
    starting: float
    waiting: float
    untried: bool
    since: dt.datetime
    held: bool
    overdue: dt.datetime | None = None

    @property
    def left(self) -> float:
        """Until the deadline."""
        return (self.due - self.now).total_seconds()

    @property
    def reserve(self) -> float:
        """The least that must be left beside the work while workers wait for spot.

        Two starts, since spot that comes may be lost right before the first step; at least a tick and one
        start, as in `deadline.choices`.
        """
        return max(2 * self.start, self.start + spells.TICK)

    @property
    def net(self) -> dt.datetime | None:
        """Until when workers may wait for spot; None if the work isn't known."""
        return None if self.work is None else self.due - dt.timedelta(seconds=self.work + self.reserve)

    @property
    def slack(self) -> float | None:
        """What is to spare if all goes well from now on, on on-demand if nothing runs; below 0: missing."""
        if self.work is None:
            return None
        return self.left - self.work - (self.start if self.place is Place.IDLE else self.starting)

    def moment(self, work: float) -> deadline.Moment:
        """The same in ticks."""
        there = self.held if self.place is Place.ON_DEMAND else self.waiting < ARRIVAL
        ticks = work / spells.TICK, self.left / spells.TICK
        return deadline.Moment(*ticks, self.place, there, _ticks(self.since, self.now))


def of(snapshot: snap.Snapshot, now: status.Status) -> Outlook | None:
    """Of a job with a deadline that has begun; `now`: its status as far as it is decided."""
    wishes = snapshot.spec
    if isinstance(wishes, spec.InvalidSpecError) or wishes.complete_by is None or not now.attempts:
        return None
    last, restart = now.attempts[-1], START if now.restart is None else now.restart
    start = restart + _redo(wishes, _saved(snapshot, now))
    place = _place(snapshot, now, start)
    held = _held_since(snapshot, now.attempts) if place is Place.ON_DEMAND else None
    waits = _waits_since(now.attempts)
    return Outlook(
        now=snapshot.now,
        due=wishes.complete_by,
        place=place,
        work=_work(snapshot, now),
        start=start,
        starting=_starting(last, restart, snapshot.now),
        waiting=0.0 if waits is None else (snapshot.now - waits).total_seconds(),
        untried=not any(_came(one) and one.end for one in now.attempts),
        since=held or _away_since(now.attempts),
        held=held is not None,
        overdue=_overdue(last, start),
    )


def _place(snapshot: snap.Snapshot, now: status.Status, start: float) -> Place:
    """Spot that has come is kept, unless a start there takes longer than it may."""
    last, floor = now.attempts[-1], snapshot.valid_spec.spot.floor
    if now.phase is status.Phase.SUSPENDED:
        return Place.IDLE
    if last.on_demand or floor >= snapshot.workers:
        return Place.ON_DEMAND
    overdue = _overdue(last, start)
    starts = overdue is not None and snapshot.now < overdue
    return Place.SPOT if last.running or starts else Place.IDLE


def _overdue(last: status.Attempt, start: float) -> dt.datetime | None:
    came = _came(last)
    return None if came is None or last.running else came + dt.timedelta(seconds=start)


def _came(attempt: status.Attempt) -> dt.datetime | None:
    """When spot had come for all workers; None if it hadn't, or if the attempt is for on-demand."""
    return None if attempt.on_demand else attempt.placed or attempt.running


def _report(snapshot: snap.Snapshot) -> snap.Report | None:
    """What worker 0 of the attempt under way told last."""
    said = snapshot.progress
    return said.report if said is not None and said.attempt_id == snapshot.status.attempt_id else None


def _saved(snapshot: snap.Snapshot, now: status.Status) -> status.Checkpoint | None:
    report = _report(snapshot)
    return report.saved if report is not None and report.saved is not None else now.checkpoint


def _work(snapshot: snap.Snapshot, now: status.Status) -> float | None:
    """Seconds that are left, None if that isn't known; `now` may be of the next attempt."""
    report, saved = _report(snapshot) or snap.Report(None, snapshot.now), _saved(snapshot, now)
    total = now.progress.total if report.total is None else report.total
    rate = now.progress.per_second if report.per_second is None else report.per_second
    if not total or not rate:
        return None
    goes_on = now.attempt_id == snapshot.status.attempt_id
    kept = 0 if saved is None else saved.step + 1
    steps = report.step + 1 if goes_on and report.step is not None else kept
    return min(max(0, total - steps) / rate, MOST_WORK)


def measured(known: float | None, attempt: status.Attempt, stepping: dt.datetime) -> float:
    """What a start takes now that one more was measured, up to its first step.

    The longest one, less a fifth for each later one. The first of a job restores nothing, and alone doesn't
    count for less than is assumed without any.
    """
    took = _took(attempt, stepping)
    return max(took, START if known is None and attempt.number == 1 else REMEMBERED * (known or 0.0))


def _took(attempt: status.Attempt, stepping: dt.datetime) -> float:
    """From its decision to its first step. A longer wait for spot was no start: spot was away."""
    placed = min(attempt.placed or attempt.running or stepping, stepping)
    waited = (placed - attempt.start).total_seconds()
    return (waited if attempt.on_demand else min(waited, ARRIVAL)) + (stepping - placed).total_seconds()


def _starting(last: status.Attempt, restart: float, now: dt.datetime) -> float:
    return 0.0 if last.stepping else max(0.0, restart - (now - last.start).total_seconds())


def _redo(wishes: spec.Spec, saved: status.Checkpoint | None) -> float:
    """What a loss without notice takes at most: what was done since the last save, and that save."""
    cost = saved.save_seconds if saved is not None and saved.save_seconds is not None else 0.0
    mean = interval.PRIOR_MEAN_SECONDS / wishes.workers
    best = interval.optimal(cost=cost, mean_time=mean, notice_share=interval.PRIOR_NOTICE_SHARE)
    return cost + (wishes.checkpoint.interval or best)


def _waits_since(attempts: tuple[status.Attempt, ...]) -> dt.datetime | None:
    """Since when workers have waited for spot in a row, over attempts that gave up in between."""
    return _back_to(attempts, lambda one: bool(_came(one) or one.on_demand))


def _away_since(attempts: tuple[status.Attempt, ...]) -> dt.datetime:
    """Since when the gang hasn't had spot, as far as its attempts go back."""
    return _back_to(attempts, lambda one: bool(_came(one))) or attempts[-1].start


def _back_to(
    attempts: tuple[status.Attempt, ...], ends: cabc.Callable[[status.Attempt], bool]
) -> dt.datetime | None:
    """When the first of the last attempts began of which none is one that `ends` the row."""
    row = itertools.takewhile(lambda one: not ends(one), reversed(attempts))
    return min((one.start for one in row), default=None)


def _held_since(snapshot: snap.Snapshot, attempts: tuple[status.Attempt, ...]) -> dt.datetime | None:
    """Since when workers of any job have held spot machines, where they have longest; None if none do.

    What was held while the gang itself waited in vain says that others have room, and it has none.
    """
    vain = [one.end.timestamp() for one in attempts if one.end and not one.on_demand and not _came(one)]
    held = [
        record.since
        for pool, record in snapshot.known.items()
        if pool.capacity is clouds.Capacity.SPOT and record.state is hazard.State.HELD
        if snapshot.weight(pool) and (not vain or 3600 * record.since > max(vain))
    ]
    return dt.datetime.fromtimestamp(3600 * min(held), dt.UTC) if held else None


@dataclasses.dataclass(frozen=True)
class Question:
    """What a plan is solved for; `work` and `slack` are ticks."""

    chances: spells.Chances
    terms: Terms
    work: float
    slack: float

    def answers(self, other: "Question") -> bool:
        """A plan for this one will do for the other: hardly more ahead, and nearly the same terms."""
        near = abs(self.terms.start - other.terms.start) <= NEAR * self.terms.start
        ahead = other.work <= (1 + NEAR) * self.work and other.slack <= (1 + NEAR) * self.slack
        return near and ahead and self.terms.ratio == other.terms.ratio

    def solve(self) -> deadline.Plan:
        """Takes up to a tenth of a second."""
        return deadline.solve(self.chances, self.terms, work=self.work, slack=self.slack)


def question(snapshot: snap.Snapshot) -> Question | None:
    """What to solve for the job as it stands; None where no plan would be of use."""
    found = None if snapshot.status.over else of(snapshot, snapshot.status)
    if found is None or found.work is None or found.slack is None or found.slack <= 0:
        return None
    return Question(
        chances=spells.learn(*_spells(snapshot.status.attempts, snapshot.now)),
        terms=Terms(found.start / spells.TICK, _ratio(snapshot.valid_spec)),
        work=math.ceil(found.work / spells.TICK),
        slack=math.ceil((found.left - found.work) / spells.TICK),
    )


def _ratio(wishes: spec.Spec) -> float:
    """On-demand that costs no more is as good as spot."""
    prices = wishes.prices
    return RATIO if prices is None else max(1.0, float(prices.on_demand / prices.spot))


def _spells(
    attempts: tuple[status.Attempt, ...], now: dt.datetime
) -> tuple[list[spells.Spell], list[spells.Spell]]:
    """How spot came and went in this job's life: spells in which it was there, and in which it was away.

    A wait no longer than machines take to come is none.
    """
    there: list[spells.Spell] = []
    away: list[spells.Spell] = []
    waits: dt.datetime | None = None
    for one, follower in itertools.zip_longest(attempts, attempts[1:]):
        if not one.on_demand:
            waits = waits or one.start
        came = _came(one)
        last = follower is None
        if waits is not None and (came or one.on_demand or last):
            until = came or (one.start if one.on_demand else now)
            if (until - waits).total_seconds() >= ARRIVAL:
                away.append(_spell(waits, until, ended=came is not None))
            waits = None
        if came is not None:
            taken = not last and follower.cause is status.Cause.RECLAIMED
            there.append(_spell(came, one.end or now, ended=taken))
    return there, away


def _spell(begin: dt.datetime, end: dt.datetime, *, ended: bool) -> spells.Spell:
    return spells.Spell(_ticks(begin, end), ended)


def _ticks(begin: dt.datetime, end: dt.datetime) -> int:
    return max(1, math.ceil((end - begin).total_seconds() / spells.TICK))
