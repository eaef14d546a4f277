"""Data-parallel training of a small network on scikit-learn's handwritten digits, under torchrun, on the CPU.

The lines marked "spottrain" are all it takes to survive a lost node. Environment:
DIGITS_STEPS (steps in all), DIGITS_SEED, DIGITS_STEP_SECONDS (a pause per step: it stands for the time that a
step of a real model takes on a GPU, so that a run lasts long enough to be interrupted).
"""

import os
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import spottrain  # spottrain

STEPS = int(os.environ.get("DIGITS_STEPS", "300"))
SEED = int(os.environ.get("DIGITS_SEED", "1"))
PAUSE = float(os.environ.get("DIGITS_STEP_SECONDS", "0"))
BATCH = 32


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """All 1,797 digits: pixels in 0..1 of shape (n, 64), and labels of shape (n,)."""
    digits = load_digits()
    return torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)


def batch(step: int, size: int) -> torch.Tensor:
    """This rank's indices at `step`: each epoch is one shuffle of the data, dealt out to the ranks."""
    world, rank = dist.get_world_size(), dist.get_rank()
    per_epoch = size // (BATCH * world)
    shuffle = torch.Generator().manual_seed(SEED + step // per_epoch)
    first = (step % per_epoch) * BATCH * world + rank
    return torch.randperm(size, generator=shuffle)[first : first + BATCH * world : world]


def final_loss(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> float:
    """The loss over all digits, without dropout."""
    model.eval()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(pixels), labels))


def main() -> None:
    """Train; each rank prints the loss of its part of each batch, rank 0 at the end that of all digits."""
    dist.init_process_group("gloo")
    torch.manual_seed(SEED)
    pixels, labels = data()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    # With this flag torch doesn't regroup gradients after its first step. A restarted run has a first step
    # too, and regrouping there would add numbers in another order: the loss would differ in its last bits.
    parallel = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.manual_seed(SEED * 1000 + dist.get_rank())  # each rank drops out neurons of its own
    with spottrain.session() as run:  # spottrain
        run.track(model=model, optimizer=optimizer)  # spottrain
        for step in run.steps(STEPS):  # spottrain
            chosen = batch(step, len(pixels))
            loss = nn.functional.cross_entropy(parallel(pixels[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(PAUSE)
            print(f"step={step} loss={loss.item():.4f} time={time.time():.3f} rank={run.rank}", flush=True)
    if dist.get_rank() == 0:
        print(f"final_loss={final_loss(model, pixels, labels)!r}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
