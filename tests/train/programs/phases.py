"""One process with phases without steps. Arguments: warm-up, evaluation and a long step, in seconds.

Steps of 0.1 s; after the 25th an evaluation, in the 50th a long step.
"""

import sys
import time
from pathlib import Path

import spottrain

warm_up, evaluation, long_step = (float(word) for word in sys.argv[1:4])


def phase(name: str, seconds: float) -> None:
    """Busy with something that has no steps."""
    print(f"begins {name}", flush=True)
    time.sleep(seconds)


def write(folder: Path) -> None:
    """Something to save."""
    (folder / "x").write_text("x")


with spottrain.session() as run:
    first = run.restore(lambda _: None)
    phase("warm-up", warm_up)
    for step in range(first, 1000):
        time.sleep(0.1)
        if step == 50:
            phase("long step", long_step)
        print(f"step {step} at {time.monotonic()}", flush=True)
        if run.should_save(step):
            run.save(step, write)
        if run.stopping:
            break
        if step == 25:
            phase("evaluation", evaluation)
