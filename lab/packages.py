"""The programs of the operating system that the lab uses, and how they get here on Debian and Ubuntu."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from lab import clock, shell
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


def missing(needed: Mapping[str, str] = NEEDED) -> list[str]:
    """Packages that something needed is not there of."""
    return sorted(package for program, package in needed.items() if not _present(program))


def install(needed: Mapping[str, str] = NEEDED) -> None:
    """Install what is missing, and nothing that is only recommended.

    Raises LabError where there is no apt-get, naming the programs to install by hand.
    """
    packages = missing(needed)
    if not packages:
        return
    if shutil.which("apt-get") is None:
        programs = sorted(program for program in needed if not _present(program))
        raise LabError(f"install these programs by this system's own means: {', '.join(programs)}")
    print(f"install {' '.join(packages)} ...", end=" ", flush=True)
    started = clock.now()
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    shell.run(*_APT, "update", env=quiet)
    shell.run(*_APT, "install", "--yes", "--no-install-recommends", *packages, env=quiet)
    print(f"{clock.now() - started:.0f} s")


def _present(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None
