"""Builds the programs once, one at a time, into a cache outside the repository."""

import os
import re
import shutil
from pathlib import Path

from lab import clock, locks, shell
from lab.errors import LabError
from lab.programs import GOMOD, OTHERS, PROGRAMS, Program, cache_key

MINIMUM_GO = (1, 26)


def cache_root() -> Path:
    """Where things that outlive a lab are kept: SPOTTRAIN_CACHE or /var/cache/spottrain."""
    return Path(os.environ.get("SPOTTRAIN_CACHE") or "/var/cache/spottrain")


def parse_go_version(text: str) -> tuple[int, int]:
    """(1, 26) from `go1.26.8` or `1.26.8`; raises LabError when it is no release."""
    if (found := re.match(r"(?:go)?(\d+)\.(\d+)", text)) is None:
        raise LabError(f"cannot read the Go version {text!r}; install Go from https://go.dev/dl")
    return int(found.group(1)), int(found.group(2))


def go_version() -> str:
    """The installed toolchain, such as go1.26.8; raises LabError when there is none or it is too old."""
    wanted = ".".join(str(part) for part in MINIMUM_GO)
    if shutil.which("go") is None:
        raise LabError(f"Go is not installed: install Go {wanted} or newer from https://go.dev/dl")
    found = shell.run("go", "env", "GOVERSION").strip()
    if parse_go_version(found) < MINIMUM_GO:
        raise LabError(f"{found} is too old: install Go {wanted} or newer from https://go.dev/dl")
    return found


def location(program: Program, go: str) -> Path:
    """Where the wanted build of `program` is, or will be."""
    folder = GOMOD / program.family
    sources = [folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go"))]
    key = cache_key(program, go, [source.read_bytes() for source in sources])
    return cache_root() / "programs" / key / program.name


def missing(go: str) -> list[Program]:
    """The programs whose wanted build is not in the cache."""
    return [program for program in PROGRAMS if not location(program, go).exists()]


def build_all() -> dict[str, Path]:
    """Build what is missing and say how long each took; returns name → path of every program.

    Compiled packages stay in Go's own cache, so a build that was interrupted goes on where it was.
    """
    go = go_version()
    if missing(go):
        with locks.held(cache_root() / "programs" / "lock"):
            _build_missing(go)
    return {program.name: location(program, go) for program in PROGRAMS}


def build_one(name: str) -> Path:
    """The path of one program by its name, built now if it was not."""
    go = go_version()
    program = next(program for program in (*PROGRAMS, *OTHERS) if program.name == name)
    target = location(program, go)
    if not target.exists():
        with locks.held(cache_root() / "programs" / "lock"):
            if not target.exists():
                _build(program, target)
    return target


def _build_missing(go: str) -> None:
    todo = missing(go)
    for number, program in enumerate(todo, start=1):
        print(f"build {number}/{len(todo)}: {program.name} {program.version} ...", end=" ", flush=True)
        started = clock.now()
        _build(program, location(program, go))
        print(f"{clock.now() - started:.0f} s", flush=True)


def _build(program: Program, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    # A toolchain that go.mod would like to download cannot be assumed to be reachable.
    settings = {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    }
    shell.run(
        *("nice", "go", "build", "-ldflags", program.ldflags(), "-o", unfinished, program.package),
        cwd=GOMOD / program.family,
        env=settings,
    )
    unfinished.rename(target)
