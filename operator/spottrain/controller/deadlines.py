"""Solves the plans of jobs with a deadline, one at a time and beside the event loop, and keeps them.

A plan costs up to a tenth of a second of Python, so none is made in a pass: what a pass finds is the plan of
before, or none yet. Each is solved anew every twelve hours, with what was learnt since, and when the job's
terms have changed.
"""

import asyncio
import collections.abc as cabc
import dataclasses

from spottrain.kube import reflector
from spottrain.plan import outlook
from spottrain.policy import deadline

KEPT = 12 * 3600.0
"""Seconds that a plan is used, at most."""


@dataclasses.dataclass(frozen=True)
class _Solved:
    question: outlook.Question
    plan: deadline.Plan
    at: float


class Deadlines:
    """The plan of each job that needs one. `changed` is called when there is a new one."""

    def __init__(self, changed: cabc.Callable[[reflector.Key], None]) -> None:
        self._changed = changed
        self._solved: dict[reflector.Key, _Solved] = {}
        self._asked: dict[reflector.Key, outlook.Question] = {}
        self._news = asyncio.Event()

    def get(self, key: reflector.Key) -> deadline.Plan | None:
        """The job's plan; None before it is solved."""
        known = self._solved.get(key)
        return known.plan if known else None

    def ask(self, key: reflector.Key, question: outlook.Question) -> None:
        """Solve that soon, unless what is known answers it."""
        known = self._solved.get(key)
        if known is None or _now() - known.at >= KEPT or not known.question.answers(question):
            self._asked[key] = question
            self._news.set()

    def forget(self, key: reflector.Key) -> None:
        """The job is gone."""
        self._solved.pop(key, None)
        self._asked.pop(key, None)

    @property
    def waiting(self) -> cabc.Set[reflector.Key]:
        """The jobs that wait for a plan."""
        return self._asked.keys()

    def keep(self, key: reflector.Key, question: outlook.Question, plan: deadline.Plan) -> None:
        """It is solved, and used from now on."""
        self._asked.pop(key, None)
        self._solved[key] = _Solved(question, plan, _now())
        self._changed(key)

    async def run(self) -> None:
        """Solve what is asked for, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._asked:
                key, question = next(iter(self._asked.items()))
                plan = await asyncio.to_thread(question.solve)
                if key in self._asked:  # the job may be gone
                    self.keep(key, question, plan)


def _now() -> float:
    return asyncio.get_running_loop().time()
