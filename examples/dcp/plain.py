"""A network that is sharded over the ranks (FSDP2) learns scikit-learn's handwritten digits, on the CPU.

`plain.py` and `train.py` are the same program, without spottrain and with it. Under torchrun. Environment:
STEPS (in all), STEP_SECONDS (a pause per step: it stands for the time that a step of a real model takes on a
GPU).
"""

import os
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = int(os.environ.get("STEPS", "300"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0"))
BATCH = 32


def sharded() -> nn.Sequential:
    """The network, each of its layers and the whole sharded over all ranks."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)  # the same parameters on every rank, before they are sharded
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def batch(step: int, size: int) -> torch.Tensor:
    """This rank's indices at `step`: each epoch is one shuffle of the data, dealt out to the ranks."""
    world, rank = dist.get_world_size(), dist.get_rank()
    per_epoch = size // (BATCH * world)
    shuffle = torch.Generator().manual_seed(step // per_epoch)
    first = (step % per_epoch) * BATCH * world + rank
    return torch.randperm(size, generator=shuffle)[first : first + BATCH * world : world]


def main() -> None:
    """Train; rank 0 prints the loss over all digits at the end."""
    dist.init_process_group("gloo")
    data = load_digits()
    pixels, labels = torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
    model = sharded()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1000 + dist.get_rank())  # each rank drops out neurons of its own

    def train(step: int) -> None:
        chosen = batch(step, len(pixels))
        loss = nn.functional.cross_entropy(model(pixels[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(PAUSE)
        line = f"step={step} loss={loss.item()!r} time={time.time():.3f} rank={dist.get_rank()}"
        print(line, flush=True)

    for step in range(STEPS):
        train(step)
    model.eval()
    with torch.no_grad():
        final = float(nn.functional.cross_entropy(model(pixels), labels))
    if dist.get_rank() == 0:
        print(f"final_loss={final!r}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
