"""A job with a deadline on a trace, tick by tick.

At the beginning of each tick the policy sees whether spot is there, and says where the job is to be until
the next. What was on spot that is gone is idle. A start takes `start` ticks that are paid for; whatever runs
stops, and costs nothing more, in the moment when the work is done. Money is in ticks of spot.
"""

import collections.abc as cabc
import dataclasses

from spottrain.policy import spells
from spottrain.policy.deadline import Moment, Place
from spottrain.policy.induction import Terms

HOUR = round(3600 / spells.TICK)
"""Ticks."""
DONE = 1e-9
"""Less work than this is a matter of rounding."""


@dataclasses.dataclass(frozen=True)
class Task:
    """So much `work`, `left` ticks for it, and what starts and on-demand cost."""

    work: float
    left: float
    terms: Terms

    @property
    def on_demand(self) -> float:
        """What the work alone costs on on-demand: the unit of all results."""
        return self.work * self.terms.ratio


@dataclasses.dataclass(frozen=True)
class Outcome:
    """`cost` in ticks of spot; `took` ticks, `idle` of them without nodes; `lost`: times spot was taken."""

    cost: float
    took: float
    idle: int
    lost: int


Decide = cabc.Callable[[int, Moment], Place]
"""What to do in the trace's tick of that number. It may look at the trace up to there, and no further."""


class Seen:
    """A trace: whether spot is `there` in each tick, and for how many, it included, that has been so."""

    def __init__(self, there: cabc.Sequence[bool]) -> None:
        self.there = there
        self.ages: list[int] = []
        for tick, value in enumerate(there):
            self.ages.append(self.ages[-1] + 1 if tick and there[tick - 1] == value else 1)


class ReplayError(Exception):
    """A policy has asked for what there isn't, or has run past the end of the trace."""


def replay(trace: Seen, first: int, task: Task, decide: Decide) -> Outcome:
    """The task from tick `first` of the trace on.

    Raises:
        ReplayError: the policy takes spot that is not there, or is not done when the trace ends.

    """
    there, seen = trace.there, trace.ages
    work, place, starting = task.work, Place.IDLE, 0.0
    cost, idle, lost = 0.0, 0, 0
    for tick in range(first, len(there)):
        if place is Place.SPOT and not there[tick]:
            place, starting, lost = Place.IDLE, 0.0, lost + 1
        left = task.left - (tick - first)
        wish = decide(tick, Moment(work, left, place, there[tick], seen[tick], starting))
        if wish is Place.SPOT and not there[tick]:
            raise ReplayError(f"tick {tick}: the policy takes spot that is not there")
        if wish is not place:
            place, starting = wish, 0.0 if wish is Place.IDLE else task.terms.start
        if place is Place.IDLE:
            idle += 1
            continue
        used = min(1.0, starting + work)
        cost += used if place is Place.SPOT else used * task.terms.ratio
        work -= max(0.0, used - starting)
        starting = max(0.0, starting - used)
        if work < DONE:
            return Outcome(cost, tick - first + used, idle, lost)
    raise ReplayError(f"not done when the trace ends, {len(there) - first} ticks after the start")
