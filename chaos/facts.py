"""All that is known of one job when it is judged: immutable, and there before any check looks at it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chaos.ledger import Line
from spottrain.checkpoint.lineage import Record

OVER: Final = frozenset({"Complete", "Failed"})


@dataclass(frozen=True)
class Told:
    """A status as it was seen at this Unix time."""

    at: float
    phase: str = ""
    attempt: int = 0
    attempt_id: str = ""
    reclaims: int = 0
    failures: int = 0
    completed: frozenset[int] = frozenset()
    """Indexes that are recorded as finished (Independent)."""
    message: str = ""


@dataclass(frozen=True)
class Window:
    """A time in which processes on a node may live on after they were given up; all nodes' when it is ""."""

    node: str
    begin: float
    end: float


@dataclass(frozen=True)
class JobFacts:
    """One job.

    `claims`: the records of each lineage by number; the key is "" for the one of a gang and the index for
    those of an Independent job. `told`: every status that was seen, in order. `cancelled_at`: when somebody
    deleted it before it was over.
    """

    name: str
    mode: str
    workers: int
    steps: int
    lines: tuple[Line, ...] = ()
    claims: Mapping[str, Mapping[int, Record]] = field(default_factory=dict)
    told: tuple[Told, ...] = ()
    cut: tuple[Window, ...] = ()
    cancelled_at: float | None = None

    @property
    def last(self) -> Told:
        """How it stood last."""
        return self.told[-1] if self.told else Told(0.0)

    @property
    def completed_at(self) -> float | None:
        """When it was first seen complete."""
        return next((one.at for one in self.told if one.phase == "Complete"), None)

    def tree(self, key: str) -> tuple[Line, ...]:
        """The lines of the workers that share that lineage."""
        return tuple(line for line in self.lines if key in {"", str(line.index)})


def told(at: float, item: Mapping[str, Any]) -> Told:
    """From the object as the API gives it."""
    status = item.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    failed, running = conditions.get("Failed", {}), conditions.get("Running", {})
    speaks = failed if failed.get("status") == "True" else running
    return Told(
        at=at,
        phase=status.get("phase", ""),
        attempt=status.get("attempt", 0),
        attempt_id=status.get("attemptID", ""),
        reclaims=status.get("reclaims", 0),
        failures=status.get("failures", 0),
        completed=indexes(status.get("completedIndexes", "")),
        message=str(speaks.get("message", "")),
    )


def indexes(text: str) -> frozenset[int]:
    """`0,3-5` as Kubernetes writes completed indexes."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
