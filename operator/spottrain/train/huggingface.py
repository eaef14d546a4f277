"""Hugging Face's `transformers.Trainer` in a session.

    trainer = Trainer(model=model, args=args, train_dataset=data)   # sets torch.distributed up
    with spottrain.session() as run:
        huggingface.train(run, trainer)                             # in place of trainer.train()

A step counts as done when the Trainer begins the next one, or the next epoch, or ends: only then has it
logged and evaluated the step, and what follows from that (best metric, patience, a plateau's learning rate)
is part of what is saved. Saves are the Trainer's own folders `checkpoint-<step>`, made in each rank's own
place.
"""

import contextlib
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerState
from transformers.trainer_utils import TrainOutput

from spottrain import errors
from spottrain.train import session, tracked


def train(run: session.Run, trainer: Any, **options: Any) -> Any:
    """`trainer.train(**options)` from the newest checkpoint on, saved when the run says so; what it returns.

    Raises ConfigError for settings of the Trainer that can't outlive a machine, and SystemExit at a stop.
    """
    _refuse(trainer)
    kept = tracked.Kept()
    saves = _Saves(run, trainer, kept)
    first = run.restore(kept.load)
    folder = str(next(kept.folder.glob("checkpoint-*"))) if kept.folder else None
    trainer.add_callback(saves)
    try:
        if folder and 0 < trainer.args.max_steps <= first:
            return _finished(trainer, folder)
        return trainer.train(resume_from_checkpoint=folder, **options)
    finally:
        kept.forget()
        trainer.remove_callback(saves)


def _finished(trainer: Any, folder: str) -> TrainOutput:
    """What is left of a run that has done its `max_steps`: the Trainer would do one more."""
    trainer._load_from_checkpoint(folder)  # noqa: SLF001 - there is no public way
    trainer.state = TrainerState.load_from_json(f"{folder}/trainer_state.json")
    return TrainOutput(trainer.state.global_step, 0.0, {})


class _Saves(TrainerCallback):  # type: ignore[misc] # transformers is not there when types are checked
    """Tells the run of each step, and saves for it."""

    def __init__(self, run: session.Run, trainer: Any, kept: tracked.Kept) -> None:
        self._run = run
        self._trainer = trainer
        self._kept = kept
        self._step: int | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - the Trainer's
        """The optimizer has stepped; the log and the evaluation are still to come."""
        self._step = state.global_step - 1
        self._kept.forget()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """The step before this one is done."""
        self._done(state.max_steps)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """The last step of the epoch before is done."""
        self._done(state.max_steps)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """The last step is done, whether it was to be the last or the Trainer stopped early."""
        self._done(state.global_step)

    def _done(self, total: int) -> None:
        if self._step is not None:
            step, self._step = self._step, None
            self._run.done(step, self._write, total=total)

    def _write(self, folder: Path) -> None:
        # What the Trainer does when a save is due by its own arguments, but here, whole, and nowhere else.
        trainer, args = self._trainer, self._trainer.args
        ours = {"output_dir": str(folder), "save_only_model": False, "push_to_hub": False}
        theirs = {name: getattr(args, name) for name in ours}
        vars(args).update(ours)
        try:
            with _own_names(trainer.model):
                trainer._save_checkpoint(trainer.model, trial=None)  # noqa: SLF001 - there is no public way
        finally:
            vars(args).update(theirs)


@contextlib.contextmanager
def _own_names(model: Any) -> Iterator[None]:
    """Save parameters under the names that the model has for them.

    transformers 5 saves some models, such as ViT, under the names of their files on the hub. The Trainer
    doesn't know these when it resumes: it warns of missing keys, and goes on with the parameters of a new
    model.
    """
    save = getattr(model, "save_pretrained", None)
    if save is None or "save_original_format" not in inspect.signature(save).parameters:
        yield
        return
    model.save_pretrained = functools.partial(save, save_original_format=False)
    try:
        yield
    finally:
        del model.save_pretrained


def _refuse(trainer: Any) -> None:
    args = trainer.args
    if args.load_best_model_at_end:
        raise errors.ConfigError(
            "load_best_model_at_end looks for the best model on this machine's disk, which a reclaim takes "
            "away: leave it off, and choose among the evaluated checkpoints after training"
        )
    if getattr(args, "enable_jit_checkpoint", False):
        raise errors.ConfigError(
            "enable_jit_checkpoint stops this rank alone on SIGTERM: leave it off, the session stops all"
        )
    if getattr(trainer, "is_fsdp_enabled", False) or getattr(trainer, "is_deepspeed_enabled", False):
        raise errors.ConfigError(
            "the Trainer shards the model (FSDP or DeepSpeed), and such saves are not supported: use DDP, or "
            "a loop of your own with fully_shard and run.track(model=…, optimizer=…)"
        )
