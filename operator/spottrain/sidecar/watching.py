"""The sidecar: it stores each checkpoint that the program completes, and the last one after its end.

::

    each second ─► the newest that is complete, at rest, and not stored ─► hold, upload, commit, prune
    SIGTERM (the program has ended, or its grace is over) ─► the same once more, without waiting for rest

What is older than the newest is not stored: of a program that saves faster than the store takes it some are
skipped.
"""

import secrets
from pathlib import Path

from spottrain.checkpoint import claim, layout, store
from spottrain.sidecar import completeness, holding, layouts, notebook, telling
from spottrain.train import last_save, peers, saver, settings, signals
from spottrain.train.clock import Clock
from spottrain.train.log import Log

LOOK_SECONDS = 1.0
REST_SECONDS = 2.0
"""For how long the files of a checkpoint at rest have not changed. That it is complete has its own marks."""
RETRY_SECONDS = 10.0
COMPLAIN_SECONDS = 120.0
"""For how long a checkpoint at rest must have been incomplete until that is said."""
LAST_RETRY_SECONDS = 1.0
UNKNOWN_SECONDS = 900.0
"""The same of a directory in which nothing is known as a checkpoint."""
_WHAT_TO_DO = "leave room for one more checkpoint, and set securityContext.runAsUser in spec.template"


class Watcher:
    """Watches one directory for one attempt, which has its place in the lineage already."""

    def __init__(
        self, told: settings.Settings, root: Path, place: store.Store, clock: Clock, log: Log
    ) -> None:
        """Raises StaleAttempt when a later attempt has the place."""
        self._told, self._root, self._clock, self._log = told, root, clock, log
        self._began = clock.monotonic()
        claimed = claim.claim(place, told.claimant(""), now=clock.unix(), skipped=lambda _: None)
        kept = saver.Place(place, claimed.record, told.keep)
        self._background = saver.Saver(peers.ALONE, kept, clock, log)
        self._notebook = notebook.Notebook(root)
        own = [directory.step for directory in claimed.trail if directory.attempt_id == told.attempt_id]
        self._last_own = max(own, default=-1)
        self._last = max([self._last_own, *(directory.step for directory in claimed.trail[:1])])
        self._telling = telling.Telling(told, log, self._last if claimed.trail else None)
        self._seen: dict[str, tuple[layouts.Files, float]] = {}
        self._under_way: list[layouts.Unit] = []
        self._upload: float | None = None
        self._not_before = 0.0
        self._stale = False

    def run(self, stop: signals.StopSignal) -> None:
        """Until SIGTERM, and then the last one."""
        holding.release_all(self._root)
        self._telling.serve()
        self._telling.say(telling.STORED)
        while not stop.wait(LOOK_SECONDS):
            self._turn()
        self._flush()

    def _turn(self) -> None:
        if not self._background.idle:
            return
        self._collect()
        if self._stale or self._clock.monotonic() < self._not_before:
            return
        if (unit := self._newest(at_rest=True)) is not None:
            self._store(unit, stop=False)

    def _flush(self) -> None:
        """What is on its way, and what is newer than that. When there is no more time the kubelet ends it."""
        self._log.info("stopping", "the program has ended, or its grace is over")
        self._background.hurry()
        newest = self._newest(at_rest=False)
        if newest is not None or not self._background.idle:
            self._telling.say(telling.UNSAVED)
        if newest is not None and not self._background.idle and self._abandons(newest):
            self._background.abandon()
        self._collect()
        while not self._stale and (newest := self._newest(at_rest=False)) is not None:
            if self._store(newest, stop=True):
                self._collect()
            if not self._notebook.knows(newest):
                self._clock.sleep(LAST_RETRY_SECONDS)
        self._telling.say(telling.UNSAVED if self._stale else telling.STORED)

    def _abandons(self, newest: layouts.Unit) -> bool:
        """Whether what is on its way is given up for the newest."""
        if newest == self._under_way[0]:
            return False
        elapsed = self._background.under_way
        choice = last_save.choose(left=self._told.grace, elapsed=elapsed, upload=self._upload)
        return choice is last_save.Choice.NEWEST

    def _newest(self, *, at_rest: bool) -> layouts.Unit | None:
        """The newest complete one that isn't stored. What keeps a newer one from it is said if it lasts."""
        units = layouts.find(self._root)
        if not units:
            self._wonder()
        for unit in units:
            rest = self._at_rest_for(unit)
            if self._notebook.knows(unit) or (at_rest and rest < REST_SECONDS):
                continue
            problem = self._problem(unit)
            if problem is None:
                return unit
            if rest >= COMPLAIN_SECONDS:
                self._complain(problem)
        return None

    def _wonder(self) -> None:
        """A program that writes what isn't known is not protected at all, and nobody would notice."""
        there = [path for path in self._root.iterdir() if not path.name.startswith(".")]
        if there and self._clock.monotonic() - self._began >= UNKNOWN_SECONDS:
            self._complain(f"nothing in {self._root} is a checkpoint that is known: see docs/zero-code.md")

    def _problem(self, unit: layouts.Unit) -> str | None:
        if self._told.workers > 1 and unit.sharded:
            return (
                f"{unit.name} is in shards, and those of other workers are not here: it is not stored. Use "
                "the library, or let worker 0 write whole checkpoints"
            )
        try:
            return completeness.unfinished(self._root, unit)
        except OSError as error:
            return f"{unit.name} can't be read ({error}): {_WHAT_TO_DO}"

    def _at_rest_for(self, unit: layouts.Unit) -> float:
        """Seconds since a change of it was seen."""
        now = self._clock.monotonic()
        files, since = self._seen.get(unit.name, ({}, now))
        if files != unit.files:
            since = now
            self._seen[unit.name] = (unit.files, since)
        return now - since

    def _store(self, unit: layouts.Unit, *, stop: bool) -> bool:
        """Begin to upload it; whether that could be begun."""
        begun = self._clock.monotonic()
        try:
            held = holding.hold(self._root, unit)
        except OSError as error:
            self._complain(f"{unit.name} can't be held for its upload ({error}): {_WHAT_TO_DO}")
            self._not_before = begun + RETRY_SECONDS
            return False
        if held is None:
            return False
        others = [one for one in layouts.find(self._root) if one.name != unit.name]
        self._under_way = [unit, *(one for one in others if one.written <= unit.written)]
        directory = layout.StepDir(self._label(unit), self._told.attempt_id, secrets.token_hex(8))
        job = saver.Job(directory, held.folder, begun, prune=not stop, stop=stop, problem=held.problem)
        self._background.submit(job)
        return True

    def _label(self, unit: layouts.Unit) -> int:
        """Its step. The highest of an attempt counts as its newest, so one that comes again is counted on."""
        said = layouts.step(self._root, unit)
        if said is None:
            return self._last + 1
        return said if said > self._last_own else self._last_own + 1

    def _collect(self) -> None:
        """Wait for what is on its way, and take in what became of it."""
        verdict = self._background.drain()
        if verdict is None:
            return
        if not verdict.committed:
            self._stale = self._stale or verdict.stale
            self._telling.problem = verdict.problem  # the saver has logged it
            self._not_before = self._clock.monotonic() + RETRY_SECONDS
            return
        self._notebook.note(self._under_way)
        self._last = self._last_own = verdict.step
        self._upload = verdict.seconds
        self._telling.saved(verdict)
        self._telling.say(telling.STORED)

    def _complain(self, problem: str) -> None:
        if problem != self._telling.problem:
            self._log.error("not-stored", problem)
        self._telling.problem = problem
