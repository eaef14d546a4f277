"""A walk at random over shuffled data, a step at a time. Arguments: steps, and what it forgets to save.

`nothing`, `generator` (its random numbers start anew), `position` (its data starts anew), `saving` (all).
"""

import json
import random
import sys
import time
from pathlib import Path

import spottrain

total, forgets = int(sys.argv[1]), sys.argv[2]
data = list(range(1000))
random.Random(7).shuffle(data)
chance = random.Random(3)
state = {"place": 0.0, "next": 0}


def load(folder: Path) -> None:
    """Read it back."""
    saved = json.loads((folder / "state.json").read_text())
    state["place"] = saved["place"]
    if forgets != "position":
        state["next"] = saved["next"]
    if forgets != "generator":
        version, numbers, gauss = saved["generator"]
        chance.setstate((version, tuple(numbers), gauss))


def write(folder: Path) -> None:
    """Write all of it."""
    (folder / "state.json").write_text(json.dumps({**state, "generator": chance.getstate()}))


with spottrain.session() as run:
    for step in range(run.restore(load), total):
        time.sleep(0.02)
        sample = data[int(state["next"])]
        state["next"] += 1
        state["place"] += chance.random() + sample
        print(f"step {step} sample {sample} place {state['place']!r} time={time.time()}", flush=True)
        due = run.should_save(step)
        if forgets != "saving" and (due or step == total - 1):
            run.save(step, write)
        if run.stopping:
            break
