"""One process that saves when told, and steps all the time. Arguments: bytes of state.

A line `save` on standard input asks for a save of its own; how long each step and each write took is printed.
"""

import os
import sys
import threading
import time
from pathlib import Path

import spottrain

size = int(sys.argv[1])
wanted = threading.Event()


def read() -> None:
    """Wait for the word."""
    for _ in sys.stdin:
        wanted.set()


def write(folder: Path) -> None:
    """Several files, so that an upload can be given up between two."""
    for number in range(4):
        (folder / f"part-{number}").write_bytes(os.urandom(size // 4))


threading.Thread(target=read, daemon=True).start()
with spottrain.session() as run:
    print(f"resume {run.restore(lambda _: None)}", flush=True)
    last = time.monotonic()
    for step in range(100_000):
        time.sleep(0.05)
        if run.should_save(step) or wanted.is_set():
            wanted.clear()
            run.save(step, write)
        now = time.monotonic()
        print(f"step {step} took {now - last:.3f}", flush=True)
        last = now
        if run.stopping:
            break
