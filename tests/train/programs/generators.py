"""Draws from every random generator in each step. Arguments: total steps, the step at which to end itself."""

import os
import random
import signal
import sys
import time

import numpy as np
import torch

import spottrain

total, last = int(sys.argv[1]), int(sys.argv[2])
random.seed(1)
np.random.seed(2)  # noqa: NPY002 - the global generator is what most programs use
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
with spottrain.session() as run:
    run.track(model=model, optimizer=optimizer, scheduler=scheduler)
    for step in run.steps(total):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        drawn = (random.random(), float(np.random.random()), float(torch.rand(())))  # noqa: NPY002
        print(f"drawn {step} {loss.item()!r} {scheduler.get_last_lr()} {drawn}", flush=True)
        if step == last:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)
