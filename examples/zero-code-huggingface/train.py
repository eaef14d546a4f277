"""A small BERT learns scikit-learn's handwritten digits, pixel by pixel, with Hugging Face's Trainer.

It is a program as people have them: it knows nothing of spottrain, lets the Trainer save every few steps, and
goes on from the Trainer's newest checkpoint if there is one. Environment: OUTPUT (the Trainer's folder),
STEPS (in all), STEP_SECONDS (a pause per step: it stands for the time that a real model's takes on a GPU).
"""

import os
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint

OUTPUT = os.environ.get("OUTPUT", "out")
STEPS = int(os.environ.get("STEPS", "300"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0"))


def digits() -> list[dict[str, torch.Tensor]]:
    """All 1,797 digits: 64 pixels, each a word out of 17, and a label."""
    data = load_digits()
    words = torch.tensor(data.data, dtype=torch.long)
    return [{"input_ids": p, "labels": t} for p, t in zip(words, torch.tensor(data.target), strict=True)]


class Pause(TrainerCallback):
    """Waits after each step, and says which one it was."""

    def on_step_end(self, args, state, control, **kwargs):  # noqa: ANN001, ANN003, ANN201, ARG002, D102
        time.sleep(PAUSE)
        print(f"step={state.global_step - 1}", flush=True)


def main() -> None:
    """Train, and print the loss over all digits at the end."""
    set_seed(1)
    shape = {"vocab_size": 17, "max_position_embeddings": 64, "hidden_size": 32, "intermediate_size": 64}
    config = BertConfig(**shape, num_hidden_layers=2, num_attention_heads=2, num_labels=10)
    model, data = BertForSequenceClassification(config), digits()
    args = TrainingArguments(
        output_dir=OUTPUT,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        learning_rate=3e-3,
        logging_steps=10,
        save_steps=20,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=data, eval_dataset=data, callbacks=[Pause()])
    Path(OUTPUT).mkdir(exist_ok=True)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(OUTPUT))
    print(f"final_loss={trainer.evaluate()['eval_loss']!r}", flush=True)


if __name__ == "__main__":
    main()
