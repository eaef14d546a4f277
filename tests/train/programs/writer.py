"""One process that saves when it is told: a line `save N` on standard input; ends at the end of input."""

import sys
from pathlib import Path

import spottrain


def write(folder: Path) -> None:
    """Something to save."""
    (folder / "x").write_text("x")


with spottrain.session() as run:
    print(f"resume {run.restore(lambda _: None)}", flush=True)
    for line in sys.stdin:
        run.save(int(line.removeprefix("save ")), write)
