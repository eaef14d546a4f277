"""`make bench-notice`: how soon a gang knows that a machine of its is taken, and how much time it has.

Prints a table and writes build/bench/notice.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import functools
import math
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import agents, rounds
from bench.report import OUT, Bar, Report, finish
from bench.rounds import Bench
from demo.errors import DemoError
from lab.cluster import Lab
from lab.errors import LabError
from lab.metadata import PROVIDER_IDS

LAB: Final = "noticelab"
CLOUDS: Final = tuple(PROVIDER_IDS)
SHARES: Final = {"aws": 120, "azure": 30}
"""Windows in seconds, each on the cloud that gives it."""
PARTS: Final = (*CLOUDS, "work")

BARS = {
    "notices": Bar(200, least=True),
    "sigterm_p50_seconds": Bar(1.0),
    "sigterm_p99_seconds": Bar(2.5),
    "window_share_120": Bar(0.95, least=True),
    "window_share_30": Bar(0.85, least=True),
    "agent_mib": Bar(45),
    "agent_millicores": Bar(10),
    "steps_lost": Bar(1),
    "steps_lost_keeping": Bar(1),
}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that so great a share of them doesn't exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def run(report: Report, options: argparse.Namespace) -> None:
    """The parts that were asked for."""
    out = OUT / "notice"
    shutil.rmtree(out, ignore_errors=True)
    with rounds.prepared(Lab(LAB), out, report, keep=options.keep) as bench:
        for cloud in CLOUDS:
            if cloud in options.parts:
                heard(bench, cloud, options.notices)
        if "work" in options.parts:
            work(bench, out / "work", options.losses)
    report.figures |= conclusions(report.seconds, report.figures)


def heard(bench: Bench, cloud: str, count: int) -> None:
    """A cloud's notices, the share of its window, and what its agents take."""
    report = bench.report
    bench.of(cloud)
    bench.notices(cloud, count)
    report.figure("agent_mib", max(agents.peak_mib(bench.lab), report.figures.get("agent_mib", 0)))
    if cloud in SHARES:
        window = SHARES[cloud]
        report.figure(f"window_share_{window}", bench.share(cloud, window))


def work(bench: Bench, out: Path, times: int) -> None:
    """What a gang that trains loses by a notice, and what it still does of its window with `keepTraining`."""
    found = []
    for keep in (False, True):
        bench.of("aws")  # with all machines, also those that the run before has lost
        found.append(bench.trained(out, times, keep=keep))
    stopped, kept = found
    bench.report.figure("steps_lost", max(stopped.lost))
    bench.report.figure("steps_lost_keeping", max(kept.lost))
    bench.report.figure("training_share_30", statistics.median(stopped.shares))
    bench.report.figure("training_share_30_keeping", statistics.median(kept.shares))


def conclusions(
    seconds: Mapping[str, Mapping[str, list[float]]], figures: Mapping[str, float]
) -> dict[str, float]:
    """Figures from the rounds (by case and cloud), and from the figures of single clouds."""
    by_cloud = seconds.get(rounds.NOTICE, {})
    notices = [one for found in by_cloud.values() for one in found]
    deletes = [one for found in seconds.get(rounds.DELETE, {}).values() for one in found]
    measured = {
        "sigterm": notices,
        **{f"sigterm_{one}": found for one, found in by_cloud.items()},
        "delete": deletes,
    }
    found: dict[str, float] = {"notices": len(notices)} if notices else {}
    for name, values in measured.items():
        if values:
            found |= {f"{name}_p{part}_seconds": percentile(values, part / 100) for part in (50, 99)}
    idle = [value for name, value in figures.items() if name.startswith("agent_millicores_")]
    return {**found, "agent_millicores": max(idle)} if idle else found


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.notice", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--notices", type=int, default=52, help="of each cloud (default: %(default)s)")
    parser.add_argument("--losses", type=int, default=3, help="to a gang that trains (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help=f"leave the lab `{LAB}` running")
    options = parser.parse_args(argv)
    return finish(Report("notice", BARS), functools.partial(run, options=options), LabError, DemoError)


if __name__ == "__main__":
    sys.exit(main())
