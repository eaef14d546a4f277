"""A small network learns scikit-learn's handwritten digits with Lightning, on the CPU.

`plain.py` and `train.py` are the same program, without spottrain and with it. Environment: STEPS (in all),
STEP_SECONDS (a pause per step: it stands for the time that a step of a real model takes on a GPU).
"""

import os
import time

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

import spottrain
from spottrain.train import lightning

STEPS = int(os.environ.get("STEPS", "300"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0"))


def digits() -> TensorDataset:
    """All 1,797 digits: pixels in 0..1 of shape (64,), and a label."""
    data = load_digits()
    return TensorDataset(torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target))


class Network(LightningModule):
    """One hidden layer, and what it learns from."""

    def __init__(self) -> None:
        super().__init__()
        self.data = digits()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:  # noqa: D102
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        time.sleep(PAUSE)
        line = f"step={self.global_step} loss={loss.item()!r} time={time.time():.3f} rank={self.global_rank}"
        print(line, flush=True)
        return loss

    def train_dataloader(self) -> StatefulDataLoader:  # noqa: D102
        sampler = StatefulDistributedSampler(self.data, self.trainer.world_size, self.trainer.global_rank)
        return StatefulDataLoader(self.data, batch_size=32, sampler=sampler)

    def configure_optimizers(self) -> torch.optim.Optimizer:  # noqa: D102
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    """Train; rank 0 prints the loss over all digits at the end."""
    seed_everything(1)
    model = Network()
    trainer = Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),  # torchrun's
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.strategy.setup_environment()  # the ranks meet here already, not in fit()
    with spottrain.session() as run:
        lightning.fit(run, trainer, model)
    model.eval()
    with torch.no_grad():
        pixels, labels = model.data.tensors
        final = float(nn.functional.cross_entropy(model.layers(pixels), labels))
    if trainer.is_global_zero:
        print(f"final_loss={final!r}", flush=True)


if __name__ == "__main__":
    main()
