"""How a run begins: it waits for its release, takes its place in the lineage and loads what it may.

Rank 0 looks, chooses and claims; every rank fetches its part, and a checkpoint counts only when all of
them have theirs unharmed. Otherwise they go on to the next best together.
"""

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, manifest, store, transfer, view
from spottrain.train import circumstances, pace, peers, release, settings, tracked
from spottrain.train.clock import Clock
from spottrain.train.log import Log

# What the ranks tell each other about a download, the worst counts.
_FINE, _DAMAGED, _FAILED = 0, 1, 2


@dataclass(frozen=True)
class Restored:
    """Where a run begins. `step`: the one it goes on from, None for a fresh start.

    `time`: when that was committed, Unix seconds. On rank 0: `seconds` from the claim until it was loaded,
    and how many damaged checkpoints were passed over (`skipped`).
    """

    record: lineage.Record
    step: int | None
    history: pace.History
    time: float | None = None
    seconds: float = 0.0
    skipped: int = 0


@dataclass(frozen=True)
class _Begun:
    """What rank 0 tells the others after its claim."""

    seq: int
    record: str
    exposure: float
    interruptions: int
    announced: int


class Restorer:
    """One run's beginning."""

    def __init__(
        self, line: peers.Peers, place: store.Store, told: settings.Settings, clock: Clock, log: Log
    ) -> None:
        self._peers = line
        self._store = place
        self._told = told
        self._clock = clock
        self._log = log
        self._me = told.claimant(settings.draw_attempt_id())
        self._begun = 0.0
        self._skipped: set[str] = set()
        self._claimed: claim.Claim | None = None
        self._candidates: Iterator[manifest.Commit | view.Skipped] = iter(())

    def restore(self, loader: tracked.Loader, stopped: Callable[[], bool]) -> Restored | None:
        """Claim and load. None when `stopped` said so before there was anything to claim.

        OtherWorld when another number of ranks saved it, and neither the loader nor the settings allow that.
        """
        answer = peers.lead(self._peers, lambda: self._begin(stopped))
        if answer is None:
            return None
        begun = _Begun(**answer)
        record = lineage.decode(begun.record.encode(), begun.seq)
        commit = self._load_best(loader)
        self._tell(record, commit)
        history = pace.History(
            exposure=begun.exposure,
            interruptions=begun.interruptions,
            announced=begun.announced,
            blocked=commit.blocked if commit and commit.seconds else None,
            whole=commit.seconds or None if commit else None,
        )
        return Restored(
            record,
            commit.step if commit else None,
            history,
            time=commit.time if commit else None,
            seconds=self._clock.monotonic() - self._begun,
            skipped=len(self._skipped),
        )

    def _begin(self, stopped: Callable[[], bool]) -> Any:
        if self._told.go_file is not None:
            release.wait(self._told.go_file, self._me.attempt_id, self._clock, stopped)
        if stopped():
            return None
        now, self._begun = self._clock.unix(), self._clock.monotonic()
        claimed = self._claim(now, stopped)
        if claimed is None:
            return None
        self._claimed = claimed
        self._candidates = view.sound(self._store, claimed.view, claimed.trail)
        ours = [r for r in claimed.records.values() if r.job_uid == self._me.job_uid and self._me.job_uid]
        first = min((r.time for r in ours), default=now)
        begun = _Begun(
            seq=claimed.record.seq,
            record=claimed.record.encode().decode(),
            exposure=max(now - first, 0.0),
            interruptions=max(len(ours) - 1, 0),
            announced=sum(record.announced for record in ours),
        )
        return dataclasses.asdict(begun)

    def _claim(self, now: float, stopped: Callable[[], bool]) -> claim.Claim | None:
        """The place in the lineage; None when `stopped` said so while the store was away."""
        try:
            return claim.claim(self._store, self._me, now=now, skipped=self._skip)
        except errors.StoreUnavailable:
            if stopped():
                return None
            raise

    def _load_best(self, loader: tracked.Loader) -> manifest.Commit | None:
        while (found := peers.lead(self._peers, self._next)) is not None:
            directory = layout.parse_step_dir(found["directory"])
            commit = directory and manifest.decode(found["commit"].encode(), directory)
            if not isinstance(commit, manifest.Commit):
                raise errors.CheckpointError(f"rank 0 sent a commit that is none: {commit}")
            if not (loader.resizable or self._told.resizable):
                circumstances.refuse_other_world(commit, self._peers.world)
            with _scratch(self._told.scratch) as folder:
                if self._fetched(commit, loader, folder):
                    loader.load(folder)
                    return commit
        return None

    def _next(self) -> Any:
        """The next sound commit of the trail, as JSON; None for a fresh start, if that is allowed now."""
        for found in self._candidates:
            if isinstance(found, manifest.Commit):
                return {"directory": found.directory.name, "commit": found.encode().decode()}
            self._skip(found)
        if self._claimed is not None and self._claimed.trail:
            claim.refuse_unless_fresh(self._me, self._claimed.trail)
        return None

    def _fetched(self, commit: manifest.Commit, loader: tracked.Loader, folder: Path) -> bool:
        """Whether every rank has its part; raises on every rank when one could not read the store."""
        mine, failure = _FINE, None
        try:
            problem = transfer.download(self._store, commit, self._peers.rank, folder)
            problem = problem or transfer.download_more(self._store, commit, loader.wants(folder), folder)
        except errors.StoreError as error:
            problem, failure = None, error
            mine = _FAILED
        if problem:
            mine = _DAMAGED
            self._skip(view.Skipped(commit.directory, problem))
        worst = self._peers.steps.agree([mine])[0]
        if worst == _DAMAGED:
            self._skipped.add(commit.directory.name)  # wherever the damage was met
        if failure is not None:
            raise failure
        if worst == _FAILED:
            raise errors.StoreUnavailable(f"another rank could not read {commit.directory.name}")
        return worst == _FINE

    def _skip(self, skipped: view.Skipped) -> None:
        name = skipped.directory.name
        self._skipped.add(name)
        self._log.warning(
            "skipped",
            f"skipping checkpoint {name}: {skipped.reason}",
            step=skipped.directory.step,
            commit=name,
        )

    def _tell(self, record: lineage.Record, commit: manifest.Commit | None) -> None:
        fields = {
            "attempt": record.attempt,
            "attempt_id": record.attempt_id,
            "claim": record.seq,
            "rank": self._peers.rank,
        }
        if commit is None:
            sentence = f"fresh start at step 0: no checkpoint to go on from under {self._store.uri}"
            self._log.info("fresh", sentence, next_step=0, **fields)
            return
        name = commit.directory.name
        sentence = f"resumed from step {commit.step} (attempt {record.attempt}, commit {name})"
        self._log.info(
            "restored", sentence, step=commit.step, next_step=commit.step + 1, commit=name, **fields
        )
        if self._peers.rank == 0:
            self._tell_changes(commit)

    def _tell_changes(self, commit: manifest.Commit) -> None:
        saved = {**commit.versions, "ranks": str(commit.world_size)}
        found = {**circumstances.here(), "ranks": str(self._peers.world)}
        names = circumstances.changes(saved, found)
        if names:
            before, now = (circumstances.described(names, values) for values in (saved, found))
            sentence = (
                f"step {commit.step} was saved with {before} and goes on with {now}: "
                "its numbers may differ in their last digits"
            )
            self._log.warning("changed", sentence, step=commit.step, changed=",".join(names))


@contextlib.contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="spottrain-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
