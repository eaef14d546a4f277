"""`python -m chaos`: see docs/chaos.md."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos import play
from chaos.play import Script
from demo.errors import DemoError
from demo.screen import Screen
from lab.cluster import Lab
from lab.errors import LabError

ROOT: Final = Path(__file__).resolve().parent.parent
MINUTES: Final = 15.0
SEEDS: Final = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all is as it must be. What cannot be done is one sentence on stderr and 1."""
    options = _parser().parse_args(arguments)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    script = Script(seed=seed, seconds=60 * options.minutes, keep=options.keep)
    try:
        return play.perform(Lab(options.lab), script, ROOT, options.out, Screen())
    except (DemoError, LabError) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"chaos: interrupted; python3 -m lab --name {options.lab} remove ends the lab", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description="random faults against jobs")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="for how long faults begin (default: %(default)g)"
    )
    parser.add_argument("--seed", type=int, help="of the faults; default: a new one, which is printed")
    parser.add_argument("--lab", default="chaos", metavar="NAME", help="made anew (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running afterwards")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "chaos", help="folder for the evidence")
    return parser


if __name__ == "__main__":
    sys.exit(main())
