"""The one place where the lab looks at a clock or waits."""

import time
from collections.abc import Callable
from typing import TypeVar

from lab.errors import LabError

T = TypeVar("T")


def now() -> float:
    """Seconds on a clock that only goes forward."""
    return time.monotonic()


def wall() -> float:
    """Unix seconds."""
    return time.time()


def poll(probe: Callable[[], T | None], *, seconds: float, every: float = 0.1) -> T | None:
    """Ask `probe` until it answers something true; None when `seconds` have passed."""
    deadline = now() + seconds
    while not (answer := probe()):
        if now() >= deadline:
            return None
        time.sleep(every)
    return answer


def wait_for(what: str, probe: Callable[[], T | None], *, seconds: float, every: float = 0.1) -> T:
    """As `poll`, but running out of time is an error that names what was waited for."""
    answer = poll(probe, seconds=seconds, every=every)
    if answer is None or answer is False:
        raise LabError(f"{what} did not happen within {seconds:g} s")
    return answer
