"""The one place where the demo looks at a clock or waits."""

import time
from collections.abc import Callable
from typing import TypeVar

from demo.errors import DemoError

T = TypeVar("T")

EVERY = 0.2


def wall() -> float:
    """Unix seconds, as the workers' log lines give them."""
    return time.time()


def now() -> float:
    """Seconds on a clock that only goes forward."""
    return time.monotonic()


def wait_for(
    what: str,
    probe: Callable[[], T | None],
    *,
    seconds: float,
    tell: Callable[[], str] = str,
    show: Callable[[str], None] | None = None,
) -> T:
    """Ask `probe` until it answers something true, and return that.

    `tell` describes how things stand: it goes to `show` on every turn, and into the error.
    Raises DemoError, naming what was waited for, when `seconds` have passed.
    """
    deadline = now() + seconds
    while True:
        if answer := probe():
            return answer
        if show is not None:
            show(tell())
        if now() >= deadline:
            state = tell()
            raise DemoError(
                f"waited {seconds:g} s for {what} in vain" + (f"; last seen: {state}" if state else "")
            )
        time.sleep(EVERY)
