"""Keeping a checkpoint as it is while it is uploaded, whatever the program does to it meanwhile.

Programs remove old checkpoints, and write files over. The first is no matter to a second link to the file,
which costs nothing, and the second none to a copy: that is made of what may be written over. A link to a file
that is changed all the same shows it, and nothing is committed then.
"""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spottrain.sidecar import layouts

_PREFIX = ".spottrain-held-"


@dataclass(frozen=True)
class Held:
    """The files below `folder`, and what they were when they were taken."""

    folder: Path
    files: Mapping[str, layouts.Stamp]

    def problem(self) -> str | None:
        """What has changed since then; None if nothing has."""
        changed = [name for name, stamp in self.files.items() if layouts.stamp(self.folder / name) != stamp]
        return f"{changed[0]} was changed while it was uploaded" if changed else None


def hold(root: Path, unit: layouts.Unit) -> Held | None:
    """The unit's files in a folder of their own below `root`; None if they are no longer what the unit says.

    OSError if there is no room, or no right to read them; nothing is left behind then.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    try:
        for name in unit.files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _take((root / name).resolve(strict=True), target, link=not unit.rewritten)
        if all(layouts.stamp(root / name) == stamp for name, stamp in unit.files.items()):
            return Held(folder, {name: layouts.stamp(folder / name) for name in unit.files})
    except FileNotFoundError:
        pass
    except OSError:
        release(folder)
        raise
    release(folder)
    return None


def release(folder: Path) -> None:
    """Give up what is held."""
    shutil.rmtree(folder, ignore_errors=True)


def release_all(root: Path) -> None:
    """Give up what an earlier process held."""
    for folder in root.glob(f"{_PREFIX}*"):
        release(folder)


def _take(source: Path, target: Path, *, link: bool) -> None:
    if link:
        try:
            target.hardlink_to(source)
        except PermissionError:
            pass  # another user's file, which the kernel (fs.protected_hardlinks) lets nobody else link to
        else:
            return
    shutil.copyfile(source, target)
