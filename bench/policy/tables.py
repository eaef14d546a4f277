"""The deadline's results as tables: those published for 30 pools beside those measured here."""

import collections.abc as cabc
import statistics

from bench.policy.compare import BEST, Run
from bench.policy.replay import HOUR

KINDS = ("> 2/3", "middle", "< 1/3", "all")
"""Of runs, by the share of their time in which the pool has capacity."""

PUBLISHED: dict[str, tuple[float, ...]] = {
    "on-demand only": (1.003, 1.003, 1.003, 1.003, 47.7),
    "wait for spot + safety net": (0.437, 0.837, 0.977, 0.627, 10.2),
    "UP, h = 2d (as published)": (0.404, 0.704, 0.956, 0.577, 5.2),
    "UP, h = 0": (0.396, 0.694, 0.953, 0.570, 4.5),
    "GEPA's evolved rule": (0.393, 0.686, 0.947, 0.565, 4.0),
    "ours, nothing known": (0.392, 0.690, 0.949, 0.566, 4.1),
    "ours": (0.382, 0.687, 0.942, 0.558, 3.2),
    BEST: (0.354, 0.625, 0.923, 0.525, 0.0),
}
"""AWS 2022, AWS 2023 and GCP H100 together, 720 runs, by a reference of the same kind as ours."""


def kind(run: Run) -> str:
    """Which column it belongs to."""
    return KINDS[0] if run.share > 2 / 3 else KINDS[2] if run.share < 1 / 3 else KINDS[1]


def whole(title: str, runs: cabc.Sequence[Run]) -> str:
    """Cost over on-demand by rule and kind, and the points above the omniscient."""
    head = "".join(f"{one:>8}" for one in (*KINDS, "points"))
    lines = [f"{title}, {len(runs)} runs".ljust(28) + f"{head}   | 30 pools:{head}"]
    for name in runs[0].costs:
        figures = [*(_cost(runs, name, one) for one in KINDS), _points(runs, name)]
        lines.append(f"{name:28}{_cells(figures)}   |          {_cells(PUBLISHED[name])}")
    return "\n".join(lines)


def _cost(runs: cabc.Sequence[Run], name: str, which: str) -> float | None:
    chosen = [run.costs[name] for run in runs if which in {kind(run), "all"}]
    return statistics.fmean(chosen) if chosen else None


def _points(runs: cabc.Sequence[Run], name: str) -> float:
    return statistics.fmean(run.above(name) for run in runs)


def _cells(figures: cabc.Sequence[float | None]) -> str:
    *costs, points = figures
    cells = [f"{'-':>8}" if one is None else f"{one:>8.3f}" for one in costs]
    return "".join(cells) + f"{points:>8.1f}"


def by_setting(runs: cabc.Sequence[Run]) -> str:
    """Points above the omniscient by rule, set and setting."""
    settings = sorted({(run.task.left, run.task.terms.start) for run in runs})
    lines = []
    for group in sorted({run.group for run in runs}):
        head = "".join(f"{f'{left / HOUR:.0f}h/{start / HOUR:.2f}':>10}" for left, start in settings)
        lines.append(f"{f'{group}, points above':28}{head}")
        lines += [
            f"{name:28}" + "".join(_mean(runs, group, name, one) for one in settings)
            for name in runs[0].costs
            if name != BEST
        ]
    return "\n".join(lines)


def _mean(runs: cabc.Sequence[Run], group: str, name: str, setting: tuple[float, float]) -> str:
    chosen = [run for run in runs if run.group == group and (run.task.left, run.task.terms.start) == setting]
    return f"{_points(chosen, name):>10.2f}" if chosen else f"{'-':>10}"
