"""Sees to it that a stop ends the process in time, whatever the training thread hangs in.

    SIGTERM ──► no agreement with the other ranks within max(3 steps, 5 s) ──► finish or abandon the
    upload, end
          └───► agreed, but not out when the grace is over ──► end

A dead or frozen peer blocks the training thread in native code that no Python exception reaches, so the
end is `os._exit`. Alone there is nobody to agree with, and only the grace counts.
"""

import threading
from collections.abc import Callable

from spottrain.train.clock import Clock

AGREEMENT_SECONDS = 5.0
AGREEMENT_STEPS = 3
_MARGIN_SECONDS = 1.0


def agreement_limit(longest_step: float) -> float:
    """Seconds within which the ranks must agree on a stop."""
    return max(AGREEMENT_STEPS * longest_step, AGREEMENT_SECONDS)


class Watchdog:
    """Waits, in a thread, for a stop to be asked for (here or by another rank), then for the end."""

    def __init__(
        self,
        clock: Clock,
        *,
        grace: float,
        alone: Callable[[], bool],
        limit: Callable[[], float],
        give_up: Callable[[str, float], None],
    ) -> None:
        """`limit`: seconds for the agreement; `give_up(why, seconds left)` ends the process.

        `grace`: seconds from SIGTERM to SIGKILL; `alone`: whether there are no other ranks.
        """
        self._clock = clock
        self._grace = grace
        self._alone = alone
        self._limit = limit
        self._give_up = give_up
        self._asked: float | None = None
        self._agreed = False
        self._dismissed = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="spottrain-watchdog", daemon=True).start()

    def stop_asked(self, at: float) -> None:
        """SIGTERM came, at this monotonic time."""
        self._note(asked=at)

    def stop_agreed(self) -> None:
        """All ranks know of the stop."""
        self._note(asked=self._clock.monotonic(), agreed=True)

    def left(self) -> float:
        """Seconds until the grace is over but for a margin; all of it as long as nobody was told to stop."""
        with self._changed:
            now = self._clock.monotonic()
            return max(self._end(now if self._asked is None else self._asked) - now, 0.0)

    def dismiss(self) -> None:
        """The session ended well: watch no more."""
        self._note(dismissed=True)

    def _note(self, *, asked: float | None = None, agreed: bool = False, dismissed: bool = False) -> None:
        with self._changed:
            if self._asked is None:
                self._asked = asked
            self._agreed = self._agreed or agreed
            self._dismissed = self._dismissed or dismissed
            self._changed.notify_all()

    def _watch(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._dismissed or self._asked is not None)
            if self._dismissed or self._asked is None:
                return
            end = self._end(self._asked)
            why = "the grace is over"
            if not self._alone() and not self._until(min(self._asked + self._limit(), end), settled=True):
                why = "the other ranks do not answer"
            elif self._until(end, settled=False):
                return
        self._give_up(why, max(end - self._clock.monotonic(), 0.0))

    def _end(self, asked: float) -> float:
        return asked + max(self._grace - _MARGIN_SECONDS, 0.0)

    def _until(self, end: float, *, settled: bool) -> bool:
        """Wait until then; whether the session was dismissed before (or, if `settled`, the stop agreed)."""
        left = max(end - self._clock.monotonic(), 0.0)
        return self._changed.wait_for(lambda: self._dismissed or (settled and self._agreed), left)
