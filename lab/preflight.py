"""What a machine must have before the lab touches it. Each refusal is one sentence that says what to do."""

import platform
import shutil
from pathlib import Path

from lab import build, network, state
from lab.config import Addresses
from lab.errors import LabError

_GIB = 1 << 30
SPACE_TO_BUILD = 15 * _GIB
SPACE_TO_RUN = 4 * _GIB


def check_privileges() -> None:
    """Only root on Linux can make namespaces and mounts."""
    if platform.system() != "Linux":
        raise LabError(f"the lab runs on Linux, not {platform.system()}: use a Linux machine or VM")
    if not state.is_root():
        raise LabError("the lab makes namespaces and mounts: run it as root (sudo -E python3 -m lab ...)")


def check_space() -> None:
    """Room for what is to be built (sources and compiled packages included), or just for running."""
    root = build.cache_root()
    root.mkdir(parents=True, exist_ok=True)
    wanted = SPACE_TO_BUILD if build.missing(build.go_version()) else SPACE_TO_RUN
    require_space(root, shutil.disk_usage(root).free, wanted)


def require_space(root: Path, free: int, wanted: int) -> None:
    """Raises LabError when `free` bytes are fewer than `wanted`."""
    if free < wanted:
        raise LabError(
            f"{root} has {free / _GIB:.1f} GiB free and the lab needs {wanted / _GIB:.0f}: "
            "make room, or set SPOTTRAIN_CACHE to a folder on a larger disk"
        )


def check_network(addresses: Addresses) -> None:
    """The lab's networks must not be in use for anything else."""
    if taken := network.overlapping(addresses):
        raise LabError(
            f"this machine already routes {', '.join(taken)}, which the lab needs: use another --name, "
            "whose networks differ"
        )
