"""What the policies take for granted, beside what others measured: hazards by age, and intervals."""

import argparse
import collections.abc as cabc
import math

from bench import forecasts, zones
from bench.policy.traces import Trace, TraceError
from bench.report import Report, say
from spottrain.policy import hazard, interval

BANDS = ("to 0.5 h", "to 1 h", "to 2 h", "to 4 h", "to 8 h", "later")
PUBLISHED_EXITS = ("1.3-1.7", "0.6-0.8", "0.3-0.5", "0.14-0.29", "0.09-0.19", "0.04-0.10")
PUBLISHED_RETURNS = ("1.4-2.9", "-", "-", "0.1-0.3", "0.1-0.3", "-")
"""Per hour by age, in AWS 2022, AWS 2023 and the H100 zones."""

PUBLISHED_GOODPUT = {
    (1, 120, 3, 0.8): (0.899, 0.9185, 0.9185),
    (5, 360, 10, 0.8): (0.875, 0.8993, 0.8993),
    (2, 30, 5, 0.8): (0.672, 0.7182, 0.7185),
}
"""By minutes of a save, between reclaims, of a restart, and the share of notices that suffice: goodput with
Daly's interval, which leaves the notices out, with √(2CM/(1-p)), and the best that there is."""
GRID = [1.01**step for step in range(-300, 900)]
"""Minutes in which the best interval is looked for."""


def measure(report: Report, found: cabc.Sequence[Trace], options: argparse.Namespace) -> None:
    """Print both tables; the figure is the most that our interval lacks of the best goodput, in points.

    Raises:
        TraceError: there are no zones; the message says what to do.

    """
    try:
        sets = zones.sets(options.traces, found)
    except (FileNotFoundError, ValueError) as error:
        raise TraceError(str(error)) from error
    say(ages(sets) + "\n")
    say(intervals() + "\n")
    lacking = (best - ours for _, ours, best in map(goodputs, PUBLISHED_GOODPUT))
    report.figure("interval_points_below_best", 100 * max(lacking))


def ages(sets: cabc.Mapping[str, cabc.Sequence[zones.Zone]]) -> str:
    """Losses and returns of capacity per hour, by how long it has been there or away."""
    records = {group: [forecasts.learnt(zone)[-1] for zone in some] for group, some in sets.items()}
    lines = [f"{'per hour, by age':24}" + "".join(f"{band:>11}" for band in BANDS)]
    lines += _kind(
        "lost", PUBLISHED_EXITS, hazard.EXITS, {g: [r.exits for r in s] for g, s in records.items()}
    )
    back = {group: [one.returns for one in some] for group, some in records.items()}
    lines += _kind("back", PUBLISHED_RETURNS, hazard.RETURNS, back)
    return "\n".join(lines)


def _kind(
    what: str, published: cabc.Sequence[str], prior: hazard.Rates, seen: cabc.Mapping[str, list[hazard.Curve]]
) -> cabc.Iterator[str]:
    yield f"{f'{what}, published':24}" + "".join(f"{one:>11}" for one in published)
    for group, curves in seen.items():
        events, hours = ([sum(band) for band in zip(*rows, strict=True)] for rows in _columns(curves))
        rates = (one / of if of else math.nan for one, of in zip(events, hours, strict=True))
        yield f"{f'{what}, {group}':24}" + "".join(f"{one:>11.2f}" for one in rates)
    yield f"{f'{what}, our prior':24}" + "".join(f"{one:>11.2f}" for one in prior)


def _columns(curves: list[hazard.Curve]) -> tuple[list[hazard.Rates], list[hazard.Rates]]:
    return [one.events for one in curves], [one.hours for one in curves]


def intervals() -> str:
    """Goodput by interval, ours beside that published."""
    heads = "".join(f"{head:>12}" for head in ("without p", "with p", "best"))
    lines = [f"{'goodput: C, M, R, p':24}{heads}   | published:{heads}"]
    for case, published in PUBLISHED_GOODPUT.items():
        cells, beside = ("".join(f"{one:>12.4f}" for one in row) for row in (goodputs(case), published))
        lines.append(f"{', '.join(map(str, case)):24}{cells}   |           {beside}")
    return "\n".join(lines)


def goodputs(case: tuple[float, float, float, float]) -> tuple[float, float, float]:
    """With Daly's interval (FGCS 22(3), 2006), with ours, and the best."""
    cost, mean, restart, share = case
    lives = interval.Lives(cost, mean, restart, share)
    part = cost / (2 * mean)
    daly = math.sqrt(2 * cost * mean) * (1 + math.sqrt(part) / 3 + part / 9) - cost
    ours = interval.optimal(cost=60 * cost, mean_time=60 * mean, notice_share=share) / 60
    return lives.goodput(daly), lives.goodput(ours), max(map(lives.goodput, GRID))
