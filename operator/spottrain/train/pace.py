"""When to save, how often to ask the other ranks, and whether a stop would leave time for a save."""

import math
from collections import deque
from dataclasses import dataclass

from spottrain.policy import interval

# Ranks confer at most this often. A round takes about half a millisecond (docs/library.md), so it costs
# about a hundredth of training time at most, however short the steps are.
CONFER_SECONDS = 0.05
_RECENT = 100
_RETRY_SECONDS = 60.0
# Until a save was measured: what a small model's takes. The first save then corrects it.
_GUESSED_COST = 1.0
GRACE_MARGIN_SECONDS = 1.0
"""Of the grace: kept for the end of the process itself."""


@dataclass(frozen=True)
class History:
    """What is known of a job before this life, all of it from its lineage.

    `exposure`: seconds since its first claim; `interruptions`: how many lives it has had before this one;
    `announced`: how many of those ended with a save of their last step. `blocked` and `whole`: seconds that
    the save which it goes on from held training up, and took in all; None where that is not known.
    """

    exposure: float = 0.0
    interruptions: int = 0
    announced: int = 0
    blocked: float | None = None
    whole: float | None = None


@dataclass(frozen=True)
class Outlook:
    """What a stop would take, as measured: `seconds` until its save is committed, of `grace` seconds."""

    seconds: float
    grace: float

    @property
    def fits(self) -> bool:
        """The save will be there before the process is killed."""
        return self.seconds <= self.grace - GRACE_MARGIN_SECONDS


class Pacer:
    """Keeps the times of steps and saves. All times are seconds; `now` is monotonic."""

    def __init__(
        self, *, fixed: float | None, nodes: int, grace: float = math.inf, history: History | None = None
    ) -> None:
        """`fixed`: seconds between saves, None for automatic; `grace`: from SIGTERM to SIGKILL."""
        self._fixed = fixed
        self._nodes = nodes
        self._grace = grace
        self._history = history or History()
        self._began: float | None = None
        self._last_step: float | None = None
        self._steps: deque[float] = deque(maxlen=_RECENT)
        self._due: float | None = None
        self._cost = self._history.blocked
        self._whole = self._history.whole

    def begin(self, now: float) -> None:
        """Training begins, or goes on."""
        self._began = self._last_step = now
        self._due = now + self.interval(now)

    def step_done(self, now: float) -> None:
        """A step has ended."""
        if self._last_step is not None:
            self._steps.append(now - self._last_step)
        self._last_step = now

    def due(self, now: float) -> bool:
        """Whether a save is due."""
        return self._due is not None and now >= self._due

    def save_begun(self, now: float) -> None:
        """A save has begun; the next is due an interval later."""
        self._due = now + self.interval(now)

    def save_done(self, *, cost: float, whole: float) -> None:
        """A save held training up for `cost` and was committed after `whole`."""
        self._cost, self._whole = cost, whole

    def save_failed(self, now: float) -> None:
        """A save came to nothing: don't wait a whole interval for the next."""
        self._due = now + min(self.interval(now), _RETRY_SECONDS)

    def interval(self, now: float) -> float:
        """Seconds between saves; when automatic, never so short that one upload follows the other."""
        if self._fixed is not None:
            return self._fixed
        history, since = self._history, now - self._began if self._began is not None else 0.0
        mean = interval.mean_time(
            nodes=self._nodes, exposure=history.exposure + since, interruptions=history.interruptions
        )
        cost = _GUESSED_COST if self._cost is None else self._cost
        best = interval.optimal(cost=cost, mean_time=mean, notice_share=self.notice_share())
        return max(best, 2 * (self._whole or 0.0))

    def notice_share(self) -> float:
        """Share of interruptions that can be saved for: learnt, and none while a save can't fit the grace."""
        outlook = self.outlook()
        if outlook is not None and not outlook.fits:
            return 0.0
        history = self._history
        return interval.notice_share(announced=history.announced, interruptions=history.interruptions)

    def outlook(self) -> Outlook | None:
        """What a stop would take now; None before a save was measured, in this life or the one before.

        The step under way is counted at its usual length: an evaluation may take far longer, and whoever is
        told to stop in one loses what came since the last save.
        """
        if self._whole is None:
            return None
        return Outlook(self.usual_step() + self._whole, self._grace)

    def upload(self) -> float | None:
        """Seconds from a state on the local disk to its commit, as last measured; None before that."""
        return None if self._whole is None else max(self._whole - (self._cost or 0.0), 0.0)

    def usual_step(self) -> float:
        """The median of the last 100 steps; 0 before the first."""
        return sorted(self._steps)[len(self._steps) // 2] if self._steps else 0.0

    def longest_step(self) -> float:
        """The longest of the last 100 steps, evaluations between them included; 0 before the first."""
        return max(self._steps, default=0.0)

    def rate(self) -> float | None:
        """Steps per second, of the last 100, with everything between them; None before the first."""
        spent = sum(self._steps)
        return len(self._steps) / spent if spent > 0 else None

    def gap(self) -> int:
        """After how many steps the ranks should confer again."""
        if not self._steps:
            return 1
        return max(1, math.ceil(CONFER_SECONDS / max(self.usual_step(), 1e-5)))
