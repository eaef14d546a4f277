"""What becomes of an upload under way when a stop is asked for: finished or abandoned, as the grace allows.

The state after the last step is on the local disk by then, and is the newest complete one. Both are wanted;
if there is no time for both, the newest; if there is none for that, the one under way, which is nearer to its
end.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from spottrain.train import peers, saver
from spottrain.train.log import Log

_STUCK_FACTOR, _STUCK_SECONDS = 2.0, 5.0


class Choice(enum.StrEnum):
    """What to upload."""

    BOTH = "both"
    """First what is under way, then the newest."""
    NEWEST = "newest"
    """What is under way is abandoned for it."""
    UNDER_WAY = "under way"


def choose(*, left: float, elapsed: float, upload: float | None) -> Choice:
    """The choice, with `left` seconds of grace.

    `elapsed`: seconds for which the one under way has been uploading; `upload`: seconds that an upload takes,
    as last measured. Without that there is nothing to go by, and the one nearest to its end goes first.
    """
    if upload is None:
        return Choice.BOTH
    rest = remaining(elapsed=elapsed, upload=upload)
    if rest + upload <= left:
        return Choice.BOTH
    return Choice.NEWEST if upload <= left or upload < rest else Choice.UNDER_WAY


def remaining(*, elapsed: float, upload: float) -> float:
    """Seconds that an upload still takes; infinite when it is so late that it must be stuck."""
    if elapsed > _STUCK_FACTOR * upload + _STUCK_SECONDS:
        return float("inf")
    return max(upload - elapsed, 0.0)


@dataclass(frozen=True)
class Room:
    """Makes room for the last save; rank 0 decides, and every rank does the same.

    `upload`: as in `choose`; `left`: seconds of grace, at the moment when it is asked.
    """

    line: peers.Peers
    background: saver.Saver
    upload: Callable[[], float | None]
    left: Callable[[], float]
    words: Log

    def make(self, step: int, settle: Callable[[], saver.Verdict | None]) -> bool:
        """Finish or abandon what is under way; whether the state after `step` is to be uploaded after it.

        `settle` waits for the save under way and gives its verdict, None if there was none.
        """
        choice = peers.lead(self.line, self._choose)
        if choice == Choice.NEWEST:
            self.background.abandon()
        before = settle()
        if choice != Choice.UNDER_WAY or before is None or not before.committed:
            return True
        upload, left = peers.lead(self.line, lambda: [self.upload() or 0.0, self.left()])
        if upload > left and self.line.rank == 0:
            sentence = f"step {step} is not saved: its upload takes {upload:.1f} s, and {left:.1f} s are left"
            self.words.warning("not-saved", sentence, step=step, seconds=upload, left=left)
        return bool(upload <= left)

    def _choose(self) -> str:
        if self.background.idle:
            return Choice.BOTH
        return choose(left=self.left(), elapsed=self.background.under_way, upload=self.upload())
