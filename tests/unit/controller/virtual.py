"""An event loop whose clock is moved by waiting for it: minutes of a queue's life take no time."""

import asyncio
import collections.abc as cabc
import selectors
from typing import Any


class _Selector(selectors.SelectSelector):
    """Waits for nobody: where the loop would sleep, its clock moves."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
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
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(body)
