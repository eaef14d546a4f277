"""`spottrain.session()`: restore, save, and stop together with the other ranks.

    with spottrain.session() as run:
        first = run.restore(load)                 # load(folder); 0 when there is nothing to restore
        for step in range(first, total):
            train_step()
            if run.should_save(step):             # an interval is over, or a stop: the same on every rank
                run.save(step, write)             # write(folder); upload and commit in the background
            if run.stopping:
                break                             # the process will end with 75, so nobody takes it for done

A step's number is that of the loop: `save(step)` is called when step `step` is done, and `restore`
returns the number after the one that was saved.
"""

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spottrain import errors
from spottrain.checkpoint import layout, location
from spottrain.train import (
    early,
    last_save,
    pace,
    patience,
    peers,
    restore,
    saver,
    settings,
    signals,
    telling,
    watchdog,
)
from spottrain.train.agreement import Agreement
from spottrain.train.clock import Clock, SystemClock
from spottrain.train.log import Log
from spottrain.train.tracked import Given, Load, Tracked, Write

PREEMPTED_EXIT = 75
# How long a save that waits for other ranks is waited for when they have stopped answering.
_PATIENCE_SECONDS = 2.0


class Run:
    """One process's part in one attempt. Made by `session()`; a context manager."""

    def __init__(self, told: settings.Settings, env: Mapping[str, str], clock: Clock) -> None:
        self._told = told
        self._env = env
        self._clock = clock
        self._log = Log(clock)
        self._signal = signals.StopSignal(clock, self._on_signal)
        self._peers = peers.ALONE
        self._watchdog = watchdog.Watchdog(
            clock,
            grace=told.grace,
            alone=lambda: self._peers.world == 1,
            limit=lambda: watchdog.agreement_limit(self._pacer.longest_step()),
            give_up=self._give_up,
        )
        self._pacer = pace.Pacer(fixed=told.interval, nodes=told.workers, grace=told.grace)
        self._telling = telling.Telling(told, self._pacer, clock, self._log)
        self._early = early.Wish(told.go_file, clock, self._log)
        self._saver: saver.Saver | None = None
        self._tracked: Tracked | None = None
        self._last: saver.Verdict | None = None
        self._confer_in = 1
        self._nonce = ""
        self._stopping = False
        self._complete = False
        self._given_up = False

    @property
    def stopping(self) -> bool:
        """Whether all ranks have agreed to stop: leave the loop, the `with` block does the rest."""
        return self._stopping

    @property
    def rank(self) -> int:
        """This process's number among all ranks."""
        return self._peers.rank

    def track(self, *, data: Any = None, **objects: Any) -> None:
        """Save and restore these objects with state_dict and load_state_dict, and the random generators.

        `objects` (model, optimizer, scheduler, …) are alike on every rank and are written by rank 0;
        `data`, such as a stateful data loader, has a position of its own on each rank. See
        `train.torch.State`.
        """
        from spottrain.train import torch

        self._tracked = torch.State(self._peers.rank, data=data, objects=objects, log=self._log)

    def restore(self, load: Load | None = None, *, resizable: bool = False) -> int:
        """Load the newest checkpoint this attempt may take; the number of the first step to do, 0 for none.

        `load(folder)` gets a folder with what `write` wrote: rank 0's files, and this rank's own over them.
        Without it, what was given to `track`. `resizable`: `load` copes with what another number of ranks
        saved. Raises StoreError, CheckpointError, StaleAttempt or NotReleased rather than start from nothing
        by mistake.
        """
        place = location.open_store(self._told.location)
        asked = patience.beginning(place, self._told, self._clock, self._log, lambda: self._signal.seen)
        restorer = restore.Restorer(self._peers, asked, self._told, self._clock, self._log)
        loader = Given(load, resizable=resizable) if load else self._required()
        restored = restorer.restore(loader, lambda: self._signal.seen)
        if restored is None or self._peers.steps.agree([int(self._signal.seen)])[0]:
            self._telling.resumed_from = restored.step if restored else None
            self._stop("SIGTERM before the first step")
            raise SystemExit(PREEMPTED_EXIT)
        kept = saver.Place(place, restored.record, self._told.keep)
        self._saver = saver.Saver(self._peers, kept, self._clock, self._log)
        self._pacer = pace.Pacer(
            fixed=self._told.interval,
            nodes=self._told.workers,
            grace=self._told.grace,
            history=restored.history,
        )
        self._pacer.begin(self._clock.monotonic())
        self._early.begin()
        self._telling.begin(self._pacer, restored)
        if self.rank == 0:
            self._telling.foresee()
        return 0 if restored.step is None else restored.step + 1

    def steps(self, total: int) -> Iterator[int]:
        """The steps still to do of `total`, with restoring, saving and stopping done in between.

        What was given to `track` is saved. The last step is always saved, so that a worker that starts
        once more finds its work done.
        """
        state = self._required()
        self._telling.total = total
        for step in range(self.restore(), total):
            yield step
            self.done(step, state.write, total=total)
        self._complete = not self._given_up

    def done(self, step: int, write: Write, *, total: int | None) -> None:
        """On every rank, when step `step` of `total`, if known, is done: what `steps` does between two.

        For training loops that are not the program's own, as in the adaptors. Saves with `write` when a save
        is due and after the last step, and raises SystemExit at a stop before it.
        """
        self._telling.total = total
        last = total is not None and step >= total - 1
        if self.should_save(step) or last:
            self.save(step, write)
        if self._stopping and not last:
            raise SystemExit(PREEMPTED_EXIT)
        self._complete = last and not self._given_up

    def should_save(self, step: int) -> bool:
        """On every rank, when step `step` is done: True on every rank when a save is due, or a stop."""
        self._required_saver()
        self._note_step(step)
        self._confer_in -= 1
        if self._stopping or self._confer_in > 0:
            return False
        said = self._confer(step)
        self._confer_in, self._nonce = max(said.gap, 1), f"{said.nonce:016x}"
        if said.stale:
            self._settle()
            raise errors.StaleAttempt("another rank met a newer attempt on this checkpoint URI")
        if said.stop:
            self._stop(f"SIGTERM (rank {said.stop - 1})")
        return bool(said.stop or said.save)

    def save(self, step: int, write: Write | None = None) -> None:
        """Save the state after step `step`; on every rank. Training goes on as soon as `write` has returned.

        `write(folder)` writes this rank's files. Rank 0's are what every rank gets when it loads; the
        others write what is theirs alone, under the same names if they like. Without it, what was given
        to `track`. Waits for the save before this one, and raises StaleAttempt if that met a newer
        attempt. After a stop the state is written first, and what the grace has no time for is not uploaded.
        """
        background = self._required_saver()
        if not self._stopping:
            self._settle()
        nonce = self._nonce or peers.lead(self._peers, _draw_nonce)
        self._nonce = ""
        begun = self._clock.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="spottrain-", dir=self._told.scratch))
        try:
            (write or self._required().write)(folder)
            blocked = self._clock.monotonic() - begun
            self._given_up = self._stopping and not self._room.make(step, self._settle_one)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if self._given_up:
            shutil.rmtree(folder, ignore_errors=True)
            return
        self._pacer.save_begun(begun)
        self._early.heed()
        # What it waited for the save before it is no part of what a save takes.
        began, last = self._clock.monotonic() - blocked, self._stopping
        directory = layout.StepDir(step, background.attempt_id, nonce)
        background.submit(saver.Job(directory, folder, began, prune=not last, blocked=blocked, stop=last))

    @property
    def _room(self) -> last_save.Room:
        upload, left = self._pacer.upload, self._watchdog.left
        return last_save.Room(self._peers, self._required_saver(), upload, left, self._log)

    def __enter__(self) -> Self:
        self._signal.install()
        try:
            self._watchdog.start()
            self._peers = peers.connect(self._env, workers=self._told.workers)
            if self._peers.rank == 0:
                self._telling.serve()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._end()
            elif isinstance(error, SystemExit) and self._stopping:
                self._end_preempted()
            else:
                self._end_badly(error)
        except (errors.PeerLost, errors.StaleAttempt) as late:
            self._end_badly(late)
            raise
        finally:
            self._close()

    def _end(self) -> None:
        """The block was left at its end."""
        unasked = not self._stopping and not self._complete
        if unasked and self._peers.steps.agree([int(self._signal.seen)])[0]:
            # The program may have left its loop because of the signal: only it knows, so this is no success.
            self._stop("SIGTERM")
        if self._stopping and not self._complete:
            self._end_preempted()
            raise SystemExit(PREEMPTED_EXIT)
        verdict = self._settle()
        if verdict is not None and not verdict.committed:
            raise errors.CheckpointError(f"the last save, of step {verdict.step}, failed: {verdict.problem}")
        self._farewell()
        self._say(telling.FINISHED)
        self._watchdog.dismiss()

    def _end_preempted(self) -> None:
        """All ranks know of the stop. The watchdog stays awake: what follows may hang."""
        self._settle()
        self._farewell()
        self._say(telling.PREEMPTED)
        self._log.flush()
        if self._peers.processes or (self._saver is not None and self._saver.left_behind):
            self._leave()

    def _leave(self) -> None:
        """End without tearing the interpreter down.

        torch's threads may abort the process while its peers go (SIGABRT in place of 75: seen in one of some
        hundred stops), and on a busy machine the teardown takes ten seconds that the next attempt waits for.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(PREEMPTED_EXIT)

    def _end_badly(self, error: BaseException) -> None:
        """An exception left the block: our own, the program's, or a collective's because a peer is gone."""
        if isinstance(error, errors.StaleAttempt):
            self._log.error("stale", str(error), step=self._telling.step)
            self._say(telling.STALE)
            self._watchdog.dismiss()
            return
        lost = self._peers.world > 1 and peers.is_loss(error)
        if lost or self._signal.seen or self._stopping:
            # A collective that breaks tells of a peer's death long before anyone says why it died: no bug
            # of this rank, so it ends as preempted, and at once: the sooner the gang is begun anew.
            traceback.print_exception(error)
            self._give_up(f"{type(error).__name__}: {error}", self._told.grace)
        if self._saver is not None:
            self._saver.finish_or_abandon(seconds=self._told.grace, patience=_PATIENCE_SECONDS)
        self._watchdog.dismiss()

    def _give_up(self, why: str, seconds: float) -> None:
        """End this process now, as preempted, after at most `seconds` for a save that can still succeed."""
        sentence = f"ending now, without the other ranks: {why}"
        self._log.warning("gave-up", sentence, step=self._telling.step)
        self._say(telling.PREEMPTED)
        if self._saver is not None:
            self._saver.finish_or_abandon(seconds=seconds, patience=_PATIENCE_SECONDS)
        self._say(telling.PREEMPTED)
        self._telling.own_up(self._saver.committed if self._saver else None)
        self._log.flush()
        os._exit(PREEMPTED_EXIT)

    def _stop(self, reason: str) -> None:
        self._stopping = True
        self._watchdog.stop_agreed()
        # Said now, and again when there is more to say: the grace may end sooner than we were told.
        self._say(telling.PREEMPTED)
        if self._saver is not None:
            self._saver.hurry()
        if self._peers.rank == 0:
            step = self._telling.step
            self._log.info("stopping", f"stopping at step {step}: {reason}", step=step)

    def _on_signal(self, at: float) -> None:
        self._watchdog.stop_asked(at)

    def _note_step(self, step: int) -> None:
        self._pacer.step_done(self._clock.monotonic())
        self._telling.step_done(step, self.rank)

    def _confer(self, step: int) -> Agreement:
        if self._saver is not None and (verdict := self._saver.collect()) is not None:
            self._note_verdict(verdict)
        leads = self._peers.rank == 0
        pacer, now = self._pacer, self._clock.monotonic()
        due = leads and self._required_saver().idle and (self._early.due(step) or pacer.due(now))
        mine = Agreement(
            step=step,
            minus_step=-step,
            stop=self._peers.rank + 1 if self._signal.seen else 0,
            stale=int(self._last is not None and self._last.stale),
            save=int(due),
            nonce=secrets.randbits(62) if leads else 0,
            gap=0 if self._peers.world == 1 or not leads else self._pacer.gap(),
        )
        return Agreement.heard(self._peers.steps.agree(mine.values()))

    def _settle(self) -> saver.Verdict | None:
        """Wait for the save under way; the newest verdict. Raises StaleAttempt."""
        self._settle_one()
        return self._last

    def _settle_one(self) -> saver.Verdict | None:
        """Wait for the save under way; its verdict, None if there was none that is not known yet."""
        verdict = self._saver.drain() if self._saver is not None else None
        if verdict is not None:
            self._note_verdict(verdict)
        if self._last is not None and self._last.stale:
            raise errors.StaleAttempt(self._last.problem)
        return verdict

    def _note_verdict(self, verdict: saver.Verdict) -> None:
        self._last = verdict
        self._telling.saved(verdict)
        if not verdict.committed:
            self._pacer.save_failed(self._clock.monotonic())
            return
        self._pacer.save_done(cost=verdict.blocked, whole=verdict.seconds)
        if self.rank == 0:
            self._telling.foresee()

    def _farewell(self) -> None:
        """No rank ends before all are done: that would break connections, and make torchrun kill the rest."""
        with contextlib.suppress(errors.PeerLost):
            self._peers.steps.agree([0])

    def _say(self, state: str) -> None:
        self._telling.say(state, self._saver.committed if self._saver else None)

    def _required(self) -> Tracked:
        if self._tracked is None:
            raise errors.ConfigError("say what to save: run.track(model=model, optimizer=optimizer, …)")
        return self._tracked

    def _required_saver(self) -> saver.Saver:
        if self._saver is None:
            raise errors.ConfigError("call run.restore(load) before the first step")
        return self._saver

    def _close(self) -> None:
        self._telling.close()
        if self._stopping and not self._complete:
            self._signal.ignore()
        else:
            self._signal.uninstall()


def session(  # noqa: PLR0913 - all by keyword, each with a default
    *,
    uri: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    keep: int | None = None,
    interval: float | str | None = None,
    restore: str | int | None = None,
    on_broken: str | None = None,
    on_resize: str | None = None,
) -> Run:
    """A run, for a `with` block in the main thread; torch.distributed, if used, is to be initialised before.

    `uri`: where checkpoints go, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or
    file:///directory; `endpoint`, `region`: where they aren't the cloud's own; `keep`: how many checkpoints;
    `interval`: seconds between saves or "auto"; `restore`: "Latest", "Fresh" or a step's number; `on_broken`:
    "Stop" or "StartFresh", when every checkpoint is damaged; `on_resize`: "Stop" or "Continue", when another
    number of ranks saved it and each had something of its own.

    In a SpotTrainingJob the object's settings count, and these fill what it leaves open. ConfigError,
    with what to set, when something is missing.
    """
    settings.refuse_directory(os.environ)
    arguments = settings.Arguments(uri, endpoint, region, keep, interval, restore, on_broken, on_resize)
    return Run(settings.read(os.environ, arguments), os.environ, SystemClock())


def _draw_nonce() -> str:
    return f"{secrets.randbits(62):016x}"
