"""What runs in pods, as the host sees it: by control groups, whatever the API server says of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import cgroups

_POD = re.compile(r"/pod([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True)
class PodProcess:
    """A process by its number on the host, the UID of its pod, and its command line."""

    pid: int
    pod: str
    command: str


def find(lab_group: str) -> list[PodProcess]:
    """All processes of pods below the lab's control group, sandboxes' too."""
    return list(_found(sorted(cgroups.processes(lab_group))))


def pod_of(groups: str) -> str | None:
    """The pod's UID in the content of a /proc/PID/cgroup; None for what runs in no pod."""
    found = _POD.search(groups)
    return found[1] if found else None


def _found(pids: list[int]) -> Iterator[PodProcess]:
    for pid in pids:
        folder = Path(f"/proc/{pid}")
        try:
            pod = pod_of((folder / "cgroup").read_text())
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if pod and command:  # a zombie has no command line, and holds nothing
            yield PodProcess(pid, pod, command)
