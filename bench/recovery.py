"""`make bench-recovery`: how fast lost gangs run again, beside JobSet on the same control plane.

Prints a table and writes build/bench/recovery.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import cold, gangs, moments, plane, systems, vanished, watching
from bench.moments import Moments
from demo import facts
from demo.errors import DemoError
from demo.facts import Fault
from lab.cluster import Lab
from lab.errors import LabError

OUT = systems.ROOT / "build" / "bench"
TUNED = 1000
ONE = (1, 64)
SMALL = (1, 2)
MANY = (50, 8)
REPEATED_WORKERS = 16
REPEATED_TIMES = 5
RECLAIMS = 20

ON_KWOK = ("repeat", "defaults", "tuned", "vanished")
ON_KUBELETS = ("cold",)
DEATHS = {facts.KILL: "cold_death", facts.UNPLUG: "unplugged_death"}

BARS = {
    "ratio_one_gang": 0.25,
    "ratio_many_gangs": 0.2,
    "ratio_one_gang_tuned": 0.5,
    "ratio_many_gangs_tuned": 0.5,
    "twentieth_over_first": 1.3,
    "vanished_node_seconds": 45.0,
}


@dataclass
class Report:
    """What was measured so far: seconds by case and system, and the figures made of them."""

    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def add(self, case: str, system: str, value: float) -> None:
        """One measured round."""
        self.seconds.setdefault(case, {}).setdefault(system, []).append(value)
        say(f"{case:26} {system:10} {value:7.2f} s   load {systems.environment_load()}")

    def median(self, case: str, system: str) -> float:
        """Of all rounds."""
        return statistics.median(self.seconds[case][system])

    def write(self) -> None:
        """To build/bench/recovery.json."""
        document = {**self.figures, "seconds": self.seconds, "bars": BARS, **self.notes}
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "recovery.json").write_text(json.dumps(document, indent=1) + "\n")

    def table(self) -> str:
        """For people."""
        lines = [f"{'figure':26}{'measured':>10}{'bar':>8}"]
        for name, value in self.figures.items():
            bar = BARS.get(name)
            verdict = "" if bar is None else ("  met" if value <= bar else "  NOT MET")
            lines.append(f"{name:26}{value:>10.2f}{'' if bar is None else f'{bar:.2f}':>8}{verdict}")
        return "\n".join(lines)


def say(text: str) -> None:
    """Progress, at once."""
    print(text, flush=True)


@dataclass
class Contestant:
    """A system with the gangs it is measured by, and a small one that shows that it is at work."""

    system: systems.System
    gangs: watching.Gangs
    small: watching.Gangs

    def recover(self, lab: Lab) -> float:
        """Start the system, see it at work, and measure; seconds of the gang in the middle."""
        self.system.start(lab, OUT / f"{self.system.name}.log")
        gangs.recover(lab.api, self.small)
        seconds = statistics.median(gangs.recover(lab.api, self.gangs))
        self.system.stop(lab)
        return seconds


@contextmanager
def contestants(lab: Lab, count: int, workers: int) -> Iterator[list[Contestant]]:
    """Both systems with `count` whole gangs each; neither runs until the end, when they tidy up."""
    with ExitStack() as stack:
        found = []
        for system in (systems.Spottrain(), systems.JobSet()):
            system.start(lab, OUT / f"{system.name}.log")
            large, small = (
                stack.enter_context(gangs.running(lab, system, *size)) for size in ((count, workers), SMALL)
            )
            system.stop(lab)
            found.append(Contestant(system, large, small))
        try:
            yield found
        finally:
            for one in found:
                one.system.start(lab, OUT / f"{one.system.name}.log")


def compare(report: Report, lab: Lab, suffix: str, rounds: int) -> None:
    """One gang of 64, and 50 gangs of 8 at once; by turns, so that a busy machine is so for both.

    While one is measured the other doesn't run: its watches would cost the measured one
    some of the API server's time.
    """
    for (count, workers), case, times in ((ONE, "one_gang", rounds + 2), (MANY, "many_gangs", rounds)):
        name = f"{case}{suffix}"
        with contestants(lab, count, workers) as both:
            for _ in range(times):
                for one in both:
                    report.add(name, one.system.name, one.recover(lab))
        ours, theirs = (report.median(name, one.system.name) for one in both)
        report.figures[f"ratio_{name}"] = ours / theirs
        report.write()


def repeat(report: Report, lab: Lab) -> None:
    """The twentieth reclaim of a job, and right before it the first of another: both meet one load."""
    ours = systems.Spottrain()
    for _ in range(REPEATED_TIMES):
        with gangs.running(lab, ours, 2, REPEATED_WORKERS) as whole:
            for _ in range(RECLAIMS - 1):
                gangs.recover(lab.api, whole, only="g0")
            report.add("first_reclaim", ours.name, *gangs.recover(lab.api, whole, only="g1"))
            report.add("twentieth_reclaim", ours.name, *gangs.recover(lab.api, whole, only="g0"))
    last, first = (report.median(f"{name}_reclaim", ours.name) for name in ("twentieth", "first"))
    report.figures["twentieth_over_first"] = last / first
    report.write()


def vanish(report: Report, lab: Lab, rounds: int) -> None:
    """A node stops renewing its lease."""
    ours = []
    for _ in range(rounds):
        found = vanished.measure(lab)
        report.add("vanished_node", "spottrain", found.ours)
        ours.append(found.ours)
        report.notes["vanished_node_stock_job"] = found.stock_words()
    report.figures["vanished_node_seconds"] = statistics.median(ours)
    report.write()


def die(report: Report, rounds: int, *, keep: bool) -> None:
    """A node of a real gang dies without notice; the figures are those of the round in the middle."""
    found: dict[str, list[Moments]] = {}
    told = report.notes.setdefault("deaths", [])

    def note(fault: Fault, seen: Moments) -> None:
        case = DEATHS[fault.kind]
        report.add(case, "spottrain", seen.stepped)
        told.append({"case": case, "node": fault.node, "rank": fault.rank, "seconds_since": seen.rounded()})
        found.setdefault(case, []).append(seen)
        middle = moments.typical(found[case])
        report.figures[f"{case}_seconds"] = middle.stepped
        report.figures |= {f"{case}_{part}": seconds for part, seconds in middle.parts.items()}
        report.write()

    cold.measure("cold", cold.deaths(rounds), OUT / "cold", note, keep=keep)


def run(options: argparse.Namespace) -> Report:
    """All parts, or those that were asked for."""
    report = Report()
    report.notes["load_at_start"] = systems.environment_load()
    if set(options.parts) & set(ON_KWOK):
        beside_jobset(report, options)
    if "cold" in options.parts:
        die(report, options.rounds, keep=options.keep)
    report.notes["load_at_end"] = systems.environment_load()
    report.write()
    return report


def beside_jobset(report: Report, options: argparse.Namespace) -> None:
    """The parts on machines that kwok plays."""
    lab = plane.up()
    both: tuple[systems.System, ...] = (systems.Spottrain(), systems.JobSet())
    try:
        for system in both:
            system.start(lab, OUT / f"{system.name}.log")
        with plane.fleet(lab):
            if "repeat" in options.parts:
                repeat(report, lab)
            if "defaults" in options.parts:
                compare(report, lab, "", options.rounds)
            if "tuned" in options.parts:
                lab.limit_controller_manager(TUNED, TUNED)
                compare(report, lab, "_tuned", options.rounds)
                lab.limit_controller_manager(None, None)
        if "vanished" in options.parts:
            vanish(report, lab, options.rounds)
    finally:
        for system in both:
            system.stop(lab)
        if not options.keep:
            lab.remove()


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parts = (*ON_KWOK, *ON_KUBELETS)
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=3, help="how often each case is measured (default: 3)")
    parser.add_argument("--keep", action="store_true", help="leave the labs `bench` and `cold` running")
    options = parser.parse_args(argv)
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        report = run(options)
    except (LabError, DemoError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(report.table())
    print(f"written to {Path('build/bench/recovery.json')}")
    return 0 if all(value <= BARS.get(name, value) for name, value in report.figures.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
