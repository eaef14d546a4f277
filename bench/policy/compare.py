"""Every rule on the same runs, beside the least that is possible."""

import collections.abc as cabc
import dataclasses
import functools
import statistics
import time

from bench.policy import omniscient, replay, rules
from bench.policy.replay import HOUR, Decide, Outcome, Task
from bench.policy.traces import Trace
from spottrain.policy import deadline, spells
from spottrain.policy.induction import Terms

WORK, DEADLINES, STARTS, RATIO = 48, (52, 60, 70), (0.2, 0.05), 3.14
"""Hours, hours, hours, on-demand's price over spot's: the settings of the published comparisons."""
PAST = 48 * HOUR
"""Ticks of each trace that come before the first run, as far as it is long enough."""
AGAIN = 12 * HOUR
"""Ticks after which the plan is made anew, from what was seen until then."""
NOTHING_LATE = 1e-6


def tasks() -> list[Task]:
    """Every deadline with every start."""
    return [
        Task(WORK * HOUR, left * HOUR, Terms(start * HOUR, RATIO)) for left in DEADLINES for start in STARTS
    ]


def tight(task: Task) -> bool:
    """The setting in which never waiting is best."""
    return task.left == min(DEADLINES) * HOUR and task.terms.start == min(STARTS) * HOUR


class Pool:
    """A trace, and what could be learnt of it at any moment."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.there = trace.there
        self.seen = replay.Seen(trace.there)
        self.plan = functools.cache(self._plan)
        self.solves: list[float] = []
        """CPU seconds of each."""

    def _plan(self, known: int, terms: Terms) -> deadline.Plan:
        """Made from the first `known` ticks, for all tasks with these terms."""
        chances = spells.learn(*spells.of(self.there[:known])) if known else spells.Chances()
        begun = time.process_time()
        plan = deadline.solve(chances, terms, work=WORK * HOUR, slack=(max(DEADLINES) - WORK) * HOUR)
        self.solves.append(time.process_time() - begun)
        return plan

    def starts(self, task: Task, count: int) -> list[int]:
        """As many first ticks, evenly over the trace behind `PAST`."""
        last = len(self.there) - round(task.left)
        if last < 0:
            return []
        first = min(PAST, last // 2)
        return sorted({first + round((last - first) * one / max(count - 1, 1)) for one in range(count)})

    def run(self, first: int, task: Task, decide: Decide) -> Outcome:
        """One task under one rule."""
        return replay.replay(self.seen, first, task, decide)

    def share(self, first: int, task: Task) -> float:
        """Of the time of a task, that in which the pool has capacity."""
        return statistics.fmean(self.there[first : first + round(task.left)])


def ours(pool: Pool, task: Task) -> Decide:
    """`deadline.Plan`, made anew every 12 hours from the pool's past."""
    return lambda tick, moment: pool.plan(tick // AGAIN * AGAIN, task.terms).decide(moment)


def newcomer(pool: Pool, task: Task) -> Decide:
    """The same, of a pool that nothing is known of."""
    plan = pool.plan(0, task.terms)
    return lambda _tick, moment: plan.decide(moment)


RULES: dict[str, cabc.Callable[[Pool, Task], Decide]] = {
    "on-demand only": lambda _pool, _task: rules.on_demand,
    "wait for spot + safety net": lambda _pool, task: rules.Wait(task.terms),
    "UP, h = 2d (as published)": lambda _pool, task: rules.Uniform(
        task.terms, task.work, task.left, 2 * task.terms.start
    ),
    "UP, h = 0": lambda _pool, task: rules.Uniform(task.terms, task.work, task.left),
    "GEPA's evolved rule": lambda _pool, task: rules.Gepa(task.terms),
    "ours, nothing known": newcomer,
    "ours": ours,
}
OURS, BEST = "ours", "omniscient"


@dataclasses.dataclass(frozen=True)
class Run:
    """One start of one task in one pool: cost over that of the work on on-demand, by rule."""

    group: str
    pool: str
    task: Task
    share: float
    costs: dict[str, float]

    def above(self, rule: str) -> float:
        """Points above the omniscient."""
        return 100 * (self.costs[rule] - self.costs[BEST])


def compare(pools: cabc.Sequence[Pool], count: int) -> list[Run]:
    """Every rule in the same runs, `count` in each setting and pool."""
    found = []
    for pool in pools:
        for task in tasks():
            for first in pool.starts(task, count):
                costs = {name: pool.run(first, task, rule(pool, task)).cost for name, rule in RULES.items()}
                costs[BEST] = omniscient.cost(pool.there, first, task)
                whole = {name: cost / task.on_demand for name, cost in costs.items()}
                found.append(Run(pool.trace.group, pool.trace.pool, task, pool.share(first, task), whole))
    return found


def missed(pools: cabc.Sequence[Pool], runs: int) -> tuple[int, int]:
    """How many of at least so many runs ended too late, and how many there were."""
    late = total = 0
    count = -(-runs // (len(pools) * len(tasks())))
    for pool in pools:
        for task in tasks():
            for first in pool.starts(task, count):
                late += pool.run(first, task, ours(pool, task)).took > task.left + NOTHING_LATE
                total += 1
    return late, total
