"""An event loop whose clock is moved by waiting for it: minutes take no time.

Sockets of this process may be used: the clock stands still while anything comes in.
"""

import asyncio
import collections.abc as cabc
import selectors
from typing import Any

ON_ITS_WAY = 0.001
"""Real seconds in which what was sent on this machine has arrived."""


class _Selector(selectors.DefaultSelector):
    """Where the loop would sleep, its clock moves."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0) or (super().select(ON_ITS_WAY) if timeout != 0 else [])
        if not found:
            if timeout is None:
                raise AssertionError("everybody waits for ever")
            self.now += timeout
        return found


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(body: cabc.Coroutine[Any, Any, None]) -> None:
    """A test's body in virtual time."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(body)
