"""A file system without hard links: exFAT, mounted by FUSE."""

import os
import subprocess
import time
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
    subprocess.run(["mkfs.exfat", disk], check=True, capture_output=True)
    # In the foreground: what it mounts lasts as long as the process.
    with subprocess.Popen(["mount.exfat-fuse", "-d", disk, folder], stderr=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + 20
        while not folder.is_mount():
            assert server.poll() is None, "it did not mount"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield folder
        subprocess.run(["umount", folder], check=True)


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
