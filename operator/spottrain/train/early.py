"""An early checkpoint, which the operator asks for when a node of the gang may be taken soon.

It asks by an annotation of the pod, whose value is the moment of the hint. Whoever leads sees it in the file
of annotations, and the ranks agree on the save as on any other that is due.
"""

import math
from pathlib import Path

from spottrain.train import release
from spottrain.train.clock import Clock
from spottrain.train.log import Log

KEY = "spottrain.dev/save"
LOOK_SECONDS = 1.0


class Wish:
    """What is asked for in `file`; None: nobody asks."""

    def __init__(self, file: Path | None, clock: Clock, log: Log) -> None:
        self._file = file
        self._clock = clock
        self._log = log
        self._heard = ""
        self._heeded = ""
        self._look_at = -math.inf

    def begin(self) -> None:
        """Training begins, with what was restored just now: what was asked for before needs no save."""
        self._look()
        self.heed()

    def due(self, step: int) -> bool:
        """Whether a save is asked for that has not begun."""
        self._look()
        if self._heard == self._heeded:
            return False
        self._log.info("early-save", f"saving at step {step}: a node may be taken soon", step=step)
        return True

    def heed(self) -> None:
        """A save begins."""
        self._heeded = self._heard

    def _look(self) -> None:
        if self._file is None or self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + LOOK_SECONDS
        self._heard = release.annotation(release.read(self._file), KEY) or self._heard
