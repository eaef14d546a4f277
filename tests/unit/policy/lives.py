"""What training gets done between reclaims that come at random: the model that the interval is judged by."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Lives:
    """Lives of exponential length, mean `mean`; a save costs `cost`, a restart `restart` (one unit for all).

    In a life work and saves follow each other. A reclaim that is announced in time (share `share` of them) is
    saved for, which costs one save more and loses nothing; the others lose all since the last save.
    """

    cost: float
    mean: float
    restart: float
    share: float

    def goodput(self, work: float) -> float:
        """Share of all time that is useful, with a save after each `work`."""
        within_work, within_period = math.exp(-work / self.mean), math.exp(-(work + self.cost) / self.mean)
        periods = within_period / (1 - within_period)
        # What is done of the period in which a life ends, its mean.
        broken_off = self.mean * (1 - within_work) - work * within_work + work * (within_work - within_period)
        saved = periods * work
        useful = saved + self.share * broken_off / (1 - within_period)
        return useful / (self.mean + self.restart + self.share * self.cost)

    def dalys_interval(self) -> float:
        """Daly's higher order estimate, FGCS 22(3), 2006."""
        part = self.cost / (2 * self.mean)
        return math.sqrt(2 * self.cost * self.mean) * (1 + math.sqrt(part) / 3 + part / 9) - self.cost

    def best_interval(self) -> float:
        """The interval with the most goodput, by golden section."""
        low, high, ratio = self.cost / 10, 100 * math.sqrt(2 * self.cost * self.mean), (math.sqrt(5) - 1) / 2
        while high - low > 1e-6 * high:
            first, second = high - ratio * (high - low), low + ratio * (high - low)
            if self.goodput(first) < self.goodput(second):
                low = first
            else:
                high = second
        return (low + high) / 2
