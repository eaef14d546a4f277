"""Where a job with a deadline runs: on spot, on on-demand, or not at all until spot returns.

The model of Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI'24: a job has
work left and time left; their difference is its slack. A start costs `start` ticks that are paid for and
bring no progress; so each start, and each tick without any node, takes slack away. A gang counts as one: all
of its nodes or none.

What is always so, whatever is learnt (`choices`): spot that runs is kept until it is taken away; nobody waits
so long that a start on on-demand no longer fits; and spot is only taken while its loss at the worst moment,
and the start on on-demand after it, would fit. So a deadline that can be met is met.

Where that leaves a choice, `Plan` decides by backward induction over work left, slack, where the job is, and
whether spot is there or away and for how long (`spells`). What comes out are three curves over the work left,
for each age: the least slack with which to wait, to leave on-demand and wait, and to leave it for spot.

Times are ticks (`spells.TICK` seconds). Money is in ticks of spot.
"""

import dataclasses
import enum
import math

from spottrain.policy import induction, spells
from spottrain.policy.induction import Terms

CAUTION = 1.3
"""To wait, so many times the slack must be there that would be enough if the chances were known.

They are estimates, and an outage that outlasts them takes what later starts would have needed. Replayed, 1 is
0.4 points dearer with a tight deadline on AWS, and 2 is dearer everywhere.
"""


class Place(enum.Enum):
    """Where a job's workers are, all of them."""

    IDLE = "idle"
    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """What is decided on: `work` and time `left` until the deadline, both in ticks.

    `there`: spot has capacity now, for all workers of a gang; `age`: for how many ticks, this one included,
    there has been some, or none. `starting`: what is still ahead of the start where the job is. A job whose
    spot was taken away is idle.
    """

    work: float
    left: float
    place: Place
    there: bool
    age: int
    starting: float = 0.0

    @property
    def slack(self) -> float:
        """Ticks that would be left over if all went well from now on."""
        return self.left - self.work - self.starting


def shortfall(moment: Moment, terms: Terms) -> float:
    """Ticks by which the deadline will be missed whatever is done from now on; 0 while it can be met."""
    start = terms.start if moment.place is Place.IDLE else moment.starting
    return max(0.0, moment.work + start - moment.left)


def choices(moment: Moment, terms: Terms) -> tuple[Place, ...]:
    """Where the job may be in the next tick without risking its deadline; the cheapest first.

    One that can't meet it any more is on on-demand until it is done, unless it runs on spot.
    """
    spare = moment.left - moment.work
    if moment.place is Place.SPOT:
        return (Place.SPOT,)
    if moment.there:
        fits = spare >= 2 * terms.start
        if moment.place is Place.IDLE:
            return (Place.SPOT,) if fits else (Place.ON_DEMAND,)
        return (Place.SPOT, Place.ON_DEMAND) if fits else (Place.ON_DEMAND,)
    return (Place.IDLE, Place.ON_DEMAND) if spare - 1 >= terms.start else (Place.ON_DEMAND,)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do where `choices` leaves one, for all work and slack up to those that it was solved for."""

    terms: Terms
    curves: induction.Curves

    def decide(self, moment: Moment) -> Place:
        """Where to be in the next tick."""
        options = choices(moment, self.terms)
        if len(options) == 1:
            return options[0]
        return Place.ON_DEMAND if moment.slack < self.least_slack(moment) else options[0]

    def least_slack(self, moment: Moment) -> float:
        """From how much slack on the job waits, or leaves on-demand: for spot if that is there."""
        age = spells.age_class(moment.age)
        if moment.there:
            return self.curves.switch[age].at(moment.work)
        curves = self.curves.wait if moment.place is Place.IDLE else self.curves.leave
        return CAUTION * curves[age].at(moment.work)


def solve(chances: spells.Chances, terms: Terms, *, work: float, slack: float) -> Plan:
    """The plan for jobs with at most this much work and slack (ticks)."""
    return Plan(terms, induction.solve(chances, terms, work=work, slack=math.ceil(slack)))
