"""What may happen, how often, and for how long."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class Kind(enum.StrEnum):
    """A kind of fault."""

    KILL = "kill"
    """The machine is gone in an instant, and comes back with its disk."""
    REPLACE = "replace"
    """The machine is gone, and a new one of the same name takes its place at once."""
    PARTITION = "partition"
    """The machine's cable is pulled and put back; what runs on it goes on."""
    DRAIN = "drain"
    """The node is cordoned, its pods are evicted, and the cordon is lifted again."""
    DELETE = "delete"
    """Somebody deletes a worker's pod, with its grace."""
    FORCE = "force-delete"
    """Somebody deletes a worker's pod without grace: its object is gone before its processes are."""
    CANCEL = "cancel"
    """Somebody deletes a job that is not over yet, for good."""
    OPERATOR = "operator"
    """kill -9 of the process of the operator that leads."""
    API_STOP = "api-stop"
    """The API server ends, and starts again."""
    API_PAUSE = "api-pause"
    """The API server is frozen: connections stay open and nothing is answered."""
    STORE = "store"
    """The object store refuses connections."""


NODE_KINDS: Final = frozenset({Kind.KILL, Kind.REPLACE, Kind.PARTITION, Kind.DRAIN})
"""These take a node away for a while."""
ALONE: Final = frozenset({Kind.API_STOP, Kind.API_PAUSE, Kind.STORE})
"""While one of these lasts nothing else begins or ends."""

WEIGHTS: Final[Mapping[Kind, int]] = {
    Kind.KILL: 4,
    Kind.REPLACE: 1,
    Kind.PARTITION: 4,
    Kind.DRAIN: 3,
    Kind.DELETE: 2,
    Kind.FORCE: 1,
    Kind.CANCEL: 1,
    Kind.OPERATOR: 3,
    Kind.API_STOP: 1,
    Kind.API_PAUSE: 1,
    Kind.STORE: 2,
}
"""How often each comes up, in proportion."""

_BLINK, _LONG = (2.0, 8.0), (18.0, 35.0)
HOLDS: Final[Mapping[Kind, tuple[tuple[float, float], ...]]] = {
    # Blinks are over before anybody can know of them; the others last beyond the lab's 16 s of patience.
    Kind.KILL: (_BLINK, _LONG),
    Kind.PARTITION: (_BLINK, _LONG),
    Kind.DRAIN: ((8.0, 20.0),),
    Kind.API_STOP: ((2.0, 12.0),),
    Kind.API_PAUSE: ((2.0, 12.0),),
    Kind.STORE: ((1.0, 6.0),),
}
"""Seconds until a fault ends: one of these ranges, a moment in it. Others are over at once."""


@dataclass(frozen=True)
class Fault:
    """One fault, `at` seconds after the start, for `hold` seconds (0: it is over at once).

    `node`: which, for kinds that take one away. `pick`, from 0 to 1: which of the pods (or jobs) that there
    are at that moment, for kinds that need one.
    """

    number: int
    at: float
    kind: Kind
    hold: float = 0.0
    node: str = ""
    pick: float = 0.0

    @property
    def end(self) -> float:
        """When it ends."""
        return self.at + self.hold

    def words(self) -> str:
        """For people."""
        parts = [f"#{self.number} {self.kind}"]
        parts += [self.node] if self.node else []
        parts += [f"for {self.hold:.0f} s"] if self.hold else []
        return " ".join(parts)
