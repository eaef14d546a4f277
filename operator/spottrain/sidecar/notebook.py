"""Which contents of the directory are stored already; kept there, as a sidecar may be started again."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from spottrain.sidecar import layouts

NAME = ".spottrain-stored.json"


class Notebook:
    """What was restored or stored, or was older than that."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self._stored = _read(self._path)

    def knows(self, unit: layouts.Unit) -> bool:
        """Whether there is nothing in it that isn't stored. Some of it may be gone: it is being removed."""
        known = self._stored.get(unit.name, {})
        return all(known.get(name) == stamp for name, stamp in unit.files.items())

    def note(self, units: Iterable[layouts.Unit]) -> None:
        """These are done with. Those that are gone are forgotten."""
        kept = {name: files for name, files in self._stored.items() if (self._path.parent / name).exists()}
        self._stored = {**kept, **{unit.name: unit.files for unit in units}}
        text = json.dumps({name: _plain(files) for name, files in self._stored.items()})
        temporary = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):  # the program has filled the disk: a new process stores once more
            temporary.write_text(text)
            temporary.replace(self._path)


def _plain(files: layouts.Files) -> dict[str, dict[str, int]]:
    return {name: asdict(stamp) for name, stamp in files.items()}


def _read(path: Path) -> dict[str, layouts.Files]:
    """Nothing when it can't be read, as when the program emptied its directory: the newest is stored anew."""
    try:
        raw = json.loads(path.read_bytes())
        return {
            unit: {name: layouts.Stamp(**stamp) for name, stamp in files.items()}
            for unit, files in raw.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
