"""`make bench-scale`: a thousand gangs on one operator, and a job of ten thousand shards.

Prints a table and writes build/bench/scale.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import functools
import re
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench import gangs, plane, shards, systems, watching
from bench import report as reports
from bench.report import Bar, Report, finish
from lab import clock, process
from lab.cluster import Lab
from lab.errors import LabError

JOBS = 1000
SHARDS = 10_000
WORKERS = 8
TEAMS = 20
"""Namespaces that the gangs are in."""
SHARE = 10
"""One job in this many is hit at once."""
NODES = 128
GPUS = 64
IDLE_SECONDS = 30.0
PATIENCE = 900.0
_REQUEST = re.compile(r'spottrain_api_requests_total\{code="[^"]*",method="(\w+)",resource="([^"]*)"\} (\S+)')

BARS = {
    "p99_seconds": Bar(30.0),
    "peak_mib": Bar(400.0),
    "other_requests_per_reclaim": Bar(8.0),
    "ratio_shards": Bar(2.0, least=True),
}


@dataclass(frozen=True)
class Operator:
    """Our operator as its own metrics and the kernel show it."""

    lab: Lab
    system: systems.Spottrain

    def requests(self) -> dict[tuple[str, str], float]:
        """Sent so far, by method and resource."""
        with urllib.request.urlopen(self.system.url(self.lab, "/metrics"), timeout=30) as answer:  # noqa: S310
            text = answer.read().decode()
        found: dict[tuple[str, str], float] = {}
        for method, resource, count in _REQUEST.findall(text):
            found[method, resource] = found.get((method, resource), 0.0) + float(count)
        return found

    def peak_mib(self) -> float:
        """The most memory that it has had resident so far."""
        pid = process.find(self.system.pid_file(self.lab))
        if pid is None:
            raise LabError(f"the operator has ended; see {reports.log(self.system)}")
        return process.peak_bytes(pid) / 2**20


def since(before: Mapping[tuple[str, str], float], after: Mapping[tuple[str, str], float]) -> dict[str, int]:
    """What was sent between two looks, the most first."""
    sent = {key: round(count - before.get(key, 0.0)) for key, count in after.items()}
    ranked = sorted(sent.items(), key=lambda one: -one[1])
    return {" ".join(key): count for key, count in ranked if count}


def other_than_pods(sent: Mapping[str, int]) -> int:
    """All but the creates and deletes of pods, which a reclaim can't do without."""
    return sum(count for what, count in sent.items() if what not in {"POST pods", "DELETE pods"})


def measure(report: Report, operator: Operator, options: argparse.Namespace) -> None:
    """Start, idle, and several storms."""
    lab, count = operator.lab, options.jobs
    begun = clock.now()
    with gangs.running(lab, operator.system, count, WORKERS, teams=options.namespaces) as whole:
        report.figure("start_seconds", clock.now() - begun)
        _idle(report, operator)
        seconds: list[float] = []
        for number in range(options.rounds):
            first = number * count // SHARE
            names = [f"g{(first + one) % count}" for one in range(count // SHARE)]
            seconds += _storm(report, operator, whole, names)
            report.figure("p50_seconds", statistics.median(seconds))
            report.figure("p99_seconds", statistics.quantiles(seconds, n=100)[98])


def _idle(report: Report, operator: Operator) -> None:
    before, begun = operator.requests(), clock.now()
    time.sleep(IDLE_SECONDS)  # the interval that is measured
    sent = since(before, operator.requests())
    report.notes["idle_requests"] = sent
    report.figure("idle_requests_per_second", sum(sent.values()) / (clock.now() - begun))


def _storm(report: Report, operator: Operator, whole: watching.Gangs, names: Sequence[str]) -> list[float]:
    """Hit these gangs at once; seconds from each one's eviction until all its new pods are made."""
    lab = operator.lab
    whole.wait_quiet(len(whole.newest()), PATIENCE)
    newest = whole.newest()
    before = {name: newest[name] for name in names}
    sent = operator.requests()
    evicted = gangs.hit(lab.api, whole, names)
    made = whole.wait_made(before, PATIENCE)
    whole.wait_quiet(len(newest), PATIENCE)
    told = since(sent, operator.requests())
    report.notes["requests_of_a_storm"] = told
    report.figure("other_requests_per_reclaim", other_than_pods(told) / len(names))
    seconds = [moment - evicted[gang] for gang, moment in made.items()]
    report.add("storm", "spottrain", statistics.median(seconds))
    return seconds


def shard(report: Report, operator: Operator, options: argparse.Namespace) -> None:
    """One after the other, so that neither burdens the other."""
    lab = operator.lab
    stock = shards.rate(lab, shards.stock, options.shards, shards.STOCK_SECONDS)
    report.figure("shards_per_second_stock_job", stock)
    ours = shards.rate(lab, shards.ours, options.shards, shards.PATIENCE)
    report.figure("shards_per_second", ours)
    report.figure("ratio_shards", ours / stock)


@contextmanager
def running(lab: Lab) -> Iterator[Operator]:
    """The operator, and nothing beside it."""
    ours = systems.Spottrain()
    ours.start(lab, reports.log(ours))
    try:
        yield Operator(lab, ours)
    finally:
        ours.stop(lab)


def run(report: Report, options: argparse.Namespace) -> None:
    """The parts that were asked for."""
    lab = plane.up()
    try:
        with running(lab) as operator, plane.fleet(lab, NODES, GPUS):
            if "gangs" in options.parts:
                measure(report, operator, options)
            if "shards" in options.parts:
                shard(report, operator, options)
            report.figure("peak_mib", operator.peak_mib())
    finally:
        if not options.keep:
            lab.remove()


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"gangs of {WORKERS} (default: {JOBS})")
    parser.add_argument(
        "--namespaces", type=int, default=TEAMS, help=f"they are spread over (default: {TEAMS})"
    )
    parser.add_argument("--parts", nargs="+", choices=("gangs", "shards"), default=("gangs", "shards"))
    parser.add_argument("--shards", type=int, default=SHARDS, help=f"of the large job (default: {SHARDS})")
    parser.add_argument("--rounds", type=int, default=2, help="storms (default: 2)")
    parser.add_argument("--keep", action="store_true", help="leave the lab `bench` running")
    options = parser.parse_args(argv)
    return finish(Report("scale", BARS), functools.partial(run, options=options), LabError)


if __name__ == "__main__":
    sys.exit(main())
