"""The library's one clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from, and the only way to wait."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def unix(self) -> float:
        """Seconds since 1970, for people and records."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's."""

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    def unix(self) -> float:
        """See Clock."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds)
