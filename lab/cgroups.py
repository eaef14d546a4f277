"""A control group of its own for each machine, below one group for the lab.

cgroup v1 (one hierarchy for each controller) is what this was made and run on. v2 takes the path that
the kernel's documentation prescribes; docs/lab.md says how far it has been tried.
"""

import errno
import os
from pathlib import Path

from lab import clock

_ROOT = Path("/sys/fs/cgroup")
_V1 = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd")
_V2 = ("cpuset", "cpu", "io", "memory", "pids")


def is_v2(root: Path = _ROOT) -> bool:
    """Whether the host has the one unified hierarchy."""
    return (root / "cgroup.controllers").exists()


def hierarchies(root: Path = _ROOT) -> list[Path]:
    """Where groups must be made: one folder on v2, one for each controller on v1."""
    return [root] if is_v2(root) else [root / name for name in _V1 if (root / name).is_dir()]


def add(lab: str, machine: str) -> list[Path]:
    """Make the machine's groups; returns the files that move a process into them."""
    if is_v2():
        _enable(_ROOT)
    for hierarchy in hierarchies():
        _make(hierarchy, hierarchy / lab)
        if is_v2():
            _enable(hierarchy / lab)
        _make(hierarchy / lab, hierarchy / lab / machine)
    return [hierarchy / lab / machine / "cgroup.procs" for hierarchy in hierarchies()]


def remove(*path: str) -> None:
    """Remove a group and those inside it, once the last process in them is gone."""
    for hierarchy in hierarchies():
        top = hierarchy.joinpath(*path)
        clock.wait_for(f"the removal of {top}", lambda top=top: _remove_tree(top), seconds=10, every=0.02)  # type: ignore[misc]


def machines(lab: str) -> set[str]:
    """Names of the machines that have a group."""
    groups = (path for hierarchy in hierarchies() for path in (hierarchy / lab).glob("*/"))
    return {path.name for path in groups if path.is_dir()}


def processes(lab: str, root: Path = _ROOT) -> set[int]:
    """Every process in the lab's groups, whoever started it; groups may come and go meanwhile."""
    tops = [hierarchy / lab for hierarchy in hierarchies(root)]
    # os.walk passes over a group that is gone by the time it is looked into; Path.rglob raises.
    groups = [Path(folder) for top in tops for folder, _, _ in os.walk(top)]
    return {pid for group in groups for pid in _members(group)}


def _members(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENODEV}:  # the second: removed between open and read
            return []
        raise


def _make(parent: Path, group: Path) -> None:
    group.mkdir(exist_ok=True)
    # A cpuset without cpus or memory nodes refuses every process.
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not is_v2() and (group / name).exists():
            (group / name).write_text((parent / name).read_text())


def _enable(group: Path) -> None:
    offered = (group / "cgroup.controllers").read_text().split()
    wanted = " ".join(f"+{name}" for name in _V2 if name in offered)
    (group / "cgroup.subtree_control").write_text(wanted)


def _remove_tree(top: Path) -> bool:
    if not top.exists():
        return True
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return False  # a dying process is still in it
    return True
