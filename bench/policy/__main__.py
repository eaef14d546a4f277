"""`make bench-policy`: what the policies are worth, replayed on public traces of spot capacity.

Prints tables and writes build/bench/policy.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import collections.abc as cabc
import sys
from pathlib import Path

from bench.policy import deadlines, traces
from bench.report import Report

Part = cabc.Callable[[Report, cabc.Sequence[traces.Trace], argparse.Namespace], None]
PARTS: dict[str, Part] = {"deadline": deadlines.measure}
"""Each adds its figures to the report and prints its tables; its bars are among `BARS`."""
BARS = {**deadlines.BARS}


def main(argv: cabc.Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.policy", description=__doc__)
    parser.add_argument("--traces", type=Path, default=traces.SHIPPED, help="folder (default: those shipped)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--starts", type=int, default=4, help="runs by pool and setting that are compared")
    parser.add_argument("--runs", type=int, default=10_000, help="in which no deadline may be missed")
    options = parser.parse_args(argv)
    report = Report("policy", BARS)
    try:
        pools = traces.read(options.traces)
        for part in options.parts:
            PARTS[part](report, pools, options)
    except (traces.TraceError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(report.table())
    return 0 if report.met() else 1


if __name__ == "__main__":
    sys.exit(main())
