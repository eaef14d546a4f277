"""The programs of the operating system that the lab uses, and how they get here on Debian and Ubuntu."""

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from lab import build, clock, locks, shell
from lab.errors import LabError

# Program (or file) → Debian package.
NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ip": "iproute2",
    "sysctl": "procps",
    "nsenter": "util-linux",
    "mount": "mount",
    "openssl": "openssl",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
}
_APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")
_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def missing(needed: Mapping[str, str] = NEEDED) -> list[str]:
    """Packages that something needed is not there of."""
    return sorted(package for program, package in needed.items() if not _present(program))


def install(needed: Mapping[str, str] = NEEDED) -> None:
    """Install what is missing, and nothing that is only recommended.

    Raises LabError where there is no apt-get, naming the programs to install by hand.
    """
    if not missing(needed):
        return
    if shutil.which("apt-get") is None:
        programs = sorted(program for program in needed if not _present(program))
        raise LabError(f"install these programs by this system's own means: {', '.join(programs)}")
    with _one_at_a_time():
        packages = missing(needed)
        if not packages:
            return
        print(f"install {' '.join(packages)} ...", end=" ", flush=True)
        started = clock.now()
        shell.run(*_APT, "update", env=_QUIET)
        shell.run(*_APT, "install", "--yes", "--no-install-recommends", *packages, env=_QUIET)
        print(f"{clock.now() - started:.0f} s")


def unpacked(package: str) -> Path:
    """The folder with the package's files, unpacked into the cache now if it was not.

    Nothing is installed: no service of it starts, and nothing that it depends on comes with it.
    """
    target = build.cache_root() / "packages" / package
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with locks.held(target.parent / "lock"):
            if not target.exists():
                _unpack(package, target)
    return target


def _unpack(package: str, target: Path) -> None:
    unfinished = target.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    with _one_at_a_time():
        shell.run(*_APT, "update", env=_QUIET)
        # Apt's own user can't write there.
        shell.run(*_APT, "-o", "APT::Sandbox::User=root", "download", package, cwd=unfinished, env=_QUIET)
    (archive,) = unfinished.glob("*.deb")
    shell.run("dpkg-deb", "--extract", archive, unfinished)
    archive.unlink()
    unfinished.rename(target)


def _one_at_a_time() -> AbstractContextManager[None]:
    """Labs start side by side, and `update` doesn't wait for the lists of another one: it fails."""
    return locks.held(build.cache_root() / "apt.lock")


def _present(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None
