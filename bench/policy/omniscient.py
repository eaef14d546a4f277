"""The least that a task can cost for one who knows the whole trace.

By dynamic programming over the ticks and the slack, in the rules of `replay`. A start takes its slack at
once, so whether one is still under way needs no state of its own: who knows the future starts nothing that is
taken away, or left, before it is done.
"""

import collections.abc as cabc
import fractions
import math

from bench.policy.replay import Task

Row = list[float]


def cost(there: cabc.Sequence[bool], first: int, task: Task) -> float:
    """In ticks of spot; infinite when not even on-demand makes it.

    Work, time left and `start` must be multiples of a sixtieth of a tick.
    """
    unit = _units(task)
    slack, start = round((task.left - task.work) * unit), round(task.terms.start * unit)
    idle, spot, bought = ([0.0] * (slack + 1) for _ in range(3))
    for tick in range(first + round(task.left) - 1, first - 1, -1):
        part = _parts(slack, unit, first + task.left - tick)
        bought = [value + task.terms.ratio * used for value, used in zip(bought, part, strict=True)]
        if there[tick]:
            spot = [value + used for value, used in zip(spot, part, strict=True)]
        placed = list(map(min, spot, bought)) if there[tick] else bought
        begun = [*([math.inf] * start), *placed][: slack + 1]
        rested = [*([math.inf] * unit), *idle][: slack + 1]
        idle = list(map(min, begun, rested))
        bought = list(map(min, bought, idle))
        if not there[tick]:
            spot = idle
    return idle[slack]


def _units(task: Task) -> int:
    """How many a tick has, so that everything is a whole number of them."""
    amounts = (task.work, task.left, task.terms.start)
    return math.lcm(*(fractions.Fraction(one).limit_denominator(60).denominator for one in amounts))


def _parts(slack: int, unit: int, left: float) -> Row:
    """By slack: how much of the tick is used until the work is done, with so many ticks `left`."""
    whole = min(max(round((left - 1) * unit) + 1, 0), slack + 1)
    rest = (max(0.0, left - one / unit) for one in range(whole, slack + 1))
    return [1.0] * whole + list(rest)
