"""`spottrain checkpoints`: look at checkpoints, check them, compare, thin out and copy them."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import layout, lineage, manifest, retention, view
from spottrain.checkpoint.store import Store, create_once
from spottrain.cli import overview


@dataclass(frozen=True)
class Verified:
    """A checkpoint whose bytes were read: `problem` is empty when all are those that were saved."""

    directory: layout.StepDir
    problem: str
    bytes: int


@dataclass(frozen=True)
class Difference:
    """One thing that differs between two checkpoints: what it is, and its value in each."""

    what: str
    first: str
    second: str


@dataclass(frozen=True)
class Removal:
    """What is, or would be, removed: its size in bytes."""

    directory: layout.StepDir
    bytes: int


def verify(store: Store, saves: Iterable[overview.Save], told: Callable[[Verified], None]) -> bool:
    """Read every byte of these checkpoints; `told` hears of each. True when all are sound."""
    sound = True
    with tempfile.TemporaryDirectory(prefix="spottrain-") as folder:
        for save in saves:
            problem = save.problem
            if save.commit is not None:
                problem = next(_damaged(store, save.commit, Path(folder) / "file"), "")
            sound = sound and not problem
            told(Verified(save.directory, problem, save.bytes))
    return sound


def _damaged(store: Store, commit: manifest.Commit, scratch: Path) -> Iterator[str]:
    for file in commit.files:
        key = commit.directory.key(file.name)
        found = store.get_file(key, scratch)
        if found is None:
            yield f"{file.name} is missing"
        elif found != file.sha256:
            yield f"{file.name} has another checksum than when it was saved"
        scratch.unlink(missing_ok=True)


def diff(first: overview.Save, second: overview.Save) -> list[Difference]:
    """What differs between two checkpoints, by their manifests: no file is read."""
    one, other = _committed(first), _committed(second)
    mine, theirs = _described(one), _described(other)
    names = sorted(mine.keys() | theirs.keys())
    pairs = ((name, mine.get(name, "-"), theirs.get(name, "-")) for name in names)
    return [Difference(name, a, b) for name, a, b in pairs if a != b]


def _committed(save: overview.Save) -> manifest.Commit:
    if save.commit is None:
        raise errors.CheckpointError(f"{save.directory.name} cannot be used: {save.problem}")
    return save.commit


def _described(commit: manifest.Commit) -> Mapping[str, str]:
    facts: dict[str, Any] = {"world size": commit.world_size}
    facts |= {f"version of {name}": version for name, version in commit.versions.items()}
    facts |= {f"file {file.name}": f"{file.size} bytes, {file.sha256[:12]}" for file in commit.files}
    return {name: str(value) for name, value in facts.items()}


def prune(store: Store, found: overview.Overview, *, keep: int, dry_run: bool) -> list[Removal]:
    """Remove what the newest attempt's own retention would, with this `keep`; only say so in a dry run.

    The newest committed checkpoint always stays, and so does whatever an attempt went on from. Raises
    StaleAttempt, with nothing removed, when a new attempt began since `found` was read.
    """
    mine = found.newest
    if mine is None:
        raise errors.LineageBroken(f"{store.uri}: no lineage/ says which checkpoints are still needed")
    sound = {save.directory for save in found.saves if save.commit is not None}
    known, seen = found.records, found.seen
    gone = retention.surplus(known, mine, seen, keep=keep, is_sound=lambda one: one in sound)
    sizes = {save.directory: save.bytes for save in found.saves}
    if not dry_run:
        lineage.Records(store).ensure_newest(mine)
        retention.remove(store, found.seen, gone)
    return [Removal(directory, sizes[directory]) for directory in gone]


def copy(store: Store, save: overview.Save, target: Store) -> manifest.Commit:
    """Copy one checkpoint to an empty place, as the first thing there: a new job goes on from it.

    Bytes are checked on the way. COMMIT comes last but for the claim that makes it count; whoever starts at
    the target in between is refused, or has begun there by itself and then wins.
    """
    commit = _committed(save)
    if view.look(target).committed or lineage.Records(target).numbers():
        raise errors.CheckpointError(f"{target.uri} holds checkpoints already: name an empty place")
    copied = dataclasses.replace(commit, writer=dataclasses.replace(commit.writer, seq=1))
    with tempfile.TemporaryDirectory(prefix="spottrain-") as folder:
        for file in commit.files:
            _copy_file(store, commit.directory.key(file.name), file, target, Path(folder) / "file")
    record = lineage.Record(seq=1, attempt_id=commit.writer.attempt_id, time=commit.time)
    for key, data in (
        (copied.directory.commit_key, copied.encode()),
        (layout.record_key(1), record.encode()),
    ):
        if create_once(target, key, data) is not None:
            raise errors.CheckpointError(f"{target.uri}: somebody else has begun there meanwhile")
    return copied


def _copy_file(store: Store, key: str, file: manifest.File, target: Store, scratch: Path) -> None:
    found = store.get_file(key, scratch)
    if found is None:
        raise errors.CheckpointError(f"{store.uri}/{key} is missing")
    if found != file.sha256:
        raise errors.CheckpointError(f"{store.uri}/{key} has another checksum than when it was saved")
    target.put_file(key, scratch)
    scratch.unlink()
