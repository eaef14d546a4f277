"""A training loop that knows how many steps it has. Arguments: steps, seconds of each."""

import json
import sys
import time
from pathlib import Path

import spottrain

total, pause = int(sys.argv[1]), float(sys.argv[2])
count = 0


def load(folder: Path) -> None:
    """Read the count."""
    global count  # noqa: PLW0603 - a program
    count = json.loads((folder / "count.json").read_text())


def write(folder: Path) -> None:
    """Write the count."""
    (folder / "count.json").write_text(json.dumps(count))


with spottrain.session() as run:
    for step in range(run.restore(load), total):
        time.sleep(pause)
        count += 1
        print(f"step {step}", flush=True)
        run.done(step, write, total=total)
