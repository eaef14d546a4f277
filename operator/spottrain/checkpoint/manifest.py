"""COMMIT.json: the object that makes a checkpoint exist, and names everything in it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from spottrain.checkpoint import layout


@dataclass(frozen=True)
class File:
    """One file of a checkpoint: its name within the directory, its size in bytes, its SHA-256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Writer:
    """Who wrote it. `seq` is the writer's claim in the lineage."""

    attempt_id: str
    nonce: str
    seq: int
    attempt: int = 0
    job_uid: str = ""
    host: str = ""
    pid: int = 0


@dataclass(frozen=True)
class Commit:
    """A checkpoint. `time` is Unix seconds by the writer's clock, for people: nothing is ordered by it.

    `stop`: its attempt was told to stop, and ended with this save. `blocked`: seconds that the save held
    training up, on the slowest rank; `seconds`: all that it took until this was written. 0 where not known.
    """

    step: int
    writer: Writer
    files: tuple[File, ...]
    world_size: int
    versions: Mapping[str, str] = field(default_factory=dict)
    time: float = 0.0
    stop: bool = False
    blocked: float = 0.0
    seconds: float = 0.0

    @property
    def directory(self) -> layout.StepDir:
        """Where it lies."""
        return layout.StepDir(self.step, self.writer.attempt_id, self.writer.nonce)

    def files_for(self, rank: int) -> tuple[File, ...]:
        """What a rank needs: rank 0's files, and its own."""
        return tuple(file for file in self.files if layout.rank_of(file.name) in {0, rank})

    def encode(self) -> bytes:
        """The bytes of COMMIT.json."""
        return json.dumps({"format": layout.FORMAT, **asdict(self)}, indent=1, sort_keys=True).encode()


def decode(data: bytes, directory: layout.StepDir) -> Commit | str:
    """The commit in these bytes, or a sentence that says why they are none for this directory.

    Raises NewerFormat when a later version of spottrain wrote them.
    """
    try:
        raw = json.loads(data)
        layout.refuse_newer(raw["format"], directory.commit_key)
        if raw["format"] != layout.FORMAT:
            return f"its COMMIT.json has format {raw['format']}, which never was"
        commit = _parse(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its COMMIT.json cannot be read ({type(error).__name__}: {error})"
    if commit.directory != directory:
        return f"its COMMIT.json belongs to {commit.directory.name}"
    return commit


def _parse(raw: Any) -> Commit:
    writer = raw["writer"]
    files = tuple(File(str(f["name"]), int(f["size"]), str(f["sha256"])) for f in raw["files"])
    unsafe = [file.name for file in files if not _stays_inside(file.name)]
    if unsafe:
        raise ValueError(f"file name {unsafe[0]!r} leaves the directory")
    return Commit(
        step=int(raw["step"]),
        writer=Writer(
            attempt_id=str(writer["attempt_id"]),
            nonce=str(writer["nonce"]),
            seq=int(writer["seq"]),
            attempt=int(writer.get("attempt", 0)),
            job_uid=str(writer.get("job_uid", "")),
            host=str(writer.get("host", "")),
            pid=int(writer.get("pid", 0)),
        ),
        files=files,
        world_size=int(raw["world_size"]),
        versions={str(k): str(v) for k, v in raw.get("versions", {}).items()},
        time=float(raw.get("time", 0.0)),
        stop=bool(raw.get("stop", False)),
        blocked=float(raw.get("blocked", 0.0)),
        seconds=float(raw.get("seconds", 0.0)),
    )


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def damage(commit: Commit, sizes: Mapping[str, int]) -> str | None:
    """What is wrong with a checkpoint in a directory of files of these `sizes` (by name); None: nothing.

    Sizes only: checksums are compared when the files are read.
    """
    for file in commit.files:
        size = sizes.get(file.name)
        if size is None:
            return f"{file.name} is missing"
        if size != file.size:
            return f"{file.name} has {size} bytes instead of {file.size}"
    return None
