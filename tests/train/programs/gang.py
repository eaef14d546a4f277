"""Ranks that meet in an all-reduce in each step.

Environment: STEPS, STEP_SECONDS, AHEAD (a rank that waits after the step instead of before it, so that it is
ahead of the others), ALIKE (no rank has anything of its own), and torchrun's.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

import spottrain

STEPS = int(os.environ.get("STEPS", "1000"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0.2"))
AHEAD = int(os.environ.get("AHEAD", "-1"))


class Counter:
    """State of a rank's own."""

    def __init__(self) -> None:
        self.seen = 0

    def state_dict(self) -> dict[str, int]:
        """See torch."""
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """See torch."""
        self.seen = state["seen"]


def main() -> None:
    """Count together."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model, counter = torch.nn.Linear(2, 2), Counter()
    with spottrain.session() as run:
        run.track(model=model, data=None if os.environ.get("ALIKE") else counter)
        for step in run.steps(STEPS):
            if rank != AHEAD:
                time.sleep(PAUSE)
            total = torch.ones(1)
            dist.all_reduce(total)
            counter.seen += 1 + rank
            print(f"step {step} rank {rank} seen {counter.seen}", flush=True)
            if rank == AHEAD:
                time.sleep(PAUSE)
    print(f"done {rank}, fsdp loaded: {'torch.distributed.fsdp' in sys.modules}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
