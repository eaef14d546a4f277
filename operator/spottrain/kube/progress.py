"""Asks the first worker of a gang which step it is at, by the address of its pod.

What is timed is how far apart, on our monotonic clock, the first and the last answer with one step lie. A
read that fails adds nothing and takes nothing away: between two equal answers there was no step.

What goes into the status is told more rarely than it is asked for: once in `period` seconds and a random part
of them, so that a thousand jobs that began together don't write together, and more rarely still where there
are so many that this would be too much for the API server.
"""

import asyncio
import collections.abc as cabc
import dataclasses
import json
import random
from typing import Any

import aiohttp

from spottrain.api import names, status
from spottrain.kube import clock, reflector, views
from spottrain.plan import snapshot as snap

TICK = 5.0
SHARE = 0.1
"""Of the timeout: how often one worker is asked, within `TICK` and `RARELY`."""
RARELY = 60.0
ANSWER_SECONDS = 3.0
AT_ONCE = 16
PERIOD = snap.Settings.progress
SPREAD = 0.5
"""Of the period: it is as long as said, up to this much longer."""
WRITES = 10.0
"""A second, of all jobs together."""
SLOWLY = 600.0
"""Whoever doesn't answer, and need not, is asked more and more rarely, down to this."""
MOST_BYTES = 4096
LONGEST_PROBLEM = 512
PATIENCE = 60.0
"""Seconds of failed reads before it is said: a program takes its time until its session answers."""


@dataclasses.dataclass(frozen=True)
class Target:
    """Whom to ask: the attempt that has to answer, its address, and after how many seconds it is stuck.

    Without a timeout nobody waits for the answer. `needed`: something is decided on it all the same.
    """

    attempt_id: str
    address: str
    timeout: float | None
    needed: bool = False


@dataclasses.dataclass
class _Sight:
    """What one worker has said: its step, and when it first and last did."""

    target: Target
    due: float
    said: int | None = None
    first: float | None = None
    last: float = 0.0
    problem: str = ""
    failing: float | None = None
    tried: float = 0.0
    failures: int = 0
    report: snap.Report | None = None
    report_due: float = 0.0

    @property
    def trouble(self) -> str:
        """The problem, once it has lasted."""
        lasts = self.failing is not None and self.tried - self.failing >= PATIENCE
        return self.problem if lasts else ""

    @property
    def still(self) -> float:
        """Seconds between the first and the last answer with this step."""
        return 0.0 if self.first is None else self.last - self.first


