"""How good `spottrain plan` is: its forecasts against runs that are replayed on public traces.

For each pool of the traces and many moments: what would have been learnt of the pool until then (hazards from
its past alone), what the plan would have said of a job that begins then, and what it took in truth, by the
trace. The job of the replay saves and restarts as the forecast's does: what is compared is capacity.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import pools, zones
from bench.policy import traces
from bench.report import Report
from spottrain.policy import forecast, hazard

WORK = 24.0
LEARNING = 72.0
"""Hours of the trace that are seen before the first forecast."""
EVERY = 12.0
"""Hours between two moments at which a job begins."""
LEFT_OVER = 4.0
"""How many times its work must be left of the trace for a job to begin."""
RUNS = 200
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

    def future(self, draw: random.Random) -> forecast.Weather:  # noqa: ARG002
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
        places = [forecast.Learnt(one, first * tick) for one in records]
        says = forecast.forecast(job, places, fallback=fallback, runs=RUNS, seed=first)
        traces = [Trace(zone, first, one) for zone, one in zip(found, records, strict=True)]
        (came,) = forecast.forecast(job, traces, fallback=fallback, runs=1, seed=first).runs
        if came.done:
            cost = _cost(found)
            yield {"wall": _compared(says, came, lambda run: run.wall), "cost": _compared(says, came, cost)}


def _cost(found: Sequence[zones.Zone]) -> Callable[[forecast.Run], float]:
    """With the zones' mean prices, as a plan has one for all of them."""
    spot, bought = statistics.mean(one.spot for one in found), statistics.mean(one.on_demand for one in found)
    return lambda run: run.spot * spot + run.on_demand * bought


def _compared(says: forecast.Forecast, came: forecast.Run, figure: Callable[[forecast.Run], float]) -> Told:
    found = says.of(figure)
    return Told(found.mean, found.low, found.high, figure(came))


def measure(report: Report, _: Sequence[traces.Trace], options: argparse.Namespace) -> None:
    """Bias (of the mean: forecast over truth, less 1) and coverage, on spot alone and with a fallback.

    For jobs that may run in any of five zones; as `…_two` in two, and as `…_one` in one alone.

    Raises:
        TraceError: there are no zones, or fewer than five; the message says what to do.

    """
    try:
        found = zones.load(options.traces)
        groups = {"": pools.some(found, 5), "_two": pools.some(found, 2), "_one": pools.some(found, 1)}
    except (FileNotFoundError, ValueError) as error:
        raise traces.TraceError(str(error)) from error
    for name, some in groups.items():
        for way, fallback in (("spot", None), ("mixed", forecast.Fallback())):
            jobs = [one for group in some for one in told(group, fallback)]
            report.figure(f"plan_runs_{way}{name}", len(jobs))
            for figure in ("wall", "cost"):
                each = [one[figure] for one in jobs]
                mean, came = (
                    statistics.mean(column) for column in zip(*((e.mean, e.came) for e in each), strict=True)
                )
                report.figure(f"plan_bias_{figure}_{way}{name}", mean / came - 1)
                covered = statistics.mean(one.covered for one in each)
                report.figure(f"plan_coverage_{figure}_{way}{name}", covered)
