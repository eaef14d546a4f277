"""Saves in the background: upload, wait for every rank's word, commit, remove what is surplus.

Every rank runs the same sequence on the `saves` channel, one save at a time:

    upload own files → gather(what they are, or why not) → rank 0: COMMIT → share(the verdict)

so that a checkpoint is committed only when every rank's part is stored, and every rank learns what became
of it.
"""

import enum
import platform
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, manifest, retention, store, transfer
from spottrain.train import peers
from spottrain.train.clock import Clock
from spottrain.train.log import Log


class State(enum.Enum):
    """What the save under way is doing."""

    IDLE = "idle"
    UPLOADING = "uploading"
    WAITING = "waiting for the other ranks, or tidying up"
    COMMITTING = "committing"


@dataclass(frozen=True)
class Job:
    """One save of this rank: its files in `folder`, begun at `begun` (monotonic seconds)."""

    directory: layout.StepDir
    folder: Path
    begun: float
    prune: bool


@dataclass(frozen=True)
class Verdict:
    """What became of a save, the same on every rank. `problem`: why it was not committed, "" if it was."""

    step: int
    seconds: float = 0.0
    problem: str = ""
    stale: bool = False

    @property
    def committed(self) -> bool:
        """Whether the checkpoint exists now."""
        return not self.problem


@dataclass(frozen=True)
class Place:
    """Where saves go: the store, this attempt's record in its lineage, and how many checkpoints to keep."""

    store: store.Store
    record: lineage.Record
    keep: int


class Saver:
    """Carries out one save at a time in a thread of its own."""

    def __init__(self, line: peers.Peers, place: Place, clock: Clock, log: Log) -> None:
        self._peers = line
        self._place = place
        self._records = lineage.Records(place.store)
        self._clock = clock
        self._log = log
        self._current: Future[Verdict] | None = None
        self._state = State.IDLE
        self._changed = threading.Condition()
        self._committed: Verdict | None = None

    @property
    def attempt_id(self) -> str:
        """The attempt that saves."""
        return self._place.record.attempt_id

    @property
    def committed(self) -> Verdict | None:
        """The newest save that was committed; may be read from any thread."""
        return self._committed

    @property
    def idle(self) -> bool:
        """Whether no save is under way."""
        return self._current is None or self._current.done()

    def submit(self, job: Job) -> None:
        """Begin a save; none may be under way."""
        future: Future[Verdict] = Future()
        self._current = future
        self._enter(State.UPLOADING)
        # A daemon: Python waits at its end for other threads, and this one may hang on a frozen peer.
        thread = threading.Thread(target=self._run, args=(job, future), name="spottrain-save", daemon=True)
        thread.start()

    def collect(self) -> Verdict | None:
        """What became of the last save, once; None while it is under way or when there is nothing new."""
        if self._current is None or not self._current.done():
            return None
        return self.drain()

    def drain(self) -> Verdict | None:
        """Wait for the save under way and say what became of it, once; None when there is nothing new."""
        if self._current is None:
            return None
        verdict = self._current.result()
        self._current = None
        return verdict

    def finish_or_abandon(self, *, seconds: float, patience: float) -> None:
        """Wait for the save under way: `seconds` to upload and commit, `patience` for other ranks."""
        end = self._clock.monotonic() + seconds
        with self._changed:
            while self._state is not State.IDLE:
                left = end - self._clock.monotonic()
                before = self._state
                wait = min(left, patience) if before is State.WAITING else left
                if left <= 0 or (not self._changed.wait(wait) and before is self._state):
                    return

    def _run(self, job: Job, future: "Future[Verdict]") -> None:
        try:
            future.set_result(self._carry_out(job))
        except BaseException as error:  # noqa: BLE001 - handed to the training thread, which raises it
            future.set_exception(error)
        finally:
            self._enter(State.IDLE)

    def _carry_out(self, job: Job) -> Verdict:
        try:
            verdict = self._save(job)
        finally:
            shutil.rmtree(job.folder, ignore_errors=True)
        if not verdict.committed:
            return verdict
        self._committed = verdict
        return self._prune(verdict) if self._peers.rank == 0 and job.prune else verdict

    def _save(self, job: Job) -> Verdict:
        verdict: Verdict | None = None
        try:
            mine = self._upload(job)
            self._enter(State.WAITING)
            parts = self._peers.saves.gather(mine)
            verdict = self._commit(job, parts) if self._peers.rank == 0 else None
            return Verdict(**self._peers.saves.share(verdict and asdict(verdict)))
        except errors.PeerLost as error:
            # A commit stays one, whoever is left to hear of it.
            return verdict or self._report(Verdict(job.directory.step, problem=str(error)), job)

    def _upload(self, job: Job) -> dict[str, Any]:
        try:
            files = transfer.upload(self._place.store, job.folder, job.directory, self._peers.rank)
        except (errors.SpottrainError, OSError) as error:
            return {"problem": f"rank {self._peers.rank}: {error}"}
        return {"files": [asdict(file) for file in files]}

    def _commit(self, job: Job, parts: Sequence[Any]) -> Verdict:
        problems = [part["problem"] for part in parts if "problem" in part]
        if problems:
            return self._report(Verdict(job.directory.step, problem="; ".join(problems)), job)
        self._enter(State.COMMITTING)
        verdict = self._publish(job, [manifest.File(**f) for part in parts for f in part["files"]])
        # What follows, telling the others and tidying up, is nothing to stay alive for.
        self._enter(State.WAITING)
        return self._report(verdict, job)

    def _publish(self, job: Job, files: Sequence[manifest.File]) -> Verdict:
        step = job.directory.step
        try:
            claim.publish(self._place.store, self._records, self._place.record, self._describe(job, files))
        except errors.StaleAttempt as error:
            return Verdict(step, problem=str(error), stale=True)
        except errors.SpottrainError as error:
            return Verdict(step, problem=str(error))
        return Verdict(step, seconds=self._clock.monotonic() - job.begun)

    def _describe(self, job: Job, files: Sequence[manifest.File]) -> manifest.Commit:
        record = self._place.record
        writer = manifest.Writer(
            attempt_id=record.attempt_id,
            nonce=job.directory.nonce,
            seq=record.seq,
            attempt=record.attempt,
            job_uid=record.job_uid,
            host=platform.node(),
        )
        return manifest.Commit(
            step=job.directory.step,
            writer=writer,
            files=tuple(files),
            world_size=self._peers.world,
            versions=peers.versions(),
            time=self._clock.unix(),
        )

    def _report(self, verdict: Verdict, job: Job) -> Verdict:
        step, name = verdict.step, job.directory.name
        if verdict.committed:
            sentence = f"saved step {step} in {verdict.seconds:.2f} s (commit {name})"
            self._log.info("saved", sentence, step=step, seconds=verdict.seconds, commit=name)
        else:
            sentence = f"save of step {step} came to nothing: {verdict.problem}"
            self._log.error("save-failed", sentence, step=step, commit=name)
        return verdict

    def _prune(self, verdict: Verdict) -> Verdict:
        try:
            gone = retention.prune(
                self._place.store, self._records, self._place.record, keep=self._place.keep
            )
        except errors.StaleAttempt as error:
            return Verdict(verdict.step, verdict.seconds, problem=str(error), stale=True)
        except errors.SpottrainError as error:
            self._log.warning("prune-failed", f"old checkpoints stay for now: {error}")
            return verdict
        if gone:
            names = ",".join(directory.name for directory in gone)
            self._log.info("pruned", f"removed {len(gone)} old checkpoints", commits=names)
        return verdict

    def _enter(self, state: State) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()
