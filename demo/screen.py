"""One line at a time: the seconds since the start, and what is going on."""

import sys
from typing import TextIO

from demo import clock

QUIET_SECONDS = 3.0


class Screen:
    """Prints what happens at once, and how things stand now and then, when that has changed."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._began = clock.now()
        self._last = ""
        self._last_at = self._began

    @property
    def seconds(self) -> float:
        """Since the start."""
        return clock.now() - self._began

    def say(self, text: str) -> None:
        """Something happened."""
        print(f"[{self.seconds:6.1f} s] {text}", file=self._out, flush=True)
        self._last_at = clock.now()

    def stands(self, text: str) -> None:
        """How things stand; called as often as one likes."""
        if text and text != self._last and clock.now() - self._last_at >= QUIET_SECONDS:
            self.say(f"  {text}")
            self._last = text

    def plain(self, text: str) -> None:
        """Text without the seconds."""
        print(text, file=self._out, flush=True)
