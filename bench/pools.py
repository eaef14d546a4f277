"""What learnt hazards save: 20 jobs at a time over zones of public traces, each going where it is told.

All rules see the same traces and fill a place in the same moment: a worker without a machine goes to the
first pool of its list that has one. They differ in the list alone: by chance, by what is learnt from the jobs
that run (as the operator does), or by what is learnt from probing every pool all the time, which is free here
and would cost money in a cloud. What is compared is preemptions per hour of running.
"""

import argparse
import itertools
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import zones
from bench.policy.traces import Trace, TraceError
from bench.report import Bar, Report, say
from spottrain.policy import hazard, pools

JOBS = 20
WORK = 48.0
SEEDS = 5
SEEDS_ALONE = 50
FEWEST = 5
MOST_GROUPS = 10
PUBLISHED = ("0-14%", "16-44%")
"""With five pools or more, against chance: by learning from the jobs that run, and by free probing."""
BARS = {"preemptions_saved": Bar(0.15, least=True)}

RANDOM, LEARNT, PROBED = "random", "learnt", "probed"


@dataclass
class Fleet:
    """Jobs of one worker each, run through the traces once."""

    pools: Sequence[zones.Zone]
    rule: str
    draw: random.Random
    jobs: int = JOBS
    work: float = WORK
    preemptions: int = 0
    running: float = 0.0
    idle: float = 0.0

    def __post_init__(self) -> None:
        self._records = {one.name: hazard.Record() for one in self.pools}
        # They are in the middle of their work at first, or all would end together.
        self._left = [self.draw.uniform(0.0, self.work) for _ in range(self.jobs)]
        self._where: list[str | None] = [None] * self.jobs

    def run(self) -> "Fleet":
        """All of it."""
        for number in range(len(self.pools[0].up)):
            self._tick(number, {one.name: one.up[number] for one in self.pools})
        return self

    def _tick(self, number: int, up: Mapping[str, bool]) -> None:
        tick = self.pools[0].tick
        now = number * tick
        before = Counter(place for place in self._where if place)
        self._where = [place if place and up[place] else None for place in self._where]
        after = Counter(place for place in self._where if place)
        self.preemptions += before.total() - after.total()
        self._learn(now, up, before, after)
        self._place(now, up)
        held = Counter(place for place in self._where if place)
        if self.rule == LEARNT:
            for name in held.keys() - after.keys():
                self._records[name] = self._records[name].after(now, held=True)
        self._work(tick)

    def _learn(self, now: float, up: Mapping[str, bool], before: Counter[str], after: Counter[str]) -> None:
        for name, record in self._records.items():
            if self.rule == PROBED:
                fell = record.state is hazard.State.HELD and not up[name]
                self._records[name] = record.after(
                    now, held=up[name], lost=int(fell), of=int(fell), tried=True
                )
            elif self.rule == LEARNT:
                lost = before[name] - after[name]
                self._records[name] = record.after(now, held=after[name] > 0, lost=lost, of=before[name])

    def _place(self, now: float, up: Mapping[str, bool]) -> None:
        for job, place in enumerate(self._where):
            if place is None:
                self._where[job] = next((name for name in self._order(now) if up[name]), None)

    def _order(self, now: float) -> list[str]:
        if self.rule == RANDOM:
            return self.draw.sample(sorted(self._records), len(self._records))
        return pools.ranked(self._records, now, self.draw)

    def _work(self, tick: float) -> None:
        for job, place in enumerate(self._where):
            if place is None:
                self.idle += tick
                continue
            self.running += tick
            self._left[job] -= tick
            if self._left[job] <= 0:
                self._left[job], self._where[job] = self.work, None

    @property
    def rate(self) -> float:
        """Preemptions per hour of running."""
        return self.preemptions / self.running


def _draw(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - chance, not secrecy


def _rate(zones_: Sequence[zones.Zone], rule: str, jobs: int = JOBS, seeds: int = SEEDS) -> float:
    """The mean over some beginnings."""
    return statistics.mean(Fleet(zones_, rule, _draw(seed), jobs).run().rate for seed in range(seeds))


def saved(zones_: Sequence[zones.Zone], jobs: int = JOBS, seeds: int = SEEDS) -> tuple[float, float]:
    """The share of preemptions avoided, against chance: by what is learnt, and by what probing tells."""
    chance = _rate(zones_, RANDOM, jobs, seeds)
    learnt, probed = (1 - _rate(zones_, rule, jobs, seeds) / chance for rule in (LEARNT, PROBED))
    return learnt, probed


def some(found: Sequence[zones.Zone], many: int) -> list[Sequence[zones.Zone]]:
    """Some of the ways to have so many of these zones, drawn once for all.

    Raises:
        ValueError: there are fewer.

    """
    if len(found) < many:
        raise ValueError(f"{len(found)} zones: {many} are needed, give a folder with more of them")
    every = list(itertools.combinations(found, many))
    return _draw(1).sample(every, min(len(every), MOST_GROUPS))


def measure(report: Report, _: Sequence[Trace], options: argparse.Namespace) -> None:
    """For all zones together, for some that any five of them give, and for one job alone.

    Raises:
        TraceError: there are no zones, or fewer than five; the message says what to do.

    """
    try:
        found = zones.load(options.traces)
        fives = some(found, FEWEST)
    except (FileNotFoundError, ValueError) as error:
        raise TraceError(str(error)) from error
    learnt, probed = saved(found)
    report.figure("preemptions_saved", learnt)
    report.figure("preemptions_saved_probed", probed)
    of_fives = [saved(five, seeds=2) for five in fives]
    five_learnt, five_probed = (statistics.mean(column) for column in zip(*of_fives, strict=True))
    report.figure("preemptions_saved_five", five_learnt)
    report.figure("preemptions_saved_five_worst", min(learnt for learnt, _ in of_fives))
    report.figure("preemptions_saved_five_probed", five_probed)
    report.figure("preemptions_saved_alone", saved(found, 1, SEEDS_ALONE)[0])
    say(
        table({f"all {len(found)} zones": (learnt, probed), "any five of them": (five_learnt, five_probed)})
        + "\n"
    )


def table(measured: Mapping[str, tuple[float, float]]) -> str:
    """Ours beside what others had with five pools or more."""
    lines = [
        f"{'preemptions saved':24}{'learnt':>12}{'probed':>12}   | published:{'learnt':>12}{'probed':>12}"
    ]
    for name, saved_ in measured.items():
        cells = "".join(f"{one:>12.0%}" for one in saved_)
        lines.append(f"{name:24}{cells}   |           " + "".join(f"{one:>12}" for one in PUBLISHED))
    return "\n".join(lines)
