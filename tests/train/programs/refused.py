"""Settings that can't outlive a machine. Argument: which of them; says what the error was."""

import sys

import torch
from lightning import pytorch as pl
from lightning.pytorch.demos.boring_classes import BoringModel
from torch.utils.data import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import Trainer, TrainingArguments

import spottrain
from spottrain import errors
from spottrain.train import huggingface, lightning

plain = {"report_to": "none", "use_cpu": True, "max_steps": 1, "eval_strategy": "steps"}


def trainer(**settings: object) -> None:
    """Hugging Face's."""
    with spottrain.session() as run:
        arguments = TrainingArguments("out", **plain, **settings)
        huggingface.train(run, Trainer(torch.nn.Linear(1, 1), arguments, eval_dataset=[]))


def dealt_out_by_torch() -> None:
    """Lightning's, with a sampler that forgets its epoch."""
    data = torch.randn(8, 32)
    loader = StatefulDataLoader(data, sampler=DistributedSampler(data, num_replicas=1, rank=0))
    with spottrain.session() as run:
        lightning.fit(run, pl.Trainer(accelerator="cpu", logger=False, max_steps=1), BoringModel(), loader)


refused = {
    "best": lambda: trainer(load_best_model_at_end=True, save_strategy="best", metric_for_best_model="loss"),
    "jit": lambda: trainer(enable_jit_checkpoint=True),
    "sampler": dealt_out_by_torch,
}
for name in sys.argv[1:]:
    try:
        refused[name]()
    except errors.ConfigError as error:
        print(f"{name}: {error}", flush=True)
