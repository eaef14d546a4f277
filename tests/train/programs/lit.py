"""Lightning over 40 samples, three epochs of ten batches, validated twice in each epoch.

Says which samples a step has read, its loss, and what each validation found. Environment: STEP_SECONDS.
"""

import os
import time

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torchdata.stateful_dataloader import StatefulDataLoader

import spottrain
from spottrain.train import lightning

SAMPLES, BATCH, EPOCHS = 40, 4, 3


class Network(LightningModule):
    """A line, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
        """Say what was read."""
        loss = (self.layers(batch[:, None] / SAMPLES) - 1).square().mean()
        time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
        print(f"step={self.global_step} loss={loss.item()!r} samples={batch.tolist()} rank=0", flush=True)
        return loss

    def validation_step(self, batch: torch.Tensor, _: int) -> None:
        """What the plateau's scheduler goes by."""
        self.log("val_loss", (self.layers(batch[:, None] / SAMPLES) - 1).square().mean())

    def on_validation_epoch_end(self) -> None:
        """Say what was found."""
        if not self.trainer.sanity_checking:
            print(f"validated {self.global_step} {self.trainer.callback_metrics['val_loss'].item()!r}", flush=True)

    def configure_optimizers(self) -> dict[str, object]:
        """A rate that halves each epoch."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)}


seed_everything(1)
model = Network()
own = torch.Generator().manual_seed(1)
loader = StatefulDataLoader(range(SAMPLES), batch_size=BATCH, shuffle=True, generator=own)
trainer = Trainer(
    max_epochs=EPOCHS,
    val_check_interval=0.5,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
with spottrain.session() as run:
    lightning.fit(run, trainer, model, loader, torch.utils.data.DataLoader(range(SAMPLES), batch_size=BATCH))
print(f"ended {[parameter.tolist() for parameter in model.parameters()]}", flush=True)
