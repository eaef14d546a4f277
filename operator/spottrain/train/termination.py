"""The last word of a life, which Kubernetes keeps with the container's status (`/dev/termination-log`).

    {"spottrain": 1, "state": "finished|preempted|stale", "step": N, "resumedFrom": N, "savedStep": N,
    "savedTime": T, "saveSeconds": S, "blockedSeconds": S, "fitsGrace": true}

`step`: the last step that was done; `resumedFrom` and `savedStep`: as in COMMIT; null where there is none.
`savedTime`: when the last save of this life was committed (Unix seconds).
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from spottrain.train.log import Log

FORMAT = 1
FINISHED, PREEMPTED, STALE = "finished", "preempted", "stale"


@dataclass(frozen=True)
class LastWord:
    """What the message says. `save_seconds`: how long the last save took until it was committed.

    `blocked_seconds`: for how much of that training was held up; `fits_grace`: whether a save on SIGTERM was
    expected to be done in time, None before one was measured.
    """

    state: str
    step: int | None
    resumed_from: int | None
    saved_step: int | None
    save_seconds: float | None
    blocked_seconds: float | None = None
    fits_grace: bool | None = None
    saved_time: float | None = None

    def encode(self) -> bytes:
        """The message, far below the 4096 bytes that Kubernetes keeps."""
        return json.dumps(
            {
                "spottrain": FORMAT,
                "state": self.state,
                "step": self.step,
                "resumedFrom": self.resumed_from,
                "savedStep": self.saved_step,
                "savedTime": _rounded(self.saved_time),
                "saveSeconds": _rounded(self.save_seconds),
                "blockedSeconds": _rounded(self.blocked_seconds),
                "fitsGrace": self.fits_grace,
            }
        ).encode()


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def leave(path: Path | None, word: LastWord, words: Log) -> None:
    """Leave the last word where there is a place for it. What goes wrong is logged, and ends no run."""
    if path is not None and (problem := write(path, word)):
        words.warning("no-termination-message", f"could not leave a last word: {problem}")


def write(path: Path, word: LastWord) -> str | None:
    """Write the message over what is there; what went wrong, if something did."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(handle, word.encode())
        finally:
            os.close(handle)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None