class Progress:
    """Asks all who are followed, until cancelled. `changed` is called when something is to be decided on."""

    def __init__(
        self,
        changed: cabc.Callable[[reflector.Key], None],
        period: float = PERIOD,
        port: int = names.PROGRESS_PORT,
    ) -> None:
        self._changed = changed
        self._period = period or PERIOD
        self._port = port
        self._sights: dict[reflector.Key, _Sight] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    def follow(self, key: reflector.Key, target: Target | None) -> None:
        """Ask that worker of the job from now on, or nobody."""
        if target is None:
            self._sights.pop(key, None)
            return
        known = self._sights.get(key)
        if known is None or known.target.attempt_id != target.attempt_id:
            wait = 0.0 if target.timeout is not None else random.uniform(0, SPREAD) * self._period  # noqa: S311
            self._sights[key] = _Sight(target, due=_now() + wait)
        else:
            known.target = target

    def get(self, key: reflector.Key) -> snap.Progress | None:
        """What is known; None before the first try."""
        sight = self._sights.get(key)
        if sight is None or not (sight.trouble or sight.first is not None):
            return None
        return snap.Progress(sight.target.attempt_id, sight.said, sight.still, sight.trouble, sight.report)

    async def run(self) -> None:
        """Ask whenever it is due."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)) as session:
            while True:
                now = _now()
                due = [(key, sight) for key, sight in self._sights.items() if sight.due <= now]
                due.sort(key=lambda one: one[1].target.timeout is None)  # those first that are waited for
                await asyncio.gather(*(self._ask(session, key, sight) for key, sight in due))
                await asyncio.sleep(TICK)

    async def _ask(self, session: aiohttp.ClientSession, key: reflector.Key, sight: _Sight) -> None:
        before, reported = bool(sight.trouble), sight.report
        async with self._room:
            try:
                report = _report(await self._read(session, sight.target), sight.target)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                _note_failure(sight, f"{sight.target.address}: {str(error) or type(error).__name__}")
            else:
                _note(sight, report.step)
                self._take(sight, report)
        sight.due = sight.tried + self._pause(sight)
        timeout = sight.target.timeout
        stuck = timeout is not None and not sight.problem and sight.still >= timeout
        blind = timeout is not None and before != bool(sight.trouble)
        news = stuck or blind or sight.report is not reported
        if self._sights.get(key) is sight and news:
            self._changed(key)

    def _take(self, sight: _Sight, report: snap.Report) -> None:
        """Keep a report for the status, if it is time for one that says anything new."""
        known = sight.report
        if known is not None and dataclasses.replace(report, time=known.time) == known:
            return
        if sight.tried >= sight.report_due:
            sight.report = report
            sight.report_due = sight.tried + self._spread_period()

    def _spread_period(self) -> float:
        period = max(self._period, len(self._sights) / WRITES)
        return period * random.uniform(1, 1 + SPREAD)  # noqa: S311 - spreads the load, hides nothing

    def _pause(self, sight: _Sight) -> float:
        """Seconds until it is asked again."""
        timeout = sight.target.timeout
        if timeout is not None:
            return min(max(SHARE * timeout, TICK), RARELY)
        slowly = RARELY if sight.target.needed else SLOWLY
        return min(self._spread_period() * 2.0 ** min(sight.failures, 10), slowly)

    async def _read(self, session: aiohttp.ClientSession, target: Target) -> bytes:
        host = f"[{target.address}]" if ":" in target.address else target.address
        url = f"http://{host}:{self._port}/progress"
        async with session.get(url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            return await answer.content.read(MOST_BYTES)


def _note(sight: _Sight, step: int | None) -> None:
    now = _tried(sight)
    sight.problem, sight.failing, sight.failures = "", None, 0
    if sight.first is None or step != sight.said:
        sight.said, sight.first = step, now
    sight.last = now


def _note_failure(sight: _Sight, problem: str) -> None:
    now = _tried(sight)
    sight.problem = problem
    sight.failures += 1
    sight.failing = now if sight.failing is None else sight.failing


def _tried(sight: _Sight) -> float:
    sight.tried = _now()
    return sight.tried


def _now() -> float:
    return asyncio.get_running_loop().time()


def _report(body: bytes, target: Target) -> snap.Report:
    """What the attempt asked for told; ValueError for an answer by anybody else.

    The step must be one. The rest may be missing, as from an older library.
    """
    try:
        said = json.loads(body)
    except RecursionError:
        raise ValueError("no answer of ours") from None
    if not isinstance(said, dict) or said.get("spottrain") != 1 or said.get("attemptID") != target.attempt_id:
        raise ValueError("the answer is another program's")
    step = views.step(said.get("step"))
    if step is None and said.get("step") is not None:
        raise ValueError("the step is no number")
    return snap.Report(
        step=step,
        time=clock.now(),
        total=views.step(said.get("total")),
        per_second=views.seconds(said.get("perSecond")),
        saved=_saved(said.get("checkpoint")),
        stop=_stop(said.get("stop")),
        problem=str(said.get("problem") or "")[:LONGEST_PROBLEM],
        began=views.unix(said.get("began")),
        resumed_from=views.step(said.get("resumedFrom")),
    )


def _saved(said: Any) -> status.Checkpoint | None:
    step = views.step(said.get("step")) if isinstance(said, dict) else None
    if step is None:
        return None
    return status.Checkpoint(step, views.unix(said.get("time")), views.seconds(said.get("seconds")))


def _stop(said: Any) -> snap.Stop | None:
    if not isinstance(said, dict):
        return None
    seconds, grace = views.seconds(said.get("seconds")), views.seconds(said.get("graceSeconds"))
    if seconds is None or grace is None:
        return None
    return snap.Stop(seconds, grace, bool(said.get("fits")))
