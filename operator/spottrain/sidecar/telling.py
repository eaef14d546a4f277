"""What the sidecar tells in the program's place: `/progress` while it lives, and its last word.

As the library's (`train/telling.py`, `train/termination.py`), but that the step is that of the newest
checkpoint which is stored, and `problem` says why nothing newer is, null if that is as it should be.
"""

from typing import Any

from spottrain.train import pace, progress, saver, settings, termination
from spottrain.train.log import Log

STORED, UNSAVED = "stored", "unsaved"
"""The last word's state: all that was complete is stored, or the newest of it is not."""


class Telling:
    """Read by the thread that serves it, written by the one that watches."""

    def __init__(self, told: settings.Settings, log: Log, resumed_from: int | None) -> None:
        self._told = told
        self._log = log
        self._resumed_from = resumed_from
        self._saved: saver.Verdict | None = None
        self._progress = progress.Progress(told.attempt_id, log, self._report)
        self._progress.step = resumed_from
        self.problem: str | None = None

    def serve(self) -> None:
        """Answer from now on, where the operator asks for it."""
        if self._told.progress_port is not None:
            self._progress.serve(self._told.progress_port)

    def saved(self, verdict: saver.Verdict) -> None:
        """This save was committed."""
        self._saved, self._progress.step, self.problem = verdict, verdict.step, None

    def say(self, state: str) -> None:
        """Leave the last word; there may be no time for a later one."""
        saved, outlook = self._saved, self._outlook()
        word = termination.LastWord(
            state=state,
            step=self._progress.step,
            resumed_from=self._resumed_from,
            saved_step=self._progress.step,
            saved_time=saved.time if saved else None,
            save_seconds=saved.seconds if saved else None,
            fits_grace=None if outlook is None else outlook.fits,
        )
        termination.leave(self._told.termination_log, word, self._log)

    def _outlook(self) -> pace.Outlook | None:
        return None if self._saved is None else pace.Outlook(self._saved.seconds, self._told.grace)

    def _report(self) -> dict[str, Any]:
        saved, outlook = self._saved, self._outlook()
        return {
            "resumedFrom": self._resumed_from,
            "checkpoint": saved
            and {"step": saved.step, "time": round(saved.time, 3), "seconds": round(saved.seconds, 3)},
            "stop": outlook
            and {
                "seconds": round(outlook.seconds, 3),
                "graceSeconds": outlook.grace,
                "fits": outlook.fits,
            },
            "problem": self.problem,
        }
