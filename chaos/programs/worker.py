"""A worker that counts, and writes each thing it has done into a ledger that outlives its machine.

Alone it needs no PyTorch; several meet in an all-reduce in each step. Its state is a chain of digests, one
for each step, and the list of lives that did them: a step that is lost or counted twice shows in its end.

Environment: CHAOS_STEPS, CHAOS_STEP_SECONDS, CHAOS_LEDGER (a folder), CHAOS_NODE, and the operator's.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spottrain

STEPS = int(os.environ["CHAOS_STEPS"])
PAUSE = float(os.environ["CHAOS_STEP_SECONDS"])
MEET_SECONDS = 1800.0
"""As long as torch itself waits for the others."""


class Ledger:
    """One process's lines. Each is one write to a file of its own, so no kill can take back a whole line."""

    def __init__(self, folder: Path) -> None:
        job, index = os.environ["SPOTTRAIN_JOB"], int(os.environ["SPOTTRAIN_INDEX"])
        attempt = int(os.environ["SPOTTRAIN_ATTEMPT"])
        self._who = {
            "job": job,
            "uid": os.environ["SPOTTRAIN_JOB_UID"],
            "attempt": attempt,
            "attempt_id": os.environ["SPOTTRAIN_ATTEMPT_ID"],
            "index": index,
            "node": os.environ["CHAOS_NODE"],
        }
        path = folder / f"{job}.{index}.{attempt}.{secrets.token_hex(4)}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def note(self, event: str, **fields: Any) -> None:
        """Write a line; it is in the kernel's hands on return."""
        line = {"at": time.time(), "event": event, **self._who, **fields}
        os.write(self._file, (json.dumps(line) + "\n").encode())


class Ear(logging.Handler):
    """Hears what the library says and notes which saves the store has acknowledged."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        text = record.getMessage()
        found = dict(re.findall(r"(\w+)=(\S+)", text.partition(" event=")[2]))
        event = text.partition(" event=")[2].partition(" ")[0]
        if event == "saved":
            self._ledger.note("committed", step=int(found["step"]), commit=found["commit"])
        self._ledger.note("said", text=text)


class State:
    """All that has been done, and by whom."""

    def __init__(self) -> None:
        self.next = 0
        self.digest = ""
        self.lives: list[list[Any]] = []

    def do(self, step: int) -> None:
        """One step of work."""
        self.digest = hashlib.sha256(f"{self.digest} {step}".encode()).hexdigest()
        me = os.environ["SPOTTRAIN_ATTEMPT_ID"]
        if not self.lives or self.lives[-1][0] != me:
            self.lives.append([me, step, step])
        self.lives[-1][2] = step
        self.next = step + 1

    def load(self, folder: Path) -> None:
        """Take it from a checkpoint."""
        vars(self).update(json.loads((folder / "state.json").read_text()))

    def write(self, folder: Path) -> None:
        """Put it into a checkpoint."""
        (folder / "state.json").write_text(json.dumps(vars(self)))


def meet(workers: int) -> Callable[[int], None]:
    """Find the other workers; returns what brings all of them to the same step.

    Waiting is done in Python, where a SIGTERM is heard, before torch waits in native code.
    """
    import torch  # noqa: PLC0415 - it takes seconds, and one worker alone needs none of it
    import torch.distributed as dist  # noqa: PLC0415

    rank, address = int(os.environ["PET_NODE_RANK"]), os.environ["PET_MASTER_ADDR"]
    store = find(lambda: open_store(dist, "localhost" if rank == 0 else address, first=rank == 0))
    store.set(f"here-{rank}", "1")
    find(lambda: store.check([f"here-{other}" for other in range(workers)]))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=workers)

    def together(step: int) -> None:
        most = torch.tensor([step, -step])
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        if most.tolist() != [step, -step]:
            raise SystemExit(f"this rank is at step {step}, others at {most.tolist()}")

    return together


def open_store(dist: Any, host: str, *, first: bool) -> Any:
    """The meeting place of torch, which worker 0 keeps; None when it is not there yet."""
    try:
        return dist.TCPStore(
            host, int(os.environ["PET_MASTER_PORT"]), is_master=first, wait_for_workers=False
        )
    except (dist.DistError, RuntimeError):
        return None


def find(probe: Callable[[], Any]) -> Any:
    """Ask until there is an answer."""
    deadline = time.monotonic() + MEET_SECONDS
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise SystemExit("the others did not come")
        time.sleep(0.2)
    return answer


def alone(step: int) -> None:
    """Nobody to wait for."""
    del step


def train(ledger: Ledger, together: Callable[[int], None]) -> State:
    """Do all steps that are not done yet."""
    state = State()
    with spottrain.session() as run:
        ledger.note("restoring")
        first = run.restore(state.load)
        ledger.note("restored", step=first - 1, digest=state.digest)
        if state.next != first:
            ledger.note("torn", step=first - 1, text=f"the state restored is that before step {state.next}")
        for step in range(first, STEPS):
            time.sleep(PAUSE)
            together(step)
            state.do(step)
            ledger.note("done", step=step)
            if run.should_save(step) or step == STEPS - 1:
                run.save(step, state.write)
            if run.stopping:
                break
    return state


def main() -> None:
    """Work, and say how it ended."""
    ledger = Ledger(Path(os.environ["CHAOS_LEDGER"]))
    ledger.note("started")
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    logging.getLogger("spottrain").addHandler(Ear(ledger))
    # Where indexes go their own ways each of them is alone.
    workers = int(os.environ["SPOTTRAIN_WORKERS"]) if os.environ["CHAOS_TOGETHER"] == "yes" else 1
    try:
        state = train(ledger, meet(workers) if workers > 1 else alone)
        ledger.note("finished", step=state.next - 1, digest=state.digest, lives=state.lives)
    except BaseException as error:
        ledger.note("left", text=f"{type(error).__name__}: {error}")
        raise
    if workers > 1:
        sys.modules["torch"].distributed.destroy_process_group()


if __name__ == "__main__":
    main()
