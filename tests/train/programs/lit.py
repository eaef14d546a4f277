"""Lightning over 40 samples, three epochs of ten batches, validated twice in each epoch.

Says which samples a step has read, its loss, and what each validation found. Arguments: steps. It trains from
the beginning, with a save in each step, and then once more from the checkpoint of each of these.
"""

import sys
import time

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torchdata.stateful_dataloader import StatefulDataLoader

import spottrain
from spottrain.train import lightning

SAMPLES, BATCH, EPOCHS = 40, 4, 3
running: list[spottrain.Run] = []


def wait_for_the_save(run: spottrain.Run) -> None:
    """Until the next one can be due."""
    while run._saver and not run._saver.idle:
        time.sleep(0.01)


class Network(LightningModule):  # type: ignore[misc] # not there when types are checked
    """A line, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
        """Say what was read."""
        loss = (self.layers(batch[:, None] / SAMPLES) - 1).square().mean()
        wait_for_the_save(running[-1])
        print(f"step={self.global_step} loss={loss.item()!r} samples={batch.tolist()} rank=0", flush=True)
        return loss

    def validation_step(self, batch: torch.Tensor, _: int) -> None:
        """What the plateau's scheduler goes by."""
        self.log("val_loss", (self.layers(batch[:, None] / SAMPLES) - 1).square().mean())

    def on_validation_epoch_end(self) -> None:
        """Say what was found."""
        if not self.trainer.sanity_checking:
            print(
                f"validated {self.global_step} {self.trainer.callback_metrics['val_loss'].item()!r}",
                flush=True,
            )

    def configure_optimizers(self) -> dict[str, object]:
        """A rate that halves each epoch."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
        }


def train(restore: str | int) -> None:
    """Train, from there."""
    seed_everything(1)
    model = Network()
    loader = StatefulDataLoader(range(SAMPLES), batch_size=BATCH, shuffle=True)
    trainer = Trainer(
        max_epochs=EPOCHS,
        val_check_interval=0.5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    print(f"from {restore}", flush=True)
    with spottrain.session(restore=restore) as run:
        running.append(run)
        lightning.fit(
            run, trainer, model, loader, torch.utils.data.DataLoader(range(SAMPLES), batch_size=BATCH)
        )
    print(f"ended {[parameter.tolist() for parameter in model.parameters()]}", flush=True)


train("Latest")
for step in sys.argv[1:]:
    train(int(step))
