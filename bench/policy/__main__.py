"""`make bench-policy`: what the policies are worth, replayed on public traces of spot capacity.

Prints tables and writes build/bench/policy.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import collections.abc as cabc
import functools
import sys
from pathlib import Path

from bench import forecasts, pools
from bench.policy import deadlines, models, traces
from bench.report import Report, finish

Part = cabc.Callable[[Report, cabc.Sequence[traces.Trace], argparse.Namespace], None]
PARTS: dict[str, Part] = {
    "deadline": deadlines.measure,
    "pools": pools.measure,
    "plan": forecasts.measure,
    "models": models.measure,
}
"""Each adds its figures to the report and prints its tables; its bars are among `BARS`."""
BARS = {**deadlines.BARS, **pools.BARS, **forecasts.BARS}


def run(report: Report, options: argparse.Namespace) -> None:
    """The parts that were asked for."""
    found = traces.read(options.traces)
    for part in options.parts:
        PARTS[part](report, found, options)


def main(argv: cabc.Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.policy", description=__doc__)
    parser.add_argument("--traces", type=Path, default=traces.SHIPPED, help="folder (default: those shipped)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--starts", type=int, default=4, help="runs by pool and setting that are compared")
    parser.add_argument("--runs", type=int, default=10_000, help="in which no deadline may be missed")
    options = parser.parse_args(argv)
    measure = functools.partial(run, options=options)
    return finish(Report("policy", BARS), measure, traces.TraceError, OSError)


if __name__ == "__main__":
    sys.exit(main())
