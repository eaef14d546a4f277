"""How good `spottrain plan` is: its forecasts against runs that are replayed on public traces.

For each pool of the traces and many moments: what would have been learnt of the pool until then (hazards from
its past alone), what the plan would have said of a job that begins then, and what it took in truth, by the
trace. The job of the replay saves and restarts as the forecast's does: what is compared is capacity. What is
not done when the trace ends is given up on there, in the forecast as in truth.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from bench import pools, zones
from bench.policy import traces
from bench.report import Bar, Report, say
from spottrain.policy import forecast, hazard
from spottrain.policy import pools as spots

WORK = 24.0
LEARNING = 72.0
"""Hours of the trace that are seen before the first forecast."""
EVERY = 12.0
"""Hours between two moments at which a job begins."""
LEFT_OVER = 4.0
"""How many times its work must be left of the trace for a job to begin."""
RUNS = 200
PLACES = {"five": 5, "two": 2, "one": 1}
"""In how many pools of a set a job may run."""
WAYS: Mapping[str, forecast.Fallback | None] = {"spot": None, "mixed": forecast.Fallback()}
FIGURES = ("wall", "cost")
BIAS, COVERAGE = Bar(0.1, low=-0.1), Bar(0.9, low=0.7)
BARS = {
    f"plan_{what}_{figure}_{group}": bar
    for what, bar in (("bias", BIAS), ("coverage", COVERAGE))
    for figure in FIGURES
    for group in traces.SETS
}
SAVE, RESTART, SHARE = 1 / 60, 0.1, 0.5
INTERVAL = 0.5
SAME = 1e-6
"""Hours or money: sums in another order."""


@dataclass(frozen=True)
class Told:
    """What was forecast and what came, of one figure."""

    mean: float
    low: float
    high: float
    came: float

    @property
    def covered(self) -> bool:
        """It came within the 80 %."""
        return self.low - SAME <= self.came <= self.high + SAME


def learnt(zone: zones.Zone) -> list[hazard.Record]:
    """What is known at each tick from the ticks before, by whoever holds machines there while it can."""
    record, known = hazard.Record(), []
    for number, up in enumerate(zone.up):
        fell = record.state is hazard.State.HELD and not up
        record = record.after(number * zone.tick, held=up, lost=int(fell), of=int(fell), tried=True)
        known.append(record)
    return known


@dataclass(frozen=True)
class Trace:
    """A zone from one tick on, as a place to run in: it has one future, the one that came."""

    zone: zones.Zone
    first: int
    record: hazard.Record

    def future(self, draw: random.Random, regions: MutableMapping[str, float]) -> forecast.Weather:  # noqa: ARG002
        """From that tick on."""
        since = self.record.since - self.record.seen
        rates = self.record.exits.rates(hazard.EXITS)
        return forecast.Weather(self._changes(), rates, up=self.zone.up[self.first], since=since)

    def _changes(self) -> Iterator[float]:
        up = self.zone.up
        for number in range(self.first + 1, len(up)):
            if up[number] != up[number - 1]:
                yield (number - self.first) * self.zone.tick
        yield math.inf


def told(found: Sequence[zones.Zone], fallback: forecast.Fallback | None) -> Iterator[dict[str, Told]]:
    """Forecast and truth of each job that may run in all of these: hours of the way, and what they cost."""
    job = forecast.Job(WORK, INTERVAL, SAVE, RESTART, SHARE)
    tick, ticks = found[0].tick, len(found[0].up)
    known = [learnt(zone) for zone in found]
    for first in range(round(LEARNING / tick), ticks - round(LEFT_OVER * WORK / tick), round(EVERY / tick)):
        records = [one[first - 1] for one in known]
        places = [
            forecast.Learnt(one, first * tick, region=spots.region(zone.pool))
            for zone, one in zip(found, records, strict=True)
        ]
        ahead = [Trace(zone, first, one) for zone, one in zip(found, records, strict=True)]
        limit = (ticks - first) * tick
        says = forecast.forecast(job, places, fallback=fallback, runs=RUNS, seed=first, limit=limit)
        (came,) = forecast.forecast(job, ahead, fallback=fallback, runs=1, seed=first, limit=limit).runs
        yield {
            "wall": _compared(says, came, lambda run: run.wall),
            "cost": _compared(says, came, _cost(found)),
        }


def _cost(found: Sequence[zones.Zone]) -> Callable[[forecast.Run], float]:
    """With the zones' mean prices, as a plan has one for all of them."""
    spot, bought = statistics.mean(one.spot for one in found), statistics.mean(one.on_demand for one in found)
    return lambda run: run.spot * spot + run.on_demand * bought


