"""A cloud's notice that it takes a machine, and its doing so."""

import math
import threading

from lab import clock, metadata, node
from lab.node_files import Machine

LEAD = 1.0
"""Seconds that whoever listens has to find a metadata service that began anew, before that tells anything."""


class Notice:
    """Told from `since` on; the machine dies at `deadline`, a whole second, as clouds tell. Unix seconds."""

    def __init__(self, machine: Machine, cloud: str, window: float) -> None:
        """The notice is on its way; `window` in seconds."""
        planned = math.ceil(clock.wall() + LEAD)
        self.deadline = planned + round(window)
        self._machine = machine
        self._cloud = cloud
        self._life = node.init_pid(machine)
        self._withdrawn = threading.Event()
        metadata.say(machine, cloud, planned, self.deadline)
        self.since = max(planned, clock.wall())  # on a machine that is very busy the service is late
        self._thread = threading.Thread(target=self._take, daemon=True, name=f"notice-{machine.spec.name}")
        self._thread.start()

    def withdraw(self) -> None:
        """The cloud takes its word back, unless the machine is dead already."""
        self._withdrawn.set()
        self._thread.join()
        if self._lives():
            metadata.say(self._machine, self._cloud)

    def wait(self) -> None:
        """Until the machine is dead, or the notice withdrawn."""
        self._thread.join()

    def _take(self) -> None:
        if not self._withdrawn.wait(self.deadline - clock.wall()) and self._lives():
            with self._machine.state.locked():
                node.kill(self._machine)

    def _lives(self) -> bool:
        """A machine of the same name that was started since is another one."""
        return self._life is not None and node.init_pid(self._machine) == self._life
