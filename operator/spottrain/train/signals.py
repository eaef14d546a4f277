"""SIGTERM, seen at once: also while the main thread is inside a collective, a long step or an evaluation.

Python runs signal handlers between bytecodes of the main thread, so a handler alone sleeps through a blocked
native call. But the C handler writes the signal's number to a file descriptor (`signal.set_wakeup_fd`) right
away, and a thread reads it there. Blocking the signal and `sigwait` would work too, but a blocked signal is
inherited by data-loader workers, which then can't be told to end.
"""

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from spottrain import errors, pid1
from spottrain.train.clock import Clock


class StopSignal:
    """Whether and when SIGTERM came. A handler that the program had set before is still called."""

    def __init__(self, clock: Clock, on_stop: Callable[[float], None]) -> None:
        """`on_stop` is called once, from a thread, with the monotonic time of the first SIGTERM."""
        self._clock = clock
        self._on_stop = on_stop
        self._event = threading.Event()
        self._previous: Any = signal.SIG_DFL
        self._previous_fd = -1
        self._pipe: tuple[int, int] | None = None

    @property
    def seen(self) -> bool:
        """Whether SIGTERM has come."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait at most this long for SIGTERM; whether it has come."""
        return self._event.wait(seconds)

    def install(self) -> None:
        """From now on SIGTERM asks for a stop instead of ending the process. Main thread only."""
        if threading.current_thread() is not threading.main_thread():
            raise errors.ConfigError("spottrain.session() must be entered in the program's main thread")
        read, write = os.pipe()
        os.set_blocking(write, False)
        self._pipe = (read, write)
        self._previous_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._previous = signal.signal(signal.SIGTERM, self._chain)
        _forget_in_children(self)
        threading.Thread(target=self._watch, args=(read,), name="spottrain-signals", daemon=True).start()

    def uninstall(self) -> None:
        """Put back what was there before."""
        if self._pipe is None:
            return
        signal.signal(signal.SIGTERM, self._previous)
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._pipe[1])
        self._pipe = None

    def ignore(self) -> None:
        """The process is on its way out: another SIGTERM must not turn its exit code into a death by signal.

        Each rank gets one of its own, and they don't all come at once. Leaving our handler in place would
        not do: Python puts the default back while it shuts down, which takes seconds with torch loaded.
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def forget(self) -> None:
        """In a forked child: SIGTERM means again what it meant before, and is not reported to the parent."""
        if self._pipe is None:
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, self._previous)
        self._pipe = None

    def _chain(self, number: int, frame: FrameType | None) -> None:
        # The thread sets it too, but a handler that ends the program may be faster.
        self._event.set()
        if callable(self._previous) and self._previous is not pid1.end:
            self._previous(number, frame)

    def _watch(self, read: int) -> None:
        told = False
        while numbers := os.read(read, 64):
            if self._previous_fd >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._previous_fd, numbers)
            if signal.SIGTERM in numbers and not told:
                told = True
                self._event.set()
                self._on_stop(self._clock.monotonic())
        os.close(read)


def _forget_in_children(stop: StopSignal) -> None:
    # A data-loader worker is forked with our handler and our pipe; ending it with SIGTERM, as torch does,
    # would otherwise read as a stop of the whole run. Hooks can't be taken back, so this one holds no
    # reference.
    reference = weakref.ref(stop)

    def in_child() -> None:
        if (alive := reference()) is not None:
            alive.forget()

    os.register_at_fork(after_in_child=in_child)
