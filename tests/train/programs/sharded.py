"""Trains a sharded model (FSDP2), and says what it holds at the beginning and at the end. Under torchrun.

Arguments: steps in all. Environment: WHOLE (don't shard), and the library's own.
"""

import hashlib
import os
import sys
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import spottrain


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """A checksum of tensors, each put together from its shards."""
    found = hashlib.sha256()
    for tensor in tensors:
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        found.update(whole.detach().numpy().tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(7, 13), torch.nn.ReLU(), torch.nn.Linear(13, 1))
    if not os.environ.get("WHOLE"):
        fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)

    def tell(when: str) -> None:
        moments = [value for state in optimizer.state.values() for value in state.values()]
        held = f"model={digest(model.parameters())} optimizer={digest(moments)} lr={scheduler.get_last_lr()}"
        if dist.get_rank() == 0:
            print(f"{when} {held}", flush=True)

    with spottrain.session() as run:
        run.track(model=model, optimizer=optimizer, scheduler=scheduler)
        first = True
        for step in run.steps(int(sys.argv[1])):
            if first and step:
                tell("restored")
            first = False
            loss = model(torch.full((4, 7), float(step))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
    tell("ended")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
