"""Hugging Face's Trainer over 40 samples, three epochs of ten batches, validated twice in each epoch.

Says which samples a step has read, its loss, and what each validation found. Arguments: steps. It trains from
the beginning, with a save in each step, and then once more from the checkpoint of each of these.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PretrainedConfig,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

import spottrain
from spottrain.train import huggingface

SAMPLES, BATCH, EPOCHS = 40, 4, 3
running: list[spottrain.Run] = []


def wait_for_the_save(run: spottrain.Run) -> None:
    """Until the next one can be due."""
    while run._saver and not run._saver.idle:
        time.sleep(0.01)


class Model(PreTrainedModel):  # type: ignore[misc] # not there when types are checked
    """A line, with dropout; it remembers what it was given."""

    config_class = PretrainedConfig

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        self.told = ""
        self.post_init()

    def forward(self, number: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """The loss, and what was predicted."""
        found = self.layers(number[:, None] / SAMPLES)
        loss = (found - 1).square().mean()
        if self.training:
            self.told = f"loss={loss.item()!r} samples={number.int().tolist()}"
        return {"loss": loss, "logits": found}


class Say(TrainerCallback):  # type: ignore[misc] # not there when types are checked
    """Prints."""

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A step."""
        wait_for_the_save(running[-1])
        print(f"step={state.global_step - 1} {more['model'].told} rank={args.process_index}", flush=True)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        """A validation."""
        print(
            f"validated {state.global_step} {metrics['eval_loss']!r} best={state.best_metric!r}", flush=True
        )


def train(restore: str | int) -> None:
    """Train, from there."""
    set_seed(1)
    data = [{"number": torch.tensor(float(n)), "labels": torch.tensor(0)} for n in range(SAMPLES)]
    arguments = TrainingArguments(
        output_dir=str(Path(os.environ["SPOTTRAIN_SCRATCH"]) / "out"),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        lr_scheduler_type="reduce_lr_on_plateau",
        metric_for_best_model="loss",
        learning_rate=0.05,
        eval_strategy="steps",
        eval_steps=5,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    model = Model(PretrainedConfig())
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data, callbacks=[Say()])
    print(f"from {restore}", flush=True)
    with spottrain.session(restore=restore) as run:
        running.append(run)
        huggingface.train(run, trainer)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    weights = [parameter.tolist() for parameter in model.parameters()]
    print(f"ended {len(losses)} {sum(losses)!r} {trainer.state.best_metric!r} {weights}", flush=True)


train("Latest")
for step in sys.argv[1:]:
    train(int(step))
