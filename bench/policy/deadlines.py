"""The deadline's part of `make bench-policy`: the tables, the gaps, and what a decision takes."""

import argparse
import collections.abc as cabc
import statistics
import time
import timeit

from bench.policy import compare, tables
from bench.policy.compare import OURS, Pool
from bench.policy.replay import HOUR
from bench.policy.traces import Trace, TraceError
from bench.report import Bar, Report, say
from spottrain.policy.deadline import Moment, Place

BARS = {
    "gap_aws2022": Bar(4.7),
    "gap_h100": Bar(2.5),
    "gap_tight_aws2022": Bar(2.1),
    "gap_tight_h100": Bar(1.1),
    "missed_deadlines": Bar(0.0),
    "seconds_of_10000_runs": Bar(60.0),
    "solve_seconds": Bar(0.5),
    "decision_milliseconds": Bar(5.0),
}


def measure(report: Report, found: cabc.Sequence[Trace], options: argparse.Namespace) -> None:
    """Compare all rules, count what is missed, and time solves and decisions."""
    pools = [Pool(trace) for trace in found]
    runs = compare.compare(pools, options.starts)
    if not runs:
        shortest = min(task.left for task in compare.tasks()) / HOUR
        raise TraceError(
            f"no trace is as long as a deadline ({shortest:.0f} hours); name a folder with longer ones"
        )
    for group in sorted({run.group for run in runs}):
        chosen = [run for run in runs if run.group == group]
        say(tables.whole(group, chosen) + "\n")
        report.figure(f"gap_{group}", statistics.fmean(run.above(OURS) for run in chosen))
        close = [run.above(OURS) for run in chosen if compare.tight(run.task)]
        report.figure(f"gap_tight_{group}", statistics.fmean(close))
    say(tables.by_setting(runs) + "\n")
    solved, begun = _solving(pools), time.process_time()
    late, total = compare.missed(pools, options.runs)
    solving = _solving(pools) - solved
    replaying = time.process_time() - begun - solving
    report.notes["runs"] = {"compared": len(runs), "for_missed_deadlines": total}
    report.figure("missed_deadlines", late)
    report.figure("seconds_of_10000_runs", solving + replaying * 10_000 / total)
    report.figure("solve_seconds", max(second for pool in pools for second in pool.solves))
    report.figure("decision_milliseconds", decision(pools[0]))


def _solving(pools: cabc.Sequence[Pool]) -> float:
    """CPU seconds that went into plans so far."""
    return sum(second for pool in pools for second in pool.solves)


def decision(pool: Pool) -> float:
    """Milliseconds that a decision takes which a plan has to look up: as a thousand take seconds."""
    task = compare.tasks()[0]
    plan = pool.plan(0, task.terms)
    moment = Moment(task.work, task.left, Place.IDLE, there=False, age=1)
    return min(timeit.repeat(lambda: plan.decide(moment), number=1000))
