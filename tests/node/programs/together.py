"""Ranks that count together, a step every 0.2 s; each tells when SIGTERM reaches it, and checks the count."""

import os
import signal
import time

import torch
import torch.distributed as dist

import spottrain

RANK, WORLD = int(os.environ["PET_NODE_RANK"]), int(os.environ["PET_NNODES"])
MEETING = f"tcp://{os.environ['PET_MASTER_ADDR']}:{os.environ['PET_MASTER_PORT']}"


class Counter:
    """Alike on every rank."""

    value = 0

    def state_dict(self) -> dict[str, int]:
        """See torch."""
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """See torch."""
        self.value = state["value"]


signal.signal(signal.SIGTERM, lambda *_: print(f"told time={time.time():.3f}", flush=True))
dist.init_process_group("gloo", init_method=MEETING, rank=RANK, world_size=WORLD)
counter = Counter()
with spottrain.session() as run:
    run.track(counter=counter)
    for step in run.steps(100_000):
        if counter.value != step * WORLD:
            raise SystemExit(f"a count of {counter.value} at step {step}")
        ones = torch.ones(1, dtype=torch.int64)
        dist.all_reduce(ones)
        counter.value += int(ones)
        print(f"did step={step}", flush=True)
        time.sleep(0.2)
