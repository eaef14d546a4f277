"""When to save, and how often to ask the other ranks."""

import math
from collections import deque

from spottrain.policy import interval

# Ranks confer at most this often. A round takes about half a millisecond (docs/library.md), so it costs
# about a hundredth of training time at most, however short the steps are.
CONFER_SECONDS = 0.05
_RECENT = 100
_RETRY_SECONDS = 60.0
# Until a save was measured: what a small model's takes. The first save then corrects it.
_GUESSED_COST = 1.0


class Pacer:
    """Keeps the times of steps and saves. All times are seconds; `now` is monotonic."""

    def __init__(self, *, fixed: float | None, nodes: int, exposure: float, interruptions: int) -> None:
        """`fixed`: seconds between saves, None for automatic; the rest as in `policy.interval.mean_time`."""
        self._fixed = fixed
        self._nodes = nodes
        self._exposure = exposure
        self._interruptions = interruptions
        self._began: float | None = None
        self._last_step: float | None = None
        self._steps: deque[float] = deque(maxlen=_RECENT)
        self._due: float | None = None
        self._cost = _GUESSED_COST
        self._whole = 0.0

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
        since = now - self._began if self._began is not None else 0.0
        mean = interval.mean_time(
            nodes=self._nodes, exposure=self._exposure + since, interruptions=self._interruptions
        )
        best = interval.optimal(cost=self._cost, mean_time=mean, notice_share=interval.PRIOR_NOTICE_SHARE)
        return max(best, 2 * self._whole)

    def longest_step(self) -> float:
        """The longest of the last 100 steps, evaluations between them included; 0 before the first."""
        return max(self._steps, default=0.0)

    def gap(self) -> int:
        """After how many steps the ranks should confer again."""
        if not self._steps:
            return 1
        usual = sorted(self._steps)[len(self._steps) // 2]
        return max(1, math.ceil(CONFER_SECONDS / max(usual, 1e-5)))
