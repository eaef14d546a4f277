"""Which checkpoints there are in a directory, by what programs are known to write.

The first layout of which there is anything counts, and no other: a program of the Hugging Face Trainer writes
its final model beside its checkpoints, and whoever restores that alone begins anew.

==================  ================================================================================
layout              a checkpoint
==================  ================================================================================
Hugging Face        a folder `checkpoint-N`, of the Trainer or of accelerate
torch.distributed   a folder with `.metadata`, or the numbered folder around it
Lightning           a `.ckpt`; where there is `last.ckpt`, that alone, as programs resume from it
files               the newest of the directory's own files of torch.save, savez or safetensors,
                    with all that have the same number, and all that have none
==================  ================================================================================

`completeness.py` says which of them are complete.
"""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath

from spottrain.sidecar import whole

Files = Mapping[str, "Stamp"]


@dataclass(frozen=True)
class Stamp:
    """What tells one content of a file from another. `size` in bytes, `changed` in ns since 1970."""

    inode: int
    size: int
    changed: int


class Layout(Enum):
    """Who writes so."""

    HUGGING_FACE = "Hugging Face"
    DISTRIBUTED = "torch.distributed.checkpoint"
    LIGHTNING = "Lightning"
    FILES = "files"


@dataclass(frozen=True)
class Unit:
    """One checkpoint: its files by their paths below the directory.

    `name`: of its folder, or of its newest file; `number`: the one in that; `written`: when the last of it
    was, ns since 1970.
    """

    layout: Layout
    name: str
    number: int | None
    files: Files
    written: int

    @property
    def rewritten(self) -> bool:
        """The next one may have the same name, in which case its files are written over."""
        return self.number is None or self.layout is Layout.FILES

    @property
    def sharded(self) -> bool:
        """Each process writes a part of it, those of other workers elsewhere."""
        return any(_SHARDED.search(name) for name in self.files)


_UNFINISHED = re.compile(r"(^|/)\.?tmp[-_.]|[._-](tmp|temp|part|partial|incomplete)(/|$)|~$")
"""Names of what is still being written, as files or as folders."""
_SHARDED = re.compile(r"(^|/)\.metadata$|zero_pp_rank_")
_CHECKPOINT_N = re.compile(r"((?:.*?/)?checkpoint-(\d+))/")
_STEP = re.compile(r"step[=_-]?(\d+)")
_LAST = re.compile(r"last(-v\d+)?\.ckpt")
METADATA = ".metadata"
_PLAIN = {".pt", ".pth", ".bin", ".safetensors", ".npz"}


def find(root: Path) -> Sequence[Unit]:
    """The checkpoints below `root`, complete or not, the one that was written last first."""
    files = _scan(root)
    for layout in (_hugging_face, _distributed, _lightning, _plain):
        if units := layout(files):
            return sorted(units, key=lambda one: (one.written, one.number or 0), reverse=True)
    return []


def step(root: Path, unit: Unit) -> int | None:
    """The step that the program gives the checkpoint; None if it gives none."""
    if unit.layout is Layout.LIGHTNING:
        inside = whole.global_step(root / unit.name)
        return unit.number if inside is None else inside
    return unit.number


def is_unfinished(name: str) -> bool:
    """Whether its writer has given it a name of its own until it is done."""
    return _UNFINISHED.search(name) is not None


def _scan(root: Path) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent) / name
            if name == METADATA or not name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    found[path.relative_to(root).as_posix()] = stamp(path)
    return dict(sorted(found.items()))


def stamp(path: Path) -> Stamp:
    """The stamp of a file as it is now."""
    told = path.stat()
    return Stamp(told.st_ino, told.st_size, told.st_mtime_ns)


def _hugging_face(files: Files) -> list[Unit]:
    found: dict[tuple[str, int], dict[str, Stamp]] = {}
    for name, stamp in files.items():
        if (match := _CHECKPOINT_N.match(name)) and not is_unfinished(match[1]):
            found.setdefault((match[1], int(match[2])), {})[name] = stamp
    return [_unit(Layout.HUGGING_FACE, name, number, parts) for (name, number), parts in found.items()]


def _unit(layout: Layout, name: str, number: int | None, files: Files) -> Unit:
    return Unit(layout, name, number, files, max(stamp.changed for stamp in files.values()))


def _distributed(files: Files) -> list[Unit]:
    marks = [path for path in map(PurePosixPath, files) if path.name == METADATA]
    found = []
    for folder in {_numbered(path.parent) for path in marks}:
        parts = {name: stamp for name, stamp in files.items() if PurePosixPath(name).is_relative_to(folder)}
        found.append(_unit(Layout.DISTRIBUTED, folder.as_posix(), _number(folder.name), parts))
    return found


def _numbered(folder: PurePosixPath) -> PurePosixPath:
    """The folder, or the first one around it that has a number: `step-100` of `step-100/model`."""
    return next((one for one in (folder, *folder.parents) if _number(one.name) is not None), folder)


def _lightning(files: Files) -> list[Unit]:
    found: dict[str, list[PurePosixPath]] = {}
    for path in map(PurePosixPath, files):
        if path.suffix == ".ckpt" and not is_unfinished(path.as_posix()):
            found.setdefault(path.parent.as_posix(), []).append(path)
    chosen: list[PurePosixPath] = []
    for paths in found.values():
        chosen += [path for path in paths if _LAST.fullmatch(path.name)] or paths
    named = [(path.as_posix(), _number(path.name)) for path in chosen]
    return [_unit(Layout.LIGHTNING, name, number, {name: files[name]}) for name, number in named]


def _plain(files: Files) -> list[Unit]:
    here = {
        name: stamp
        for name, stamp in files.items()
        if "/" not in name and PurePosixPath(name).suffix in _PLAIN and not is_unfinished(name)
    }
    groups: dict[int | None, dict[str, Stamp]] = {}
    for name, stamp in here.items():
        groups.setdefault(_number(PurePosixPath(name).stem), {})[name] = stamp
    common = groups.pop(None, {})
    if common and not groups:
        return [_files_unit(None, common, common)]
    return [_files_unit(number, parts, {**common, **parts}) for number, parts in groups.items()]


def _files_unit(number: int | None, own: Files, files: Files) -> Unit:
    newest = max(own, key=lambda name: own[name].changed)
    return Unit(Layout.FILES, newest, number, files, own[newest].changed)


def _number(text: str) -> int | None:
    """What follows `step`, else the last number in it."""
    found = _STEP.findall(text) or re.findall(r"\d+", PurePosixPath(text).stem)
    return int(found[-1]) if found else None