def _compared(says: forecast.Forecast, came: forecast.Run, figure: Callable[[forecast.Run], float]) -> Told:
    found = says.of(figure)
    return Told(found.mean, found.low, found.high, figure(came))


Cases = Mapping[str, Sequence[Mapping[str, Told]]]
"""Jobs by case, each with its figures."""


def bias(jobs: Sequence[Told]) -> float:
    """Mean forecast over mean truth, less 1."""
    return statistics.mean(one.mean for one in jobs) / statistics.mean(one.came for one in jobs) - 1


def coverage(jobs: Sequence[Told]) -> float:
    """The share of the truths within the 80 %."""
    return statistics.mean(one.covered for one in jobs)


def cases(some: Sequence[zones.Zone]) -> Cases:
    """Every job in a set of pools, by the way and the number of pools; without those of no jobs."""
    found = {
        f"{way}_{name}": [job for group in pools.some(some, many) for job in told(group, fallback)]
        for name, many in PLACES.items()
        if many <= len(some)
        for way, fallback in WAYS.items()
    }
    return {case: jobs for case, jobs in found.items() if jobs}


def table(group: str, found: Cases) -> str:
    """Bias and coverage by case."""
    heads = "".join(f"{f'{figure}: bias':>12}{'in 80 %':>9}" for figure in FIGURES)
    lines = [f"{f'plan, {group}':20}{'jobs':>6}{heads}"]
    for case, jobs in found.items():
        columns = [[one[figure] for one in jobs] for figure in FIGURES]
        cells = "".join(f"{bias(one):>+12.1%}{coverage(one):>9.0%}" for one in columns)
        lines.append(f"{case:20}{len(jobs):>6}{cells}")
    return "\n".join(lines)


def measure(report: Report, found: Sequence[traces.Trace], options: argparse.Namespace) -> None:
    """Bias and coverage in each set of traces: of all jobs, and by the way and the number of pools.

    Raises:
        TraceError: no set has traces long enough; the message says what to do.

    """
    try:
        sets = zones.sets(options.traces, found)
    except (FileNotFoundError, ValueError) as error:
        raise traces.TraceError(str(error)) from error
    measured = {group: some for group, zones_ in sets.items() if (some := cases(zones_))}
    if not measured:
        least = f"{LEARNING + LEFT_OVER * WORK:.0f} hours"
        raise traces.TraceError(f"no set of traces has {least} in common; name a folder with longer ones")
    for group, some in measured.items():
        say(table(group, some) + "\n")
        for figure in FIGURES:
            for case, jobs in some.items():
                _add(report, f"{figure}_{case}_{group}", [one[figure] for one in jobs])
            _add(report, f"{figure}_{group}", [one[figure] for jobs in some.values() for one in jobs])
    report.notes["plan_runs"] = {
        group: {case: len(jobs) for case, jobs in some.items()} for group, some in measured.items()
    }


def _add(report: Report, name: str, jobs: Sequence[Told]) -> None:
    report.figure(f"plan_bias_{name}", bias(jobs))
    report.figure(f"plan_coverage_{name}", coverage(jobs))
