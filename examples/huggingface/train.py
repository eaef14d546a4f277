"""A small vision transformer learns scikit-learn's handwritten digits with Hugging Face's Trainer.

`plain.py` and `train.py` are the same program, without spottrain and with it. Environment: STEPS (in all),
STEP_SECONDS (a pause per step: it stands for the time that a step of a real model takes on a GPU).
"""

import os
import time

import torch
from sklearn.datasets import load_digits
from transformers import (
    Trainer,
    TrainerCallback,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)

import spottrain
from spottrain.train import huggingface

STEPS = int(os.environ.get("STEPS", "300"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0"))


def digits() -> list[dict[str, torch.Tensor]]:
    """All 1,797 digits: pixels in 0..1 of shape (1, 8, 8), and a label."""
    data = load_digits()
    pixels = torch.tensor(data.images / 16, dtype=torch.float32).unsqueeze(1)
    return [{"pixel_values": p, "labels": t} for p, t in zip(pixels, torch.tensor(data.target), strict=True)]


class Pause(TrainerCallback):
    """Waits after each step, and says which one it was."""

    def on_step_end(self, args, state, control, **kwargs):  # noqa: ANN001, ANN003, ANN201, ARG002, D102
        time.sleep(PAUSE)
        print(f"step={state.global_step - 1} time={time.time():.3f} rank={args.process_index}", flush=True)


def main() -> None:
    """Train, and print the loss over all digits at the end."""
    set_seed(1)
    shape = {"image_size": 8, "patch_size": 2, "num_channels": 1, "hidden_size": 32, "intermediate_size": 64}
    config = ViTConfig(
        **shape, num_hidden_layers=2, num_attention_heads=2, num_labels=10, hidden_dropout_prob=0.1
    )
    model, data = ViTForImageClassification(config), digits()
    args = TrainingArguments(
        output_dir="out",
        max_steps=STEPS,
        per_device_train_batch_size=32,
        learning_rate=1e-3,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=data, eval_dataset=data, callbacks=[Pause()])
    with spottrain.session() as run:
        huggingface.train(run, trainer)
    final = trainer.evaluate()["eval_loss"]
    if trainer.is_world_process_zero():
        print(f"final_loss={final!r}", flush=True)


if __name__ == "__main__":
    main()
