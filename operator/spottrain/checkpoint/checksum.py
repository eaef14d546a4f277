"""SHA-256 of files, in hex: of one that lies there, and of one that is on its way."""

import hashlib
from pathlib import Path
from typing import BinaryIO


def of(path: Path) -> str:
    """That of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Summing:
    """A stream into `out` that sums up what is written."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._sum = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write on."""
        self._sum.update(data)
        return self._out.write(data)

    def value(self) -> str:
        """That of all that was written."""
        return self._sum.hexdigest()
