"""Counts to a hundred, a step every 0.2 s, with the library: the smallest that has something to lose."""

import json
import time
from pathlib import Path

import spottrain

count = 0


def load(folder: Path) -> None:
    global count  # noqa: PLW0603 - it is the whole state of the program
    count = json.loads((folder / "count.json").read_text())


def write(folder: Path) -> None:
    (folder / "count.json").write_text(json.dumps(count))


with spottrain.session() as run:
    first = run.restore(load)
    if count != first:
        raise SystemExit(f"restored a count of {count} for step {first}")
    for step in range(first, 100):
        count += 1
        time.sleep(0.2)
        if run.should_save(step):
            run.save(step, write)
        if run.stopping:
            break
