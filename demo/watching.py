"""Threads that follow the cluster, objects or a worker's log, and keep on disk what they read."""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo import lines
from demo.kubectl import Programs

_REOPEN_SECONDS = 0.3


class _Follower(threading.Thread):
    """Runs kubectl again and again until told to stop, and hands its lines on."""

    def __init__(self, programs: Programs, kept: Path) -> None:
        super().__init__(daemon=True)
        self._programs = programs
        self._kept = kept
        self._over = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        with self._kept.open("a") as kept, self._kept.with_suffix(".errors").open("a") as errors:
            while not self._over.is_set():
                with self._programs.stream(*self.words(), errors=errors) as process:
                    self._process = process
                    for line in process.stdout or ():
                        if self.take(line):
                            kept.write(line)
                            kept.flush()
                if self.at_end():
                    return
                self._over.wait(_REOPEN_SECONDS)

    def stop(self) -> None:
        """End it; what was read stays."""
        self._over.set()
        if self._process is not None:
            self._process.terminate()

    def at_end(self) -> bool:
        """Whether there is nothing more to come, once kubectl has ended."""
        return False

    def words(self) -> tuple[str, ...]:
        """The arguments of kubectl."""
        raise NotImplementedError

    def take(self, line: str) -> bool:
        """Use a line; whether it is new."""
        raise NotImplementedError


class ObjectWatch(_Follower):
    """Hands every version of the objects below an API path to `use`, with ADDED, MODIFIED or DELETED."""

    def __init__(
        self, programs: Programs, kept: Path, path: str, use: Callable[[str, dict[str, Any]], None]
    ) -> None:
        super().__init__(programs, kept)
        self._path = path
        self._use = use

    def words(self) -> tuple[str, ...]:
        """The arguments of kubectl."""
        return ("get", "--raw", self._path)

    def take(self, line: str) -> bool:
        """Use a line; whether it is new."""
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            return False  # the connection ended inside a line: the next one begins with all objects
        if event["type"] in {"ADDED", "MODIFIED", "DELETED"}:
            self._use(event["type"], event["object"])
        return True


class LogFollow(_Follower):
    """The log of a pod whose container has started, from its first line; `use` gets each line once."""

    def __init__(
        self, programs: Programs, kept: Path, pod: tuple[str, str], use: Callable[[str], None]
    ) -> None:
        super().__init__(programs, kept)
        self._namespace, self._pod = pod
        self._use = use
        self._newest = ""
        self._pod_ended = threading.Event()

    def pod_ended(self) -> None:
        """The container has ended, or its pod is gone: what can still be read is the last of it."""
        self._pod_ended.set()

    def at_end(self) -> bool:
        """The log has no more lines once the container has ended."""
        return self._pod_ended.is_set()

    def words(self) -> tuple[str, ...]:
        """The arguments of kubectl."""
        return ("--namespace", self._namespace, "logs", "--follow", "--timestamps", self._pod)

    def take(self, line: str) -> bool:
        """Use a line; whether it is new."""
        stamp = lines.stamp_of(line)
        if stamp <= self._newest:
            return False  # the log was opened anew
        self._newest = stamp
        self._use(line)
        return True
