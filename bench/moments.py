"""From what was seen of a gang to how long it took to train again after a death, in parts. Pure.

::

    died ──noticing──► noticed ──placing──► bound ──starting──► loaded ──restoring──► stepped
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from demo.facts import Attempt, Fault, Member, Run

LOADED = "loaded"
"""The event of bench/loaded.py's line."""


@dataclass(frozen=True)
class Moments:
    """Seconds since the death of a node, each of the last worker of the attempt that trained again."""

    noticed: float
    """The operator had recorded that a next attempt is needed."""
    made: float
    """Its pods existed."""
    bound: float
    """They had nodes."""
    running: float
    """Their containers ran."""
    loaded: float
    """Their programs had loaded their libraries."""
    stepped: float
    """A step was done."""

    @property
    def parts(self) -> dict[str, float]:
        """The four parts; their sum is `stepped`."""
        return {
            "noticing": self.noticed,
            "placing": self.bound - self.noticed,
            "starting": self.loaded - self.bound,
            "restoring": self.stepped - self.loaded,
        }

    def rounded(self) -> dict[str, float]:
        """For a file."""
        return {one.name: round(getattr(self, one.name), 2) for one in fields(self)}


def after(run: Run, fault: Fault) -> Moments | None:
    """What followed the death; None as long as something of it has not been seen.

    An attempt that was begun after the death and never trained belongs to the placing of the one that did.
    """
    later = [one for one in run.attempts if one.number > fault.attempt]
    trained = next((one for one in later if _whole(one, run.workers)), None)
    if trained is None:
        return None
    members = trained.members
    found = [
        later[0].recorded,
        _last(one.made for one in members),
        _last(one.bound for one in members),
        _last(one.running for one in members),
        _last(_loaded(one) for one in members),
        min(one.steps[0].time for one in members),
    ]
    seen = [moment - fault.time for moment in found if moment is not None]
    return Moments(*seen) if len(seen) == len(found) else None


def typical(rounds: Sequence[Moments]) -> Moments:
    """The round in the middle (the quicker of two), whole: medians of the parts would not add up."""
    return sorted(rounds, key=lambda one: one.stepped)[(len(rounds) - 1) // 2]


def _whole(attempt: Attempt, workers: int) -> bool:
    """Every worker has reported a step."""
    return len(attempt.members) == workers and all(one.steps for one in attempt.members)


def _loaded(member: Member) -> float | None:
    return next((line.time for line in member.said if line.event == LOADED), None)


def _last(moments: Iterable[float | None]) -> float | None:
    """The latest; None when one is unknown."""
    found = list(moments)
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None
