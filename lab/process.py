"""Processes that go on when this one ends, found again by a file with their number and start time."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab import clock, shell
from lab.errors import LabError


def start_time(pid: int) -> str | None:
    """Clock ticks after boot at which the process began; None when it is gone or a zombie.

    A number can be given to another process later; number and start time together cannot.
    A zombie counts as gone: it holds nothing, but some hosts' PID 1 takes seconds to reap it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def peak_bytes(pid: int) -> int:
    """The most memory that the process has had resident so far (VmHWM); ProcessLookupError if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def spawn(
    argv: Sequence[shell.Word],
    *,
    log: Path,
    pid_file: Path,
    env: Mapping[str, str] | None = None,
) -> int:
    """Start a program in a session of its own, its output appended to `log`; returns its number."""
    line = shell.words(argv)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        pid = os.posix_spawnp(line[0], line, shell.environment(env), file_actions=actions, setsid=True)
    except FileNotFoundError as error:
        raise LabError(f"{line[0]} is not installed") from error
    pid_file.write_text(f"{pid} {start_time(pid)}\n")
    return pid


def find(pid_file: Path) -> int | None:
    """The number of the process that was started under this file, while it lives."""
    try:
        pid, began = pid_file.read_text().split()
    except (FileNotFoundError, ValueError):
        return None  # never started, or the lab was killed while it wrote the file
    if start_time(int(pid)) == began:
        return int(pid)
    _reap(int(pid))
    return None


def stop(pid_file: Path, *, grace: float) -> None:
    """End the process: ask, and after `grace` seconds force. Gone when this returns."""
    pid = find(pid_file)
    if pid is not None:
        if grace > 0:
            _send(pid, signal.SIGTERM)
        if not clock.poll(lambda: find(pid_file) is None, seconds=grace, every=0.02):
            _send(pid, signal.SIGKILL)
        clock.wait_for(f"the end of {pid_file.name}", lambda: find(pid_file) is None, seconds=10, every=0.02)
    pid_file.unlink(missing_ok=True)


def prefer(pid: int, nice: int) -> None:
    """Give the process more of the CPU than others get (-20 the most), among sessions and among processes.

    Where the kernel groups sessions (autogroup), a process's own nice value counts within its session alone.
    """
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    group = Path(f"/proc/{pid}/autogroup")
    if group.exists():
        group.write_text(str(nice))


def freeze(pid_file: Path) -> None:
    """Let the process do nothing until `wake`; what it has open stays open."""
    if (pid := find(pid_file)) is not None:
        _send(pid, signal.SIGSTOP)


def wake(pid_file: Path) -> bool:
    """End what `freeze` did; False when there was nothing to end."""
    if not frozen(pid_file):
        return False
    _send(int(pid_file.read_text().split()[0]), signal.SIGCONT)
    return True


def frozen(pid_file: Path) -> bool:
    """Whether the process lives and is frozen."""
    pid = find(pid_file)
    return pid is not None and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def children(pid: int) -> list[int]:
    """Numbers of the process's children."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kill(pid: int) -> None:
    """End it at once, without asking."""
    _send(pid, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended meanwhile, which is what was wanted


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # started by an earlier command: its parent reaps it
