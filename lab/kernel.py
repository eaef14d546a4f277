"""Settings of the host's kernel that labs need; the last lab to go puts them back as they were."""

import json
from pathlib import Path

from lab import locks

# Each kubelet, containerd and kubectl takes some of these; with Linux' 128 instances a second lab's
# kubelets fail with "inotify_init: too many open files".
WANTED = {
    "net/ipv4/ip_forward": 1,
    "fs/inotify/max_user_instances": 4096,
    "fs/inotify/max_user_watches": 524288,
}
_PROC = Path("/proc/sys")


def raise_limits(remember: Path, proc: Path = _PROC) -> None:
    """Raise what is lower than wanted. How it was before the first lab is kept in the file `remember`."""
    with locks.held(remember.with_suffix(".lock")):
        found = {name: int((proc / name).read_text()) for name in WANTED}
        if not remember.exists():
            remember.write_text(json.dumps(found))
        for name, wanted in WANTED.items():
            if found[name] < wanted:
                (proc / name).write_text(f"{wanted}\n")


def restore_limits(remember: Path, proc: Path = _PROC) -> None:
    """Put back what `raise_limits` changed, if it did."""
    with locks.held(remember.with_suffix(".lock")):
        if remember.exists():
            for name, value in json.loads(remember.read_text()).items():
                (proc / name).write_text(f"{value}\n")
            remember.unlink()
