"""What happened, as values: attempts, their members, the faults that ended them. Pure.

Step numbers are those of the training loop, from 0. An attempt *resumes at* the first step it does; a
checkpoint *of* step 40 means that the next attempt resumes at 41. Times are Unix seconds. None: nobody said.
"""

import math
from dataclasses import dataclass, field

from demo import lines
from demo.lines import Line

SAVED, RESUMED = "saved", frozenset({"restored", "fresh"})
"""Events of the library: docs/library.md."""

NOTICE, EVICT, KILL, UNPLUG = "notice", "evict", "kill", "unplug"
WITH_NOTICE = frozenset({NOTICE, EVICT})


@dataclass(frozen=True)
class Mark:
    """A step and when it was done, or saved."""

    step: int
    time: float


@dataclass(frozen=True)
class Member:
    """One worker in one attempt: where it ran and what it said."""

    index: int
    attempt: int
    pod: str
    node: str = ""
    capacity: str = ""
    made: float | None = None
    """When its pod was first seen."""
    bound: float | None = None
    """When it was seen to have a node."""
    running: float | None = None
    """When it was seen running."""
    said: tuple[Line, ...] = ()

    @property
    def steps(self) -> tuple[Mark, ...]:
        """The steps it reported, in order."""
        return self._marks(lines.STEP)

    @property
    def saves(self) -> tuple[Mark, ...]:
        """The committed saves it reported."""
        return self._marks(SAVED)

    @property
    def last_step(self) -> int | None:
        """The last step it is known to have done."""
        return self.steps[-1].step if self.steps else None

    @property
    def resumed_at(self) -> int | None:
        """The first step it did: by the library's word, else by its own first line."""
        told = [line.integer("next_step") for line in self.said if line.event in RESUMED]
        if told and told[-1] is not None:
            return told[-1]
        return self.steps[0].step if self.steps else None

    @property
    def final_loss(self) -> str | None:
        """The loss it reported last of all, as it wrote it."""
        found = [line.fields["final_loss"] for line in self.said if "final_loss" in line.fields]
        return found[-1] if found else None

    def _marks(self, event: str) -> tuple[Mark, ...]:
        found = ((line.integer("step"), line.time) for line in self.said if line.event == event)
        return tuple(Mark(step, time) for step, time in found if step is not None)


@dataclass(frozen=True)
class Attempt:
    """One life of the gang. `cause`, `reason`, `detail` are the operator's: why it was started."""

    number: int
    members: tuple[Member, ...]
    cause: str = ""
    reason: str = ""
    detail: str = ""
    recorded: float | None = None
    """When the operator was seen to have recorded it: before that there are no pods of it."""

    @property
    def last_step(self) -> int | None:
        """The last step that any member reported. They move in lockstep, so all have at least begun it."""
        return max((m.last_step for m in self.members if m.last_step is not None), default=None)

    @property
    def resumed_at(self) -> int | None:
        """The first step it did; None when nobody said."""
        return min((m.resumed_at for m in self.members if m.resumed_at is not None), default=None)

    @property
    def agrees(self) -> bool:
        """Whether all members that said where they resumed said the same."""
        return len({m.resumed_at for m in self.members if m.resumed_at is not None}) <= 1

    @property
    def saves(self) -> tuple[Mark, ...]:
        """Committed saves, by time, each once."""
        first: dict[int, float] = {}
        for mark in sorted((m for member in self.members for m in member.saves), key=lambda mark: mark.time):
            first.setdefault(mark.step, mark.time)
        return tuple(Mark(step, time) for step, time in first.items())

    @property
    def first_step(self) -> Mark | None:
        """The first step that was done in it."""
        return min((m.steps[0] for m in self.members if m.steps), key=lambda mark: mark.time, default=None)

    def running(self, workers: int) -> float | None:
        """When all of `workers` members ran; None when they never did."""
        times = [member.running for member in self.members if member.running is not None]
        return max(times) if len(times) == workers else None

    def passed_save(self, workers: int, *, beyond: int = 0) -> Mark | None:
        """The newest save, once every one of `workers` members is past it, by more than `beyond` steps."""
        lasts = [member.last_step for member in self.members if member.last_step is not None]
        if len(lasts) < workers or not self.saves:
            return None
        return self.saves[-1] if min(lasts) > self.saves[-1].step + beyond else None

    def rate(self) -> float | None:
        """Steps per second between its first and its last step."""
        marks = sorted((m for member in self.members for m in member.steps), key=lambda mark: mark.time)
        if len(marks) < 2 or marks[-1].time <= marks[0].time:
            return None
        return (marks[-1].step - marks[0].step) / (marks[-1].time - marks[0].time)

    def steps_in(self, seconds: float) -> int | None:
        """Steps that it did in so many seconds at its own speed, rounded up."""
        rate = self.rate()
        # Unix seconds as floats are good to a microsecond: their noise must not make one step more of it.
        return None if rate is None else math.ceil(round(rate * seconds, 3))


@dataclass(frozen=True)
class Fault:
    """What the demo did to a node, and how things stood in that moment."""

    kind: str
    """notice, evict, kill or unplug."""
    attempt: int
    node: str
    rank: int
    step: int
    """The last step of the gang that was known."""
    time: float


@dataclass(frozen=True)
class Run:
    """One job, from its creation to its end. `phase`, `reclaims`, `failures` are the operator's last word."""

    name: str
    workers: int
    interval: float
    """Seconds between saves."""
    attempts: tuple[Attempt, ...] = ()
    faults: tuple[Fault, ...] = ()
    phase: str = ""
    reclaims: int = 0
    failures: int = 0
    message: str = ""
    nodes: tuple[str, ...] = field(default=())

    @property
    def completed(self) -> bool:
        """Whether the operator says so."""
        return self.phase == "Complete"

    @property
    def final_loss(self) -> str | None:
        """As the last attempt's members wrote it; None when none did, or when they differ."""
        last = self.attempts[-1].members if self.attempts else ()
        found = {member.final_loss for member in last if member.final_loss is not None}
        return found.pop() if len(found) == 1 else None

    def losses(self) -> tuple["Loss", ...]:
        """What each fault cost, in order."""
        return tuple(self._loss(fault) for fault in self.faults)

    def unplanned(self) -> tuple[Attempt, ...]:
        """Attempts that no fault of the demo explains."""
        struck = {fault.attempt for fault in self.faults}
        return tuple(one for one in self.attempts[1:] if one.number - 1 not in struck)

    def _loss(self, fault: Fault) -> "Loss":
        before = [one for one in self.attempts if one.number == fault.attempt]
        after = [one for one in self.attempts if one.number > fault.attempt]
        ran = [time for one in after if (time := one.running(self.workers)) is not None]
        stepped = [mark.time for one in after if (mark := one.first_step) is not None]
        resumed = next((one.resumed_at for one in after if one.resumed_at is not None), None)
        last = before[0].last_step if before else None
        return Loss(
            fault=fault,
            last_step=last,
            resumed_at=resumed,
            lost_steps=None if last is None or resumed is None else max(0, last + 1 - resumed),
            interval_steps=before[0].steps_in(self.interval) if before else None,
            seconds_to_running=ran[0] - fault.time if ran else None,
            seconds_to_first_step=stepped[0] - fault.time if stepped else None,
        )


@dataclass(frozen=True)
class Loss:
    """What a fault cost: steps done again, and time.

    `interval_steps`: what the struck attempt did in one checkpoint interval.
    """

    fault: Fault
    last_step: int | None
    resumed_at: int | None
    lost_steps: int | None
    interval_steps: int | None
    seconds_to_running: float | None
    seconds_to_first_step: float | None
