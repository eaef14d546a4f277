"""What a session saves and loads: the state behind `Run.track`, or a program's own functions."""

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Load = Callable[[Path], None]
Write = Callable[[Path], None]


class Loader(Protocol):
    """What a checkpoint is loaded into."""

    @property
    def resizable(self) -> bool:
        """Whether it can be loaded by another number of ranks than wrote it."""

    def wants(self, folder: Path) -> Collection[str]:
        """Names, as their ranks wrote them, of other ranks' files that this one needs too.

        `folder` has rank 0's files, and this rank's own over them.
        """

    def load(self, folder: Path) -> None:
        """Load what `write` wrote."""


class Tracked(Loader, Protocol):
    """State that can be written to a folder and loaded from it, see `Run.track`."""

    def write(self, folder: Path) -> None:
        """Write this rank's part."""


@dataclass(frozen=True)
class Given:
    """A function that the program passed: it needs nothing of other ranks."""

    load: Load
    resizable: bool = False

    def wants(self, folder: Path) -> Collection[str]:  # noqa: ARG002 - as in Loader
        """Nothing."""
        return ()


class Kept:
    """A checkpoint's folder, kept for a library that reads it by itself."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        """None for a fresh start."""

    def load(self, folder: Path) -> None:
        """Keep what is in `folder` when the session would remove it."""
        self.folder = folder.rename(folder.with_name(f"{folder.name}-kept"))

    def forget(self) -> None:
        """It has been read."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
