"""The parts of a shard: which ones count, and what is in them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from spottrain import errors
from spottrain.batch import layout as names
from spottrain.checkpoint import layout, manifest, view
from spottrain.checkpoint.store import Store

_AT_ONCE = 16
_TRIES = 2

Skip = Callable[[view.Skipped], None]


@dataclass(frozen=True)
class Part:
    """A committed part, and the names of the inputs that it is about, rejected ones too."""

    commit: manifest.Commit
    ids: tuple[str, ...]


def read(place: Store, seen: view.View, trail: Iterable[layout.StepDir], skipped: Skip) -> Iterator[Part]:
    """The sound parts of a trail, oldest first; `skipped` is told of the others, whose inputs count as to do.

    Raises the store's error when it can't be read.
    """
    oldest_first = list(trail)[::-1]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda directory: _part(place, seen, directory), oldest_first):
            if isinstance(found, Part):
                yield found
            else:
                skipped(found)


def outputs(place: Store, part: Part) -> list[Any]:
    """The results in a part; CheckpointError, with what to do, when they aren't what was saved."""
    data = _fetch(place, part.commit, names.OUTPUTS)
    if isinstance(data, view.Skipped):
        commit = f"{place.uri}/{part.commit.directory.commit_key}"
        raise errors.CheckpointError(
            f"{data.directory.name}: {data.reason}; remove {commit} and run the job again: "
            f"the {len(part.ids)} inputs of this part are then computed anew"
        )
    return [json.loads(line) for line in data.splitlines()]


def _part(place: Store, seen: view.View, directory: layout.StepDir) -> Part | view.Skipped:
    commit = view.inspect(place, seen, directory)
    if isinstance(commit, view.Skipped):
        return commit
    data = _fetch(place, commit, names.IDS)
    if isinstance(data, view.Skipped):
        return data
    return Part(commit, tuple(json.loads(line) for line in data.splitlines()))


def _fetch(place: Store, commit: manifest.Commit, name: str) -> bytes | view.Skipped:
    file = next((file for file in commit.files if file.name == name), None)
    if file is None:
        return view.Skipped(commit.directory, f"its COMMIT.json names no {name}")
    for _ in range(_TRIES):
        data = place.get(commit.directory.key(name))
        if data is None:
            return view.Skipped(commit.directory, f"{name} is missing")
        if hashlib.sha256(data).hexdigest() == file.sha256:
            return data
    return view.Skipped(commit.directory, f"{name} has another checksum than when it was saved")
