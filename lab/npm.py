"""Installs programs that come as npm packages, each once, into the cache outside the repository.

Each has a folder below `npm/` whose package-lock.json pins every file by its hash. To move to another
version: change package.json there, run `npm install --package-lock-only --omit-lockfile-registry-resolved`
in it, commit both.
"""

import hashlib
import shutil
from pathlib import Path

from lab import build, locks, shell

NPM = Path(__file__).parent / "npm"
_FILES = ("package.json", "package-lock.json")


def install(name: str, node: Path) -> Path:
    """The folder that holds `name`'s node_modules, filled now if it was not.

    `node`: a distribution of Node.js, with `bin/node` and npm in `lib`.
    """
    source = NPM / name
    digest = hashlib.sha256(b"".join((source / file).read_bytes() for file in _FILES)).hexdigest()
    root = build.cache_root() / "programs"
    target = root / f"{name}-{digest[:12]}"
    if not target.exists():
        root.mkdir(parents=True, exist_ok=True)
        with locks.held(root / "lock"):
            if not target.exists():
                _fill(source, target, node)
    return target


def _fill(source: Path, target: Path, node: Path) -> None:
    unfinished = target.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for file in _FILES:
        shutil.copy(source / file, unfinished)
    # No package's own scripts: what the servers need is in the packages.
    npm = ("nice", node / "bin" / "node", node / "lib/node_modules/npm/bin/npm-cli.js")
    shell.run(*npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", cwd=unfinished)
    unfinished.rename(target)
