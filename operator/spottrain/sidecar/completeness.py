"""Whether a checkpoint is complete: a half-written one must never be stored.

Every file that can tell where it ends (`whole.py`) must be all there, none may have the name of an unfinished
one, and what its layout writes last must be there:

==================  ===================================================================================
layout              what says so
==================  ===================================================================================
Hugging Face        `trainer_state.json`, or accelerate's `random_states_0.pkl`; and every file that an
                    index of shards names is there
torch.distributed   a `.metadata` that is newer than the shards beside it
Lightning, files    each file tells where it ends
==================  ===================================================================================

That nothing has changed for a while comes on top of that while the program runs (`watching.py`).
"""

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from spottrain.sidecar import layouts, whole

_MARKS = ("trainer_state.json", "random_states_0.pkl")


def unfinished(root: Path, unit: layouts.Unit) -> str | None:
    """What is missing of the checkpoint; None if it is complete. OSError when it can't be read."""
    try:
        for name in unit.files:
            if layouts.is_unfinished(name):
                return f"{name} is still being written"
            if problem := whole.problem(root / name):
                return f"{unit.name}: {problem}"
        return _ends(root, unit)
    except FileNotFoundError as error:
        return f"{error.filename} is gone"


def _ends(root: Path, unit: layouts.Unit) -> str | None:
    """What is missing of it by its layout's own marks."""
    if unit.layout is layouts.Layout.HUGGING_FACE:
        return _unmarked(root, unit)
    if unit.layout is layouts.Layout.DISTRIBUTED:
        return _older_metadata(unit)
    unsure = [name for name in unit.files if not whole.tells_its_end(root / name)]
    return f"{unsure[0]} is in a format that doesn't tell where it ends" if unsure else None


def _unmarked(root: Path, unit: layouts.Unit) -> str | None:
    if not any(f"{unit.name}/{mark}" in unit.files for mark in _MARKS):
        return f"{unit.name} has no {_MARKS[0]} yet"
    missing = sorted(_shards_of_indexes(root, unit.files) - unit.files.keys())
    return f"{missing[0]} is missing" if missing else None


def _shards_of_indexes(root: Path, files: Iterable[str]) -> set[str]:
    """What `*.index.json` of a model in several files names."""
    shards: set[str] = set()
    for name in files:
        if name.endswith(".index.json"):
            index = json.loads((root / name).read_bytes())
            folder = PurePosixPath(name).parent
            shards |= {str(folder / one) for one in index.get("weight_map", {}).values()}
    return shards


def _older_metadata(unit: layouts.Unit) -> str | None:
    """Rank 0 writes `.metadata` when all have written their shards."""
    paths = [PurePosixPath(name) for name in unit.files]
    shards = [path for path in paths if path.suffix == ".distcp"]
    for mark in (path for path in paths if path.name == layouts.METADATA):
        written = unit.files[str(mark)].changed
        for shard in shards:
            if shard.parent == mark.parent and unit.files[str(shard)].changed > written:
                return f"{shard} is newer than {mark}"
    return None
