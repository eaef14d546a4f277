"""Reads 60 samples in three epochs of shuffled batches through torchdata's loader, and says which.

Arguments: the loader's workers. Environment: STEP_SECONDS and the library's own.
"""

import os
import sys
import time
from collections.abc import Iterator

import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import spottrain

SAMPLES, BATCH, EPOCHS = 60, 4, 3
PER_EPOCH = SAMPLES // BATCH

torch.manual_seed(1)
loader = StatefulDataLoader(range(SAMPLES), batch_size=BATCH, shuffle=True, num_workers=int(sys.argv[1]))
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())


def endless() -> Iterator[torch.Tensor]:
    """Batches, one epoch after the other."""
    while True:
        yield from loader


with spottrain.session() as run:
    run.track(model=model, optimizer=optimizer, data=loader)
    batches = endless()
    for step in run.steps(EPOCHS * PER_EPOCH):
        samples = next(batches)
        loss = model(samples[:, None] / SAMPLES).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
        print(
            f"step={step} loss={loss.item()!r} samples={samples.tolist()} time={time.time():.3f} rank=0",
            flush=True,
        )
