"""Asks the first worker of a gang which step it is at, by the address of its pod.

What is timed is how far apart, on our monotonic clock, the first and the last answer with one step lie. A
read that fails adds nothing and takes nothing away: between two equal answers there was no step.
"""

import asyncio
import collections.abc as cabc
import dataclasses
import json

import aiohttp

from spottrain.api import names
from spottrain.kube import reflector
from spottrain.plan import snapshot as snap

TICK = 5.0
SHARE = 0.1
"""Of the timeout: how often one worker is asked, within `TICK` and `RARELY`."""
RARELY = 60.0
ANSWER_SECONDS = 3.0
AT_ONCE = 16
MOST_BYTES = 4096
PATIENCE = 60.0
"""Seconds of failed reads before it is said: a program takes its time until its session answers."""


@dataclasses.dataclass(frozen=True)
class Target:
    """Whom to ask: the attempt that has to answer, its address, and after how many seconds it is stuck."""

    attempt_id: str
    address: str
    timeout: float


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
        self, changed: cabc.Callable[[reflector.Key], None], port: int = names.PROGRESS_PORT
    ) -> None:
        self._changed = changed
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
            self._sights[key] = _Sight(target, due=0.0)
        else:
            known.target = target

    def get(self, key: reflector.Key) -> snap.Progress | None:
        """What is known; None before the first try."""
        sight = self._sights.get(key)
        if sight is None or not (sight.trouble or sight.first is not None):
            return None
        return snap.Progress(sight.target.attempt_id, sight.said, sight.still, sight.trouble)

    async def run(self) -> None:
        """Ask whenever it is due."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)) as session:
            while True:
                now = asyncio.get_running_loop().time()
                due = [(key, sight) for key, sight in self._sights.items() if sight.due <= now]
                await asyncio.gather(*(self._ask(session, key, sight) for key, sight in due))
                await asyncio.sleep(TICK)

    async def _ask(self, session: aiohttp.ClientSession, key: reflector.Key, sight: _Sight) -> None:
        before = bool(sight.trouble)
        async with self._room:
            try:
                step = _step(await self._read(session, sight.target), sight.target)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                _note_failure(sight, f"{sight.target.address}: {str(error) or type(error).__name__}")
            else:
                _note(sight, step)
        stuck = not sight.problem and sight.still >= sight.target.timeout
        if self._sights.get(key) is sight and (before != bool(sight.trouble) or stuck):
            self._changed(key)

    async def _read(self, session: aiohttp.ClientSession, target: Target) -> bytes:
        host = f"[{target.address}]" if ":" in target.address else target.address
        url = f"http://{host}:{self._port}/progress"
        async with session.get(url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            return await answer.content.read(MOST_BYTES)


def _note(sight: _Sight, step: int | None) -> None:
    now = _tried(sight)
    sight.problem, sight.failing = "", None
    if sight.first is None or step != sight.said:
        sight.said, sight.first = step, now
    sight.last = now


def _note_failure(sight: _Sight, problem: str) -> None:
    now = _tried(sight)
    sight.problem = problem
    sight.failing = now if sight.failing is None else sight.failing


def _tried(sight: _Sight) -> float:
    sight.tried = asyncio.get_running_loop().time()
    sight.due = sight.tried + min(max(SHARE * sight.target.timeout, TICK), RARELY)
    return sight.tried


def _step(body: bytes, target: Target) -> int | None:
    """The step that the attempt asked for told; ValueError for an answer by anybody else."""
    try:
        said = json.loads(body)
    except RecursionError:
        raise ValueError("no answer of ours") from None
    if not isinstance(said, dict) or said.get("spottrain") != 1 or said.get("attemptID") != target.attempt_id:
        raise ValueError("the answer is another program's")
    step = said.get("step")
    if step is None or (isinstance(step, int) and not isinstance(step, bool)):
        return step
    raise ValueError("the step is no number")
