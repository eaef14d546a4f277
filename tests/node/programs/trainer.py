"""A training program that nobody may change: it saves as the Hugging Face Trainer does, and doesn't know us.

Arguments: folder, steps in all. It goes on from the newest `checkpoint-N`, saves every fifth step, keeps two.
Its state is the sum of 0, 1, 2, …, by which a step that was left out or done twice shows. Environment:
STEP_SECONDS; SIGTERM_SAVES, any text, for a save of the last step when it is told to end.
"""

import json
import os
import re
import shutil
import signal
import struct
import sys
import time
import zipfile
from pathlib import Path

folder, total = Path(sys.argv[1]), int(sys.argv[2])
told: list[int] = []
if os.environ.get("SIGTERM_SAVES"):
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))


def checkpoints() -> list[tuple[int, Path]]:
    """By their steps."""
    found = [(re.fullmatch(r"checkpoint-(\d+)", path.name), path) for path in folder.iterdir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def load() -> tuple[int, int]:
    """The next step, and the sum so far."""
    known = checkpoints()
    if not known:
        return 0, 0
    step, path = known[-1]
    state = json.loads((path / "trainer_state.json").read_text())
    with zipfile.ZipFile(path / "optimizer.pt") as archive:
        total_so_far = int(archive.read("optimizer/data.pkl"))
    if state["global_step"] != step:
        raise SystemExit(f"{path} is of step {state['global_step']}")
    return step, total_so_far


def save(step: int, total_so_far: int) -> None:
    """A checkpoint; the oldest goes."""
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    header = json.dumps({"w": {"dtype": "U8", "shape": [1024], "data_offsets": [0, 1024]}}).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(1024))
    with zipfile.ZipFile(path / "optimizer.pt", "w") as archive:
        archive.writestr("optimizer/data.pkl", str(total_so_far))
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    for _, old in checkpoints()[:-2]:
        shutil.rmtree(old)
    print(f"wrote {path.name}", flush=True)


step, total_so_far = load()
print(f"begin at {step} with {total_so_far}", flush=True)
while step < total and not told:
    total_so_far += step
    step += 1
    time.sleep(float(os.environ.get("STEP_SECONDS", "0.2")))
    print(f"step {step}", flush=True)
    if step % 5 == 0 or step == total or told:
        save(step, total_so_far)
if told:
    sys.exit(0)
print(f"done at {step} with {total_so_far}", flush=True)
