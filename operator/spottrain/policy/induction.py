"""The backward induction behind `deadline.Plan`.

Its stages are the work left; its states are the slack, where the job is, and whether spot is there or away
and for how long. Running for a tick takes work and no slack, waiting takes slack and no work, a start takes
slack and money at once. So a stage is made from the one before it, and within a stage a slack from smaller
ones.

 The slack is on a grid that is even at first and then ever coarser. Between two of its points values are
interpolated, as if waiting a tick went down to the lower point with the chance that keeps the mean. A start
on spot may be lost before it is done; that it then took all of `start` is what the safety net assumes too.
"""

import bisect
import dataclasses
import math

from spottrain.policy import spells

STAGES = 432
"""The most stages: three days of work. From there on the least slack grows as the work does."""
FINEST = 4.0
"""Up to this slack (ticks) the grid is even; from there on each point is a quarter above the one before."""

ROUNDING = 1e-9
"""What costs less by no more than this doesn't cost less."""

Row = list[float]
"""Money to the end, by slack."""


@dataclasses.dataclass(frozen=True)
class Terms:
    """`start`: ticks until a job that was placed makes progress. `ratio`: on-demand's price over spot's."""

    start: float
    ratio: float


@dataclasses.dataclass(frozen=True)
class Curve:
    """The least slack for something, by ticks of work left; infinite: never."""

    least: tuple[float, ...]

    def at(self, work: float) -> float:
        """For this much work left; beyond the last value in proportion."""
        last = len(self.least) - 1
        return self.least[min(round(work), last)] * max(1.0, work / last)


@dataclasses.dataclass(frozen=True)
class Curves:
    """By age: the least slack to wait idle, to leave on-demand in order to wait, and to leave it for spot."""

    wait: tuple[Curve, ...]
    leave: tuple[Curve, ...]
    switch: tuple[Curve, ...]


@dataclasses.dataclass(frozen=True)
class _Stage:
    """Money to the end at one amount of work, by age of what is seen: spot there, or away."""

    spot: list[Row]
    waiting: list[Row]
    bought_there: list[Row]
    bought_away: list[Row]


@dataclasses.dataclass(frozen=True)
class _Step:
    """What happens to a spell of one age in a tick: it ends, or goes on and grows old (or doesn't)."""

    keep: float
    grow: float
    end: float


def _steps(chances: tuple[float, ...]) -> list[_Step]:
    """By age. An age of n ticks is left with the chance 1/n in each."""
    lengths = [last - first for first, last in zip((0, *spells.AGES), spells.AGES, strict=False)]
    older = [*(1 / length for length in lengths), 0.0]
    return [
        _Step((1 - end) * (1 - grow), (1 - end) * grow, end) for end, grow in zip(chances, older, strict=True)
    ]


class _Grid:
    """The slacks, and how to get from each to a smaller one."""

    def __init__(self, slack: float, start: float) -> None:
        self.points = [0.0]
        while self.points[-1] < slack:
            self.points.append(self.points[-1] + max(1.0, self.points[-1] / FINEST))
        gaps = [right - left for left, right in zip(self.points, self.points[1:], strict=False)]
        self.down = [1.0, *(1 / gap for gap in gaps)]
        self.started = [self._place(slack - start) for slack in self.points]
        self.first_spot = bisect.bisect_left(self.points, 2 * start)
        self.first_wait = max(1, bisect.bisect_left(self.points, 1 + start))

    def _place(self, slack: float) -> tuple[int, float, float]:
        """The point below, and the weights of it and of the next."""
        index = min(max(bisect.bisect_right(self.points, slack) - 1, 0), len(self.points) - 2)
        share = (max(slack, 0.0) - self.points[index]) / (self.points[index + 1] - self.points[index])
        return index, 1 - share, share

    def after_start(self, row: Row, cost: float = 0.0, scale: float = 1.0) -> Row:
        """`cost`, and the values at what a start leaves of the slack; at none at all where it doesn't fit."""
        return [
            cost + scale * (low * row[index] + high * row[index + 1]) for index, low, high in self.started
        ]

    def after_tick(self, row: Row) -> Row:
        """The values a tick further down."""
        below = zip(row[:1] + row, row, self.down, strict=False)
        return [low * share + here * (1 - share) for low, here, share in below]

    def crossing(self, option: Row, other: Row, first: int) -> float:
        """The least slack from which on the option costs less; infinite if it does with none."""
        for index in range(len(option) - 1, first - 1, -1):
            more = option[index] - other[index] + ROUNDING
            if more > 0:
                if index == len(option) - 1:
                    return math.inf
                less = other[index + 1] - option[index + 1] - ROUNDING
                gap = self.points[index + 1] - self.points[index]
                return self.points[index] + gap * more / (more + less)
        return 0.0


