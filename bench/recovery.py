"""`make bench-recovery`: how fast lost gangs run again, beside JobSet on the same control plane.

Prints a table and writes build/bench/recovery.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import functools
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench import cold, gangs, moments, plane, systems, vanished, watching
from bench import report as reports
from bench.moments import Moments
from bench.report import OUT, Bar, Report, finish
from demo import facts
from demo.errors import DemoError
from demo.facts import Fault
from lab.cluster import Lab
from lab.errors import LabError

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
    "ratio_one_gang": Bar(0.25),
    "ratio_many_gangs": Bar(0.2),
    "ratio_one_gang_tuned": Bar(0.5),
    "ratio_many_gangs_tuned": Bar(0.5),
    "twentieth_over_first": Bar(1.3),
    "vanished_node_seconds": Bar(45.0),
}


@dataclass
class Contestant:
    """A system with the gangs it is measured by, and a small one that shows that it is at work."""

    system: systems.System
    gangs: watching.Gangs
    small: watching.Gangs

    def recover(self, lab: Lab) -> float:
        """Start the system, see it at work, and measure; seconds of the gang in the middle."""
        self.system.start(lab, reports.log(self.system))
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
            system.start(lab, reports.log(system))
            large, small = (
                stack.enter_context(gangs.running(lab, system, *size)) for size in ((count, workers), SMALL)
            )
            system.stop(lab)
            found.append(Contestant(system, large, small))
        try:
            yield found
        finally:
            for one in found:
                one.system.start(lab, reports.log(one.system))


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
        report.figure(f"ratio_{name}", ours / theirs)


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
    report.figure("twentieth_over_first", last / first)


def vanish(report: Report, lab: Lab, rounds: int) -> None:
    """A node stops renewing its lease."""
    ours = []
    for _ in range(rounds):
        found = vanished.measure(lab)
        report.add("vanished_node", "spottrain", found.ours)
        ours.append(found.ours)
        report.notes["vanished_node_stock_job"] = found.stock_words()
    report.figure("vanished_node_seconds", statistics.median(ours))


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


def run(report: Report, options: argparse.Namespace) -> None:
    """All parts, or those that were asked for."""
    if set(options.parts) & set(ON_KWOK):
        beside_jobset(report, options)
    if "cold" in options.parts:
        die(report, options.rounds, keep=options.keep)


def beside_jobset(report: Report, options: argparse.Namespace) -> None:
    """The parts on machines that kwok plays."""
    lab = plane.up()
    both: tuple[systems.System, ...] = (systems.Spottrain(), systems.JobSet())
    try:
        for system in both:
            system.start(lab, reports.log(system))
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
    return finish(Report("recovery", BARS), functools.partial(run, options=options), LabError, DemoError)


if __name__ == "__main__":
    sys.exit(main())
