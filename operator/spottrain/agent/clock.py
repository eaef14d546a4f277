"""The agent's one clock."""

import datetime as dt
import threading
import time


class Clock:
    """The machine's, put right by what the API server says: deadlines are compared with others' clocks.

    One for all threads.
    """

    def __init__(self) -> None:
        self._skew = dt.timedelta()
        self._ending = threading.Event()

    def now(self) -> dt.datetime:
        """The time as the API server has it, aware, in UTC."""
        return dt.datetime.now(dt.UTC) + self._skew

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()

    def put_right(self, told: dt.datetime) -> None:
        """Somebody with a better clock has just said that it is `told`, in whole seconds.

        Less than two seconds of difference may be rounding and the way.
        """
        skew = told - dt.datetime.now(dt.UTC)
        self._skew = skew if abs(skew) >= dt.timedelta(seconds=2) else dt.timedelta()

    def end(self) -> None:
        """The process ends: nobody waits any longer."""
        self._ending.set()

    @property
    def ended(self) -> bool:
        """The process ends."""
        return self._ending.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait so long; False at once when the process ends."""
        return not self._ending.wait(seconds)
