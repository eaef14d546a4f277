"""Lightning's `Trainer` in a session.

    trainer.strategy.setup_environment()              # sets torch.distributed up
    with spottrain.session() as run:
        lightning.fit(run, trainer, model, loader)    # in place of trainer.fit(model, loader)

Saves are Lightning's own checkpoints, made after a step or, if a validation follows it, after that; and each
rank's random generators, which Lightning leaves out. Its data goes on where it was if the loader can tell its
place: torchdata's StatefulDataLoader. Between two epochs Lightning forgets that place, and with it the order
of the epochs to come, so the last step of an epoch is not saved, nor stopped after, but the one that follows.
"""

import math
import signal
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from torch.utils.data import DistributedSampler

from spottrain import errors
from spottrain.train import generators, session, tracked

_CHECKPOINT, _OWN = "lightning.ckpt", "rank.pt"


def fit(run: session.Run, trainer: Any, model: Any, *data: Any, **options: Any) -> None:
    """`trainer.fit(model, *data, **options)` from the newest checkpoint on, saved when the run says so.

    Raises ConfigError for strategies that shard the model, and SystemExit at a stop.
    """
    if not isinstance(trainer.strategy, DDPStrategy | SingleDeviceStrategy):
        raise errors.ConfigError(
            f"{type(trainer.strategy).__name__} shards the model, and such saves are not supported: use the "
            "strategy ddp, or a loop of your own with fully_shard and run.track(model=…, optimizer=…)"
        )
    kept = tracked.Kept()
    run.restore(kept.load)
    saves = _Saves(run, kept)
    trainer.callbacks.append(saves)
    try:
        trainer.fit(model, *data, ckpt_path=kept.folder and kept.folder / _CHECKPOINT, **options)
    finally:
        kept.forget()
        trainer.callbacks.remove(saves)


class _Saves(Checkpoint):  # type: ignore[misc] # lightning is not there when types are checked
    """Tells the run of each step, and saves for it. As a Checkpoint it hears of events after others do."""

    def __init__(self, run: session.Run, kept: tracked.Kept) -> None:
        self._run = run
        self._kept = kept
        self._handler = signal.getsignal(signal.SIGTERM)
        self._step = 0
        self._told = self._saved_last = True

    def on_sanity_check_start(self, trainer: Any, module: Any) -> None:  # noqa: ARG002 - Lightning's
        """Lightning has put its own handler before the session's."""
        self._handle()

    def on_train_start(self, trainer: Any, module: Any) -> None:  # noqa: ARG002
        """The same, when there was nothing to check."""
        self._handle()
        _refuse_loaders(trainer)
        self._step = trainer.global_step

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:  # noqa: ARG002
        """The loader has made its iterator, which draws from torch's generator."""
        if self._kept.folder:
            own = torch.load(self._kept.folder / _OWN, weights_only=True)
            if own["rank"] == self._run.rank:
                generators.put_back(own["generators"])
            self._kept.forget()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """A batch is done, and if the optimizer has stepped, a step."""
        if trainer.global_step == self._step:
            return
        self._step, self._told, self._saved_last = trainer.global_step, False, False
        loop = trainer.fit_loop.epoch_loop
        validates = loop._should_check_val_fx(trainer.fit_loop._data_fetcher)  # noqa: SLF001 - no public way
        if not validates:
            self._done(trainer)

    def on_validation_end(self, trainer: Any, module: Any) -> None:  # noqa: ARG002
        """The validation that followed a step, or came between two of its batches, is done."""
        if not self._told:
            self._done(trainer)

    def on_train_end(self, trainer: Any, module: Any) -> None:  # noqa: ARG002
        """The last step is done, whether it was to be the last or Lightning stopped early."""
        if not self._saved_last:
            self._run.done(self._step - 1, self._writer(trainer), total=self._step)

    def _handle(self) -> None:
        # Lightning's would stop this rank alone, while the others wait for it.
        signal.signal(signal.SIGTERM, self._handler)

    def _done(self, trainer: Any) -> None:
        if trainer.is_last_batch and trainer.num_training_batches > 1:
            return
        self._told, total = True, trainer.estimated_stepping_batches
        self._saved_last = self._step >= total
        self._run.done(self._step - 1, self._writer(trainer), total=None if total == math.inf else int(total))

    def _writer(self, trainer: Any) -> tracked.Write:
        def write(folder: Path) -> None:
            trainer.save_checkpoint(folder / _CHECKPOINT)
            torch.save({"rank": self._run.rank, "generators": generators.states()}, folder / _OWN)

        return write


def _refuse_loaders(trainer: Any) -> None:
    for loader in trainer.fit_loop._combined_loader.flattened:  # noqa: SLF001 - no public way to all of them
        sampler = getattr(loader, "sampler", None)
        deals = isinstance(sampler, DistributedSampler) and not hasattr(sampler, "state_dict")
        if hasattr(loader, "state_dict") and deals:
            raise errors.ConfigError(
                f"after a loss Lightning would go on in another shuffle of {type(sampler).__name__}: give "
                "the loader torchdata's StatefulDistributedSampler as sampler="
            )
