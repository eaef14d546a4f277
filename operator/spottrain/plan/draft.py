"""A plan in the making: policies read the snapshot and add to it, in order."""

import dataclasses
import datetime as dt
import functools
from typing import Any

from spottrain.api import conditions, status
from spottrain.plan import actions, loss
from spottrain.plan import snapshot as snap


class Draft:
    """Collects the status, acts, events and the earliest wake-up of one pass."""

    def __init__(self, snapshot: snap.Snapshot) -> None:
        self.snapshot = snapshot
        self.status = snapshot.status
        self.reclaims: list[status.Reclaim] = []
        """Those that this pass records."""
        self.slack: float | None = None
        """Seconds to spare until the deadline, below 0 missing; None if there is none, or it isn't known."""
        self._actions: list[actions.Action] = []
        self._events: list[actions.Event] = []
        self._wake: float | None = None

    @functools.cached_property
    def members(self) -> tuple[loss.Member, ...]:
        """How every worker of the attempt fares; of the snapshot, so it is the same all through a pass."""
        return loss.members(self.snapshot)

    def act(self, action: actions.Action) -> None:
        """Ask for an act."""
        self._actions.append(action)

    def say(self, reason: str, message: str, *, with_status: bool = False) -> None:
        """Ask for an Event; see `actions.Event`. `conditions.EVENTS` says whether it is a warning."""
        warning = reason in conditions.EVENTS[True]
        self._events.append(actions.Event(reason, message, warning, with_status))

    def wake_at(self, moment: dt.datetime) -> None:
        """Be called again at that moment even if nothing changes until then."""
        seconds = max(0.0, (moment - self.snapshot.now).total_seconds())
        self._wake = seconds if self._wake is None else min(self._wake, seconds)

    def update(self, **changes: Any) -> None:
        """Replace fields of the status."""
        self.status = dataclasses.replace(self.status, **changes)

    def condition(self, type: str, status: bool | None, reason: str, message: str) -> None:  # noqa: A002, FBT001
        """Set one condition."""
        new = conditions.Condition(type, status, reason, message, self.snapshot.now, self.snapshot.generation)
        self.update(conditions=conditions.merged(self.status.conditions, new))

    def fault(self, type: str, reason: str, text: str) -> None:  # noqa: A002 - as the field is called
        """Set the condition to False, with a warning if it wasn't."""
        if not self._is_false(type):
            self.say(reason, text)
        self.condition(type, False, reason, text)

    def mended(self, type: str, reason: str, text: str) -> None:  # noqa: A002
        """Set the condition to True if it is False: nobody asks for what was never wrong."""
        if self._is_false(type):
            self.condition(type, True, reason, text)

    def _is_false(self, type: str) -> bool:  # noqa: A002
        known = conditions.find(self.status.conditions, type)
        return known is not None and known.status is False

    @property
    def changes_job(self) -> bool:
        """The plan deletes, suspends or resumes our Job: its status is for the next pass."""
        return any(isinstance(one, actions.DeleteJob | actions.SuspendJob) for one in self._actions)

    @property
    def deletes(self) -> set[str]:
        """UIDs of the pods that the plan deletes."""
        return {one.uid for one in self._actions if isinstance(one, actions.DeletePod)}

    def plan(self) -> actions.Plan:
        """What came together."""
        return actions.Plan(
            self.status,
            tuple(self._actions),
            tuple(self._events),
            self._wake,
            tuple(self.reclaims),
            self.slack,
        )
