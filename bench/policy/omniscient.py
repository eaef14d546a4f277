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
        left = round(task.left - (tick - first))
        bought = _run(bought, task.terms.ratio, left, unit)
        if there[tick]:
            spot = _run(spot, 1.0, left, unit)
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


def _run(row: Row, price: float, left: int, unit: int) -> Row:
    """By slack: a tick more, with so many `left` before it; the work may be done before its end."""
    whole = (left - 1) * unit + 1
    rest = (max(0.0, left - slack / unit) for slack in range(whole, len(row)))
    ends = (value + price * used for value, used in zip(row[whole:], rest, strict=True))
    return [*(value + price for value in row[:whole]), *ends]
