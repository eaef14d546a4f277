"""SIGTERM for a process that is PID 1 of its container.

Linux gives PID 1 no default action: a SIGTERM that comes while a program still imports its libraries,
before anyone has set a handler, is dropped, and the program then trains until it is killed. From the
import of this package on it ends as any other process would; `spottrain.session()` takes over from there.
"""

import os
import signal
import threading
from types import FrameType


def end(number: int, frame: FrameType | None) -> None:
    """What the default action would do, as far as an exit code can say it."""
    del frame
    os._exit(128 + number)


def install() -> None:
    """Give SIGTERM its usual meaning, if this is PID 1 and nobody has given it another."""
    if os.getpid() != 1 or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
