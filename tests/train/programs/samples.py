"""1,000 samples, 2 epochs in batches of 10, by two loader workers; prints which samples each step took.

Environment: STEP_SECONDS and the library's own.
"""

import os
import time
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader

import spottrain

SAMPLES, BATCH, EPOCHS = 1000, 10, 2


class Position:
    """Where this rank is in its data: how many batches were trained on. The loader is ahead of that."""

    def __init__(self) -> None:
        self.done = 0

    def rest(self) -> Iterator[list[int]]:
        """The batches that are still to come, each epoch in an order of its own."""
        for epoch in range(EPOCHS):
            order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch)).tolist()
            for first in range(0, SAMPLES, BATCH):
                if epoch * SAMPLES + first >= self.done * BATCH:
                    yield order[first : first + BATCH]

    def state_dict(self) -> dict[str, int]:
        """See torch."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """See torch."""
        self.done = state["done"]


torch.manual_seed(1)
position = Position()
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30, gamma=0.9)
batches: Iterator[torch.Tensor] | None = None
with spottrain.session() as run:
    run.track(model=model, optimizer=optimizer, scheduler=scheduler, data=position)
    for step in run.steps(SAMPLES * EPOCHS // BATCH):
        if batches is None:
            batches = iter(DataLoader(range(SAMPLES), batch_sampler=list(position.rest()), num_workers=2))
        chosen = next(batches)
        (rate,) = scheduler.get_last_lr()
        loss = model(chosen.float().unsqueeze(1) / SAMPLES).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        position.done += 1
        time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
        print(f"took {step} rate {rate!r} loss {loss.item()!r} ids {chosen.tolist()}", flush=True)
