"""Which files a Dockerfile needs: exactly those that it copies, so that nothing else is sent or hashed."""

import hashlib
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from lab.errors import LabError

_NEVER = ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")


def sources(dockerfile: str) -> list[str]:
    """The arguments of COPY and ADD that name files of the context, in order.

    Raises LabError for the JSON form, which this lab does not read.
    """
    found: list[str] = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() not in ("COPY", "ADD"):
            continue
        if rest.lstrip().startswith("["):
            raise LabError(f"write {line.strip()!r} without brackets: the lab reads the plain form only")
        arguments = shlex.split(rest)
        if not any(argument.startswith("--from=") for argument in arguments):
            found += [argument for argument in arguments if not argument.startswith("--")][:-1]
    return found


def collect(folder: Path) -> list[Path]:
    """The Dockerfile and every file it copies, relative to `folder`, sorted.

    Raises LabError when there is no Dockerfile or a copied path does not exist.
    """
    dockerfile = folder / "Dockerfile"
    if not dockerfile.exists():
        raise LabError(f"{dockerfile} does not exist: name the folder that holds the Dockerfile")
    files = {Path("Dockerfile")}
    for source in sources(dockerfile.read_text()):
        matches = list(folder.glob(source.strip("/"))) if source.strip("/.") else [folder]
        if not matches:
            raise LabError(f"{dockerfile} copies {source}, which does not exist in {folder}")
        files.update(file.relative_to(folder) for match in matches for file in _files(match))
    return sorted(files)


def _files(path: Path) -> Iterable[Path]:
    candidates = path.rglob("*") if path.is_dir() else [path]
    return (
        file
        for file in candidates
        if file.is_file() and file.suffix != ".pyc" and not any(part in _NEVER for part in file.parts)
    )


def digest(folder: Path, files: list[Path], *more: str) -> str:
    """Of names, execute bits and contents, and of anything else that decides what is built."""
    total = hashlib.sha256(repr(more).encode())
    for file in files:
        executable = bool((folder / file).stat().st_mode & 0o100)
        body = (folder / file).read_bytes()
        total.update(f"{file} {executable} {len(body)}\n".encode() + body)
    return total.hexdigest()


def stage(folder: Path, files: list[Path], target: Path) -> None:
    """Copy the files to a folder that holds nothing else."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / file, target / file)
