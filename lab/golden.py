"""One containerd root with all images unpacked; machines get hard-linked copies of it.

Unpacking takes seconds and hundreds of megabytes for each image, a linked copy 0.4 s and nothing.
Images and snapshots are never written again, so links are safe; the databases become real copies.
Each change makes a new generation beside the old one and then moves one symbolic link.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import clock, locks, process, shell
from lab.archive import Image
from lab.build import cache_root

_CONTAINERD = """\
version = 2
root = "{root}"
state = "{run}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{run}/containerd.sock"
# No sweep of its own accord: one that comes while an image is being unpacked can take a layer that the old
# image of that name had and the new one is about to build on ("parent snapshot ... does not exist").
[plugins."io.containerd.gc.v1.scheduler"]
  startup_delay = "24h"
  mutation_threshold = 0
  deletion_threshold = 0
"""


def add(*images: Image) -> bool:
    """Unpack images that are not there yet; False when all of them were."""
    with locks.held(_folder() / "adding.lock"):
        index = _index(_folder() / "current")
        new = [image for image in images if index.get(image.reference) != str(_kept(image))]
        if new:
            archives = {image.reference: str(_keep(image)) for image in new}
            _next_generation(index | archives, [("import", path) for path in archives.values()])
        return bool(new)


def remove(reference: str) -> None:
    """Forget an image; machines that have it keep it."""
    with locks.held(_folder() / "adding.lock"):
        index = _index(_folder() / "current")
        if index.pop(reference, None):
            _next_generation(index, [("rm", "--sync", reference)])


def clone_to(disk: Path) -> None:
    """Give a machine's disk the images, unless it has some already."""
    with _reading() as current:
        if not (disk / "images.json").exists():
            shutil.rmtree(disk / "containerd", ignore_errors=True)
            _copy(current / "containerd", disk / "containerd")
            shutil.copy(current / "images.json", disk)


def lacking(disk: Path) -> dict[str, str]:
    """Reference → archive of the images that were added after the disk was made."""
    with _reading() as current:
        here, there = _index(current), _index(disk)
        return {reference: path for reference, path in here.items() if there.get(reference) != path}


def note(disk: Path, reference: str, path: str) -> None:
    """The machine with this disk has the image now."""
    (disk / "images.json").write_text(json.dumps(_index(disk) | {reference: path}))


def _folder() -> Path:
    return cache_root() / "golden"


def _switching() -> Path:
    return _folder() / "switching.lock"


@contextmanager
def _reading() -> Iterator[Path]:
    """The current generation, which is not removed meanwhile."""
    with locks.held(_switching(), shared=True):
        yield _folder() / "current"


def _index(folder: Path) -> dict[str, str]:
    path = folder / "images.json"
    loaded: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return loaded


def _kept(image: Image) -> Path:
    """Of the name too: the same image under two tags is two archives, each with its own tag inside."""
    key = hashlib.sha256(f"{image.reference} {image.identity}".encode()).hexdigest()
    return cache_root() / "images" / f"{key[:24]}.tar"


def _keep(image: Image) -> Path:
    """Archives stay in the cache, for machines that are off while an image is added."""
    kept = _kept(image)
    kept.parent.mkdir(parents=True, exist_ok=True)
    if not kept.exists():
        unfinished = kept.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        if image.archive.is_relative_to(cache_root()):
            unfinished.hardlink_to(image.archive)  # nobody writes to those again
        else:
            shutil.copyfile(image.archive, unfinished)
        unfinished.rename(kept)
    return kept


def _next_generation(index: dict[str, str], changes: list[tuple[str, ...]]) -> None:
    """Copy the current generation, change it by `ctr images` commands, and make it the current one."""
    current = _folder() / "current"
    made = Path(tempfile.mkdtemp(prefix="generation-", dir=_folder()))
    if current.exists():
        _copy(current / "containerd", made / "containerd")
    _change(made / "containerd", changes)
    (made / "images.json").write_text(json.dumps(index, indent=1))
    link = _folder() / "next"
    link.unlink(missing_ok=True)
    link.symlink_to(made.name)
    with locks.held(_switching()):
        link.rename(current)
        _remove_unused(made, index)


def _remove_unused(keep: Path, index: dict[str, str]) -> None:
    for old in _folder().glob("generation-*"):
        if old != keep:
            shutil.rmtree(old)
    for path in (cache_root() / "images").glob("*.tar"):
        if str(path) not in index.values():
            path.unlink()


def _change(root: Path, changes: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory(prefix="stlab-golden-", dir="/run") as folder:
        run = Path(folder)
        (run / "config.toml").write_text(_CONTAINERD.format(root=root, run=run))
        ctr = ("ctr", "--address", run / "containerd.sock")
        pid_file = run / "pid"
        process.spawn(["containerd", "--config", run / "config.toml"], log=run / "log", pid_file=pid_file)
        try:
            clock.wait_for("the start of containerd", lambda: shell.succeeds(*ctr, "version"), seconds=20)
            for change in changes:
                shell.run(*ctr, "--namespace", "k8s.io", "images", *change)
            _sweep(*ctr, "--namespace", "k8s.io")
        finally:
            process.stop(pid_file, grace=10)


def _sweep(*ctr: shell.Word) -> None:
    """Remove what no image needs any more; the end of a lease is what ctr can ask for it with."""
    shell.run(*ctr, "leases", "create", "--id", "lab-sweep")
    shell.run(*ctr, "leases", "delete", "--sync", "lab-sweep")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    linkable = source.stat().st_dev == target.parent.stat().st_dev
    shell.run("cp", "-al" if linkable else "-a", source, target)
    for database in target.rglob("*.db"):
        real = database.with_suffix(".copy")
        shutil.copy(database, real)
        real.rename(database)
