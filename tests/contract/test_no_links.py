"""A file system without hard links: exFAT, mounted by FUSE."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import packages
from spottrain import errors
from spottrain.checkpoint import claim, files

PROGRAMS = {"mkfs.exfat": "exfatprogs", "mount.exfat-fuse": "exfat-fuse"}
SIZE = 16 << 20


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A folder on exFAT."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting needs root and FUSE")
    packages.install(PROGRAMS)
    disk, folder = tmp_path / "disk", tmp_path / "mounted"
    with disk.open("wb") as image:
        image.truncate(SIZE)
    folder.mkdir()
    run("mkfs.exfat", disk)
    device = run("losetup", "--find", "--show", disk)
    try:
        run("mount.exfat-fuse", device, folder)
        yield folder
        run("umount", folder)
    finally:
        run("losetup", "--detach", device)


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_claim_on_a_file_system_without_hard_links_says_what_to_use_instead(mounted: Path):
    store = files.FilesStore(mounted / "ck")
    with pytest.raises(errors.ConfigError, match=r"without hard links .* use a volume that has them"):
        claim.claim(store, claim.Claimant("a"), now=0.0, skipped=print)
    assert store.list("") == []


def test_everything_else_works_there(mounted: Path, tmp_path: Path):
    """So it is the links, and nothing before them, that is missed."""
    store = files.FilesStore(mounted / "ck")
    (tmp_path / "sent").write_bytes(b"x")
    store.put_file("steps/a", tmp_path / "sent")
    assert store.get("steps/a") == b"x"
