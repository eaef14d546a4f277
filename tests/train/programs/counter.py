"""One process that counts. Arguments: total. Environment: STEP_SECONDS, MY_URI and the library's own."""

import json
import os
import sys
import time
from pathlib import Path

import spottrain

total = int(sys.argv[1])
count = 0


def load(folder: Path) -> None:
    """Read the count."""
    global count  # noqa: PLW0603 - a program
    count = json.loads((folder / "count.json").read_text())


def write(folder: Path) -> None:
    """Write the count."""
    (folder / "count.json").write_text(json.dumps(count))


with spottrain.session(uri=os.environ.get("MY_URI")) as run:
    first = run.restore(load)
    print(f"resume {first} count {count}", flush=True)
    for step in range(first, total):
        time.sleep(float(os.environ.get("STEP_SECONDS", "0.05")))
        count += 1
        print(f"step {step}", flush=True)
        if run.should_save(step):
            run.save(step, write)
        if run.stopping:
            break
print(f"done count {count}", flush=True)
