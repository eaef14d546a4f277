"""Programs inside a machine's namespaces: they have its network and end when it does."""

import os
from dataclasses import dataclass
from pathlib import Path

from lab import clock, config, node, process, shell
from lab.errors import LabError
from lab.node_files import Machine

_NAMESPACES = ("--net", "--pid", "--mount", "--uts", "--ipc")


@dataclass(frozen=True)
class Guest:
    """A program that runs inside a machine until it ends, the machine does, or `stop` is called."""

    pid_file: Path

    def running(self) -> bool:
        """Whether it lives."""
        return process.find(self.pid_file) is not None

    def stop(self) -> None:
        """End it at once; no error when it has ended already."""
        if (outer := process.find(self.pid_file)) is not None:
            # nsenter waits for the program and passes no signal on.
            for pid in process.children(outer):
                process.kill(pid)
            clock.poll(lambda: not self.running(), seconds=5, every=0.02)
        process.stop(self.pid_file, grace=0)


def run(machine: Machine, *words: shell.Word, timeout: float | None = None) -> str:
    """Run a program to its end; returns what it printed, raises LabError as `shell.run` does."""
    return shell.run(*_enter(machine), *words, timeout=timeout)


def spawn(machine: Machine, *words: shell.Word, log: Path, pid_file: Path | None = None) -> Guest:
    """Start a program; its output goes to `log`."""
    guest = Guest(pid_file or machine.state.pids / f"guest-{machine.spec.name}-{os.urandom(4).hex()}")
    process.spawn([*_enter(machine), *words], log=log, pid_file=guest.pid_file)
    return guest


def _enter(machine: Machine) -> list[shell.Word]:
    if (pid := node.init_pid(machine)) is None:
        name, command = machine.spec.name, config.command(machine.state.name)
        raise LabError(f"node {name} does not run: `{command} node start {name}` starts it")
    return ["nsenter", "--target", pid, *_NAMESPACES, "--"]
