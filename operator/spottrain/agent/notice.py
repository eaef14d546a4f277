"""What a cloud says of one machine, whichever cloud it is."""

import dataclasses
import datetime as dt
import enum
from typing import Protocol


class Kind(enum.Enum):
    """What follows from a notice."""

    END = enum.auto()
    """The machine's processes will be ended: the node is marked and its workers are stopped in time."""
    HINT = enum.auto()
    """It may come to that: an early checkpoint, and nobody is stopped."""


@dataclasses.dataclass(frozen=True)
class Notice:
    """One notice that stands.

    `cause` is one of few words (a metric's label). `event` is the cloud's own ID, or where it gives none what
    it says: a machine has only one such notice at a time. `deadline` is when the machine ends or the hint is
    over; where the cloud names no moment, `within` is how many seconds after it was first seen.
    """

    kind: Kind
    source: str
    cause: str
    event: str
    deadline: dt.datetime | None = None
    within: float = 0.0

    def ends(self, first_seen: dt.datetime) -> dt.datetime:
        """The deadline of a notice that was first seen then."""
        return self.deadline or first_seen + dt.timedelta(seconds=self.within)


class Source(Protocol):
    """One place where a cloud gives notice.

    `look` takes as long as the cloud does (a request may hang until there is something to tell) and returns
    all that stands at that moment; `pause` is how many seconds to wait before the next look. `causes` are
    those of its notices. A source that is `needed` makes the agent blind when it doesn't answer.

    Raises in `look`:
        wire.AnswerError: there was no answer, or none that could be understood.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def causes(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def pause(self) -> float: ...  # noqa: D102

    @property
    def needed(self) -> bool: ...  # noqa: D102

    def look(self) -> tuple[Notice, ...]: ...  # noqa: D102