class _Solver:
    """Stage after stage, for one job."""

    def __init__(self, chances: spells.Chances, terms: Terms, slack: float) -> None:
        self.terms = terms
        self.grid = _Grid(slack, terms.start)
        self.loss, self.back = _steps(chances.loss), _steps(chances.back)
        self.survival = [(1 - chance) ** terms.start for chance in chances.loss]
        self.waits = [self._coefficients(one) for one in self.back]
        nothing = [0.0] * len(self.grid.points)
        rows = [nothing] * len(chances.loss)
        self.stage = _Stage(rows, rows, rows, rows)
        self.work = 0

    def _coefficients(self, one: _Step) -> tuple[Row, Row, Row]:
        """Of the values a tick further down, for waiting on; solved for the value that is on both sides."""
        held = [1 - one.keep * (1 - share) for share in self.grid.down]
        keep = [one.keep * share / whole for share, whole in zip(self.grid.down, held, strict=True)]
        return keep, [one.grow / whole for whole in held], [one.end / whole for whole in held]

    def advance(self) -> tuple[list[float], list[float], list[float]]:
        """One more tick of work: the least slacks of the three curves, by age."""
        before, grid, price = self.stage, self.grid, self.terms.ratio
        scale = (self.work + 1) / self.work if self.work else 1.0
        self.work += 1
        spot = _run(before.spot, before.waiting[0], self.loss, 1.0)
        there = _run(before.bought_there, before.bought_away[0], self.loss, price)
        away = _run(before.bought_away, before.bought_there[0], self.back, price)
        taken = self._taken(spot, grid.after_start(before.waiting[0], scale=scale))
        start = self.terms.start * price
        bought = [grid.after_start(row, start) for row in away]
        arrival = grid.after_start(there[0], start)
        arrival[grid.first_spot :] = taken[0][grid.first_spot :]
        waits, waiting = self._wait(bought, arrival)
        self.stage = _Stage(
            spot,
            waiting,
            [
                [*row[: grid.first_spot], *map(min, row[grid.first_spot :], other[grid.first_spot :])]
                for row, other in zip(there, taken, strict=True)
            ],
            [list(map(min, row, other)) for row, other in zip(away, waits, strict=True)],
        )
        return (
            [grid.crossing(*rows, grid.first_wait) for rows in zip(waits, bought, strict=True)],
            [grid.crossing(*rows, grid.first_wait) for rows in zip(waits, away, strict=True)],
            [grid.crossing(*rows, grid.first_spot) for rows in zip(taken, there, strict=True)],
        )

    def _taken(self, spot: list[Row], lost: Row) -> list[Row]:
        """Starting on spot, by its age; `lost`: what it costs when spot is gone before the start is done."""
        found = []
        for row, survives in zip(spot, self.survival, strict=True):
            pairs = zip(self.grid.after_start(row, self.terms.start, survives), lost, strict=True)
            found.append([well + (1 - survives) * badly for well, badly in pairs])
        return found

    def _wait(self, bought: list[Row], arrival: Row) -> tuple[list[Row], list[Row]]:
        """By age: waiting a tick, and the better of that and starting on on-demand."""
        arrival = self.grid.after_tick(arrival)
        older = [0.0] * len(arrival)
        waits: list[Row] = []
        waiting: list[Row] = []
        for coefficients, start in zip(reversed(self.waits), reversed(bought), strict=True):
            wait, best = self._wait_at(coefficients, start, older, arrival)
            waits.insert(0, wait)
            waiting.insert(0, best)
            older = self.grid.after_tick(best)
        return waits, waiting

    def _wait_at(
        self, coefficients: tuple[Row, Row, Row], start: Row, older: Row, arrival: Row
    ) -> tuple[Row, Row]:
        first = self.grid.first_wait
        wait, best = [math.inf] * first, start[:first]
        below = best[-1]
        for keep, grow, end, old, come, buy in zip(
            *(row[first:] for row in (*coefficients, older, arrival, start)), strict=True
        ):
            cost = keep * below + grow * old + end * come
            below = min(cost, buy)
            wait.append(cost)
            best.append(below)
        return wait, best


def _run(rows: list[Row], other: Row, steps: list[_Step], price: float) -> list[Row]:
    """Running on for a tick, by age; `other`: what it costs from the moment when the spell has ended."""
    return [
        [
            price + one.keep * same + one.grow * old + one.end * gone
            for same, old, gone in zip(row, older, other, strict=True)
        ]
        for row, older, one in zip(rows, [*rows[1:], rows[-1]], steps, strict=True)
    ]


def solve(chances: spells.Chances, terms: Terms, *, work: float, slack: float) -> Curves:
    """The curves for at most this much work, a tick at least, and slack (ticks)."""
    solver = _Solver(chances, terms, max(slack, 2.0))
    least = [solver.advance() for _ in range(min(max(math.ceil(work), 1), STAGES))]
    never = [math.inf] * len(chances.loss)
    wait, leave, switch = zip((never, never, never), *least, strict=True)
    return Curves(_curves(wait), _curves(leave), _curves(switch))


def _curves(least: tuple[list[float], ...]) -> tuple[Curve, ...]:
    return tuple(Curve(by_work) for by_work in zip(*least, strict=True))
