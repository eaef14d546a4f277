"""What a benchmark has measured, its bars, a table for people and a file for programs."""

import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import systems

OUT = systems.ROOT / "build" / "bench"


@dataclass(frozen=True)
class Bar:
    """`at_most` unless `least`: then the figure must be as high. And it must not be below `low`."""

    value: float
    least: bool = False
    low: float = -math.inf

    def met(self, figure: float) -> bool:
        """Whether the figure is on the right side of it."""
        return figure >= self.value if self.least else self.low <= figure <= self.value

    @property
    def plain(self) -> float | tuple[float, float]:
        """As the file has it: one number, or the two that the figure is to be between."""
        return self.value if self.low == -math.inf else (self.low, self.value)

    def __str__(self) -> str:
        """As the table shows it."""
        if self.low > -math.inf:
            return f"{self.low:.2f} to {self.value:.2f}"
        return f"{'>=' if self.least else '<='} {self.value:.2f}"


@dataclass
class Report:
    """Seconds by case and system, and the figures made of them; written to build/bench/<name>.json."""

    name: str
    bars: Mapping[str, Bar]
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    folder: Path = OUT

    def add(self, case: str, system: str, value: float) -> None:
        """One measured round."""
        self.seconds.setdefault(case, {}).setdefault(system, []).append(value)
        say(f"{case:26} {system:10} {value:7.2f} s   load {systems.environment_load()}")

    def median(self, case: str, system: str) -> float:
        """Of all rounds."""
        return statistics.median(self.seconds[case][system])

    def figure(self, name: str, value: float) -> None:
        """One result; what is measured so far is in the file at once."""
        self.figures[name] = value
        self.write()

    def write(self) -> None:
        """To the folder."""
        bars = {name: bar.plain for name, bar in self.bars.items()}
        document = {**self.figures, "seconds": self.seconds, "bars": bars, **self.notes}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.name}.json").write_text(json.dumps(document, indent=1) + "\n")

    def table(self) -> str:
        """For people."""
        lines = [f"{'figure':36}{'measured':>10}{'bar':>15}"]
        for name, value in self.figures.items():
            bar = self.bars.get(name)
            sign = "" if bar is None else str(bar)
            verdict = "" if bar is None else ("  met" if bar.met(value) else "  NOT MET")
            lines.append(f"{name:36}{value:>10.2f}{sign:>15}{verdict}")
        return "\n".join([*lines, f"written to build/bench/{self.name}.json"])

    def met(self) -> bool:
        """Whether every bar that was measured is met."""
        return all(self.bars[name].met(value) for name, value in self.figures.items() if name in self.bars)


def finish(report: Report, measure: Callable[[Report], None], *troubles: type[Exception]) -> int:
    """Measure, and print the table, also of what was measured before a trouble; the exit code.

    0 when every bar that was measured is met.
    """
    report.notes["load_at_start"] = systems.environment_load()
    try:
        measure(report)
    except troubles as error:
        print(f"bench: {error}", file=sys.stderr)
        whole = False
    else:
        whole = True
    report.notes["load_at_end"] = systems.environment_load()
    report.write()
    print(report.table())
    return 0 if whole and report.met() else 1


def say(text: str) -> None:
    """Progress, at once."""
    print(text, flush=True)


def log(system: systems.System) -> Path:
    """Where a system's output goes."""
    OUT.mkdir(parents=True, exist_ok=True)
    return OUT / f"{system.name}.log"
