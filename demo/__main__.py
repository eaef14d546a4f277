"""`python -m demo`: see docs/demo.md."""

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from demo import current_target
from demo.current_target import CurrentTarget
from demo.errors import DemoError
from demo.lab_target import LabTarget
from demo.performance import perform
from demo.play import Script
from demo.screen import Screen
from demo.target import Target
from lab.cluster import Lab
from lab.errors import LabError
from lab.metadata import PROVIDER_IDS

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Give the demo once; returns the exit code. What cannot be done is one sentence on stderr and 1."""
    options = _parser().parse_args(arguments)
    screen = Screen()
    try:
        with _alone(options.out):
            return perform(_target(options, screen), _script(options), ROOT, options.out, screen)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the next `make demo` clears up what is left", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    script = Script()
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="a training run loses two of its nodes and ends as if nothing happened",
    )
    parser.add_argument("--cluster", choices=["lab", "current"], default="lab", help="default: %(default)s")
    parser.add_argument("--lab", default="main", metavar="NAME", help="which lab (default: %(default)s)")
    parser.add_argument(
        "--cloud", choices=PROVIDER_IDS, default="aws", help="that gives notice in the lab (%(default)s)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="folder for the evidence")
    parser.add_argument(
        "--steps", type=int, default=script.steps, help="steps of training (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=script.seed, help="of both runs (default: %(default)s)")
    parser.add_argument(
        "--interval", type=float, default=script.interval, help="seconds between saves (%(default)s)"
    )
    return parser


def _target(options: argparse.Namespace, screen: Screen) -> Target:
    if options.cluster == "current":
        return CurrentTarget(current_target.parse(os.environ), screen)
    try:
        return LabTarget(Lab(options.lab), ROOT, screen, cloud=options.cloud)
    except LabError as error:
        raise DemoError(str(error)) from error


def _script(options: argparse.Namespace) -> Script:
    return Script(steps=options.steps, seed=options.seed, interval=options.interval)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One demo at a time: two would take each other's nodes away."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DemoError("another demo is running: wait for its end") from error
        yield


if __name__ == "__main__":
    sys.exit(main())
