"""Locks between commands; the kernel drops them when their holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock of this file (made with its folder when missing) and hold it meanwhile.

    Any number of holders may share it while nobody has it alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
