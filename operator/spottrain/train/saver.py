"""Saves in the background: upload, wait for every rank's word, commit, remove what is surplus.

Every rank runs the same sequence on the `saves` channel, one save at a time:

    upload own files → gather(what they are, or why not) → rank 0: COMMIT → share(the verdict)

so that a checkpoint is committed only when every rank's part is stored, and every rank learns what became
of it. An upload may be abandoned for a newer state: its ranks then say so instead of what they stored.
"""

import enum
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, manifest, retention, store, transfer, view
from spottrain.train import circumstances, peers
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
    """One save of this rank: its files in `folder`, begun at `begun` (monotonic seconds).

    `blocked`: seconds for which it held training up; `stop`: it is the last one, since the attempt was told
    to stop; `problem`: asked after the upload, why the files are not what they were at its beginning, None if
    they are.
    """

    directory: layout.StepDir
    folder: Path
    begun: float
    prune: bool
    blocked: float = 0.0
    stop: bool = False
    problem: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class Verdict:
    """What became of a save, the same on every rank. `problem`: why it was not committed, "" if it was.

    `seconds`: what it took in all; `blocked`: for how long it held training up, on the slowest rank; `time`:
    when it was committed, Unix seconds.
    """

    step: int
    seconds: float = 0.0
    blocked: float = 0.0
    time: float = 0.0
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
        self._inspector = view.Inspector(place.store)
        self._clock = clock
        self._log = log
        self._current: Future[Verdict] | None = None
        self._state = State.IDLE
        self._changed = threading.Condition()
        self._committed: Verdict | None = None
        self._abandoned = threading.Event()
        self._hurried = False
        self.left_behind = False
        """An abandoned upload may still run, and Python's own farewell would wait for its threads."""
        self._begun = 0.0

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
        self._abandoned, self._begun = threading.Event(), self._clock.monotonic()
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

    @property
    def under_way(self) -> float:
        """For how many seconds the save under way has been uploading; meaningless when there is none."""
        return self._clock.monotonic() - self._begun

    def hurry(self) -> None:
        """Time is short: begin no more removals."""
        self._hurried = True

    def abandon(self) -> None:
        """Give up the upload under way, if it is still that: `drain` then returns at once, on every rank.

        The file that is on its way is not called back, but none follows it.
        """
        with self._changed:
            self.left_behind = True
            self._abandoned.set()
            self._changed.notify_all()

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
        verdict = self._save(job)
        if not verdict.committed:
            return verdict
        self._committed = verdict
        prunes = self._peers.rank == 0 and job.prune and not self._hurried
        return self._prune(verdict) if prunes else verdict

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
        """What this rank has stored, or why it hasn't. In a thread of its own: an abandoned one runs on."""
        abandoned, sent = self._abandoned, Future[tuple[manifest.File, ...]]()

        def send() -> None:
            where = (self._place.store, job.folder, job.directory, self._peers.rank)
            try:
                try:
                    files = transfer.upload(*where, abandoned=abandoned.is_set)
                    if problem := job.problem():
                        raise errors.CheckpointError(problem)
                finally:
                    shutil.rmtree(job.folder, ignore_errors=True)
                sent.set_result(files)
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                sent.set_exception(error)
            with self._changed:
                self._changed.notify_all()

        threading.Thread(target=send, name="spottrain-upload", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: sent.done() or abandoned.is_set())
        if not sent.done():
            return {"problem": f"rank {self._peers.rank}: given up for a newer state"}
        try:
            files = sent.result()
        except (errors.SpottrainError, OSError) as error:
            return {"problem": f"rank {self._peers.rank}: {error}"}
        return {"files": [asdict(file) for file in files], "blocked": job.blocked}

    def _commit(self, job: Job, parts: Sequence[Any]) -> Verdict:
        problems = [part["problem"] for part in parts if "problem" in part]
        if problems:
            return self._report(Verdict(job.directory.step, problem="; ".join(problems)), job)
        self._enter(State.COMMITTING)
        verdict = self._publish(job, parts)
        # What follows, telling the others and tidying up, is nothing to stay alive for.
        self._enter(State.WAITING)
        return self._report(verdict, job)

    def _publish(self, job: Job, parts: Sequence[Any]) -> Verdict:
        step, commit = job.directory.step, self._describe(job, parts)
        try:
            claim.publish(self._place.store, self._records, self._place.record, commit)
        except errors.StaleAttempt as error:
            return Verdict(step, problem=str(error), stale=True)
        except errors.SpottrainError as error:
            return Verdict(step, problem=str(error))
        self._inspector.remember(commit)
        return Verdict(
            step, self._clock.monotonic() - job.begun, blocked=commit.blocked, time=self._clock.unix()
        )

    def _describe(self, job: Job, parts: Sequence[Any]) -> manifest.Commit:
        return manifest.Commit(
            step=job.directory.step,
            writer=claim.writer(self._place.record, job.directory),
            files=tuple(manifest.File(**file) for part in parts for file in part["files"]),
            world_size=self._peers.world,
            versions=circumstances.here(),
            time=self._clock.unix(),
            stop=job.stop,
            blocked=max(part.get("blocked", 0.0) for part in parts),
            seconds=self._clock.monotonic() - job.begun,
        )

    def _report(self, verdict: Verdict, job: Job) -> Verdict:
        step, name = verdict.step, job.directory.name
        if verdict.committed:
            sentence = f"saved step {step} in {verdict.seconds:.2f} s (commit {name})"
            times = {"seconds": verdict.seconds, "blocked": verdict.blocked}
            self._log.info("saved", sentence, step=step, **times, commit=name)
        else:
            sentence = f"save of step {step} came to nothing: {verdict.problem}"
            self._log.error("save-failed", sentence, step=step, commit=name)
        return verdict

    def _prune(self, verdict: Verdict) -> Verdict:
        try:
            place = self._place
            gone = retention.prune(
                place.store, self._records, place.record, keep=place.keep, inspector=self._inspector
            )
        except errors.StaleAttempt as error:
            return replace(verdict, problem=str(error), stale=True)
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
