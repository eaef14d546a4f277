"""What others do, to compare with. All of them within `deadline.choices`, so that none misses a deadline."""

import dataclasses

from spottrain.policy import deadline
from spottrain.policy.deadline import Moment, Place
from spottrain.policy.induction import Terms


def on_demand(_tick: int, moment: Moment) -> Place:
    """Never on spot."""
    del moment
    return Place.ON_DEMAND


@dataclasses.dataclass(frozen=True)
class Wait:
    """On spot or idle, until the safety net says on-demand to the end."""

    terms: Terms

    def __call__(self, _tick: int, moment: Moment) -> Place:
        """Where to be in the next tick."""
        if moment.place is Place.ON_DEMAND:
            return Place.ON_DEMAND
        return deadline.choices(moment, self.terms)[0]


@dataclasses.dataclass(frozen=True)
class Uniform:
    """Uniform Progress (Wu et al., NSDI'24): on-demand while less is done than an even pace would have done.

    `work` and `left` are those of the beginning. On-demand is kept until spot is there and the job `margin`
    ticks ahead of its pace.
    """

    terms: Terms
    work: float
    left: float
    margin: float = 0.0

    def __call__(self, _tick: int, moment: Moment) -> Place:
        """Where to be in the next tick."""
        options = deadline.choices(moment, self.terms)
        if len(options) == 1:
            return options[0]
        bought = moment.place is Place.ON_DEMAND
        if bought and not moment.there:
            return Place.ON_DEMAND
        due = (self.left - moment.left + self.margin * bought) * self.work / self.left
        return Place.ON_DEMAND if self.work - moment.work < due else options[0]


SHORT_WAIT, WAIT, LONG_WAIT = 5, 10, 20
"""Ticks without spot after which GEPA's rule is less patient."""


@dataclasses.dataclass(frozen=True)
class Gepa:
    """The rule that GEPA evolved for this problem, from its authors' article (gepa-ai.github.io, 2026-02-18).

    Its thresholds are shares of the work left; those that it has in seconds are nothing beside a tick.
    """

    terms: Terms

    def __call__(self, _tick: int, moment: Moment) -> Place:
        """Where to be in the next tick."""
        options = deadline.choices(moment, self.terms)
        if len(options) == 1:
            return options[0]
        slack = moment.left - moment.work - self.terms.start
        if moment.place is Place.ON_DEMAND:
            return Place.SPOT if moment.there and self._pays(moment, slack) else Place.ON_DEMAND
        return Place.ON_DEMAND if self._impatient(moment, slack) else Place.IDLE

    def _pays(self, moment: Moment, slack: float) -> bool:
        """Leaving on-demand for spot costs two starts, which must be earned back one and a half times."""
        starts = 2 * self.terms.start * self.terms.ratio
        earned = moment.work * (self.terms.ratio - 1)
        return earned >= 1.5 * starts and slack >= 3 * self.terms.start

    def _impatient(self, moment: Moment, slack: float) -> bool:
        share = slack / moment.work
        return (
            slack < 4 * self.terms.start
            or share < 0.1
            or (share < 0.2 and moment.age > SHORT_WAIT)
            or (share < 0.25 and moment.age > WAIT)
            or (share < 0.4 and moment.age > LONG_WAIT)
        )
