"""Keeps every slot occupied with a job, in a thread of its own, whatever happens to the API server."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from chaos.facts import OVER
from chaos.jobs import JobRun, Slot
from chaos.seen import JOBS, Seen
from demo import clock
from lab.api import Answer, Api
from spottrain.api import names

_EVERY = 1.0
_CONFLICT = 409
_MISSING = 404


class Crew:
    """Applies jobs, and deletes some of those that are over. What the API server refuses is tried again."""

    def __init__(self, api: Api, seen: Seen, slots: Sequence[Slot], make: Callable[[JobRun], Any]) -> None:
        """`make`: the document of a job."""
        self._api = api
        self._seen = seen
        self._make = make
        self._current = {slot: JobRun(slot, 1) for slot in slots}
        self._unborn: set[JobRun] = set(self._current.values())
        self._doomed: set[JobRun] = set()
        self.jobs: list[JobRun] = sorted(self._unborn, key=lambda run: run.name)
        self.cancelled: dict[str, float] = {}
        self.refused: list[str] = []
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="crew")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self, name: str) -> None:
        """Somebody deletes this job now; the next one takes its place."""
        self.cancelled[name] = clock.wall()

    def deleted(self) -> list[str]:
        """The names of the jobs that were deleted."""
        return [run.name for run in tuple(self.jobs) if run.removed_early or run.name in self.cancelled]

    def no_more(self) -> None:
        """What runs is brought to its end; nothing follows it."""
        self._closing.set()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(timeout=30)

    def all_over(self) -> bool:
        """Whether every job that was begun has ended, and those to be deleted are."""
        ended = all(self._over(run) for run in tuple(self.jobs))
        return ended and not self._unborn and not self._doomed

    def standing(self) -> str:
        """How the jobs stand, in one line."""
        parts = []
        for run in tuple(self._current.values()):
            told = self._seen.told(run.name)
            parts.append(f"{run.name} {told[-1].phase}/{told[-1].attempt}" if told else f"{run.name} -")
        return ", ".join(parts)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            for slot, run in tuple(self._current.items()):
                if self._over(run):
                    self._follow(slot, run)
            for run in tuple(self._unborn):
                self._create(run)
            for run in tuple(self._doomed):
                self._delete(run)

    def _over(self, run: JobRun) -> bool:
        return self._seen.phase(run.name) in OVER or run.name in self.cancelled

    def _follow(self, slot: Slot, run: JobRun) -> None:
        if run.removed_early and self._seen.phase(run.name) == "Complete":
            self._doomed.add(run)
        if self._closing.is_set():
            del self._current[slot]
            return
        following = JobRun(slot, run.number + 1)
        self._current[slot] = following
        self.jobs.append(following)
        self._unborn.add(following)

    def _create(self, run: JobRun) -> None:
        answer = self._api.call("POST", JOBS, self._make(run))
        # A conflict is our own earlier call, of which we never heard.
        if answer.ok or answer.status == _CONFLICT:
            self._unborn.discard(run)
        else:
            self._note(run, answer)

    def _delete(self, run: JobRun) -> None:
        answer = self._api.call("DELETE", f"{JOBS}/{run.name}")
        if answer.ok or answer.status == _MISSING:
            self._doomed.discard(run)
        else:
            self._note(run, answer)

    def _note(self, run: JobRun, answer: Answer) -> None:
        text = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
        self.refused.append(f"{names.KIND} {run.name}: {answer.status} {text}")
