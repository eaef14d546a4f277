"""What the workers wrote of themselves, one JSON object a line. Parsing is pure; see programs/worker.py."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

STARTED: Final = "started"
RESTORING: Final = "restoring"
RESTORED: Final = "restored"
"""`step` is the last one that need not be done again, -1 for none."""
TORN: Final = "torn"
"""The state that was restored is not that of the step it was restored for."""
DONE: Final = "done"
COMMITTED: Final = "committed"
"""The store had acknowledged the save of `step`."""
FINISHED: Final = "finished"
LEFT: Final = "left"
SAID: Final = "said"


@dataclass(frozen=True)
class Life:
    """One stretch of steps that a state remembers: which attempt did the first to the last of them."""

    attempt_id: str
    first: int
    last: int


@dataclass(frozen=True)
class Line:
    """One thing that a worker did, at this Unix time (all of the lab's machines have one clock)."""

    at: float
    event: str
    job: str
    uid: str
    attempt: int
    attempt_id: str
    index: int
    node: str = ""
    step: int = -1
    commit: str = ""
    digest: str = ""
    lives: tuple[Life, ...] = ()
    text: str = ""


def parse(text: str) -> Line:
    """A line; ValueError when it is none."""
    raw = json.loads(text)
    try:
        lives = tuple(Life(*one) for one in raw.pop("lives", ()))
        return Line(**raw, lives=lives)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"no line of a ledger: {text!r} ({error})") from error


def read(folder: Path) -> tuple[Line, ...]:
    """All lines of all workers, the oldest first."""
    texts = (text for path in folder.glob("*.jsonl") for text in path.read_text().splitlines())
    return tuple(sorted((parse(text) for text in texts), key=lambda line: line.at))


def of(lines: Iterable[Line], *events: str) -> Sequence[Line]:
    """Those of these kinds, in order."""
    return [line for line in lines if line.event in events]


def raw(line: Line) -> dict[str, Any]:
    """As JSON, without what is empty."""
    found = {key: value for key, value in vars(line).items() if value not in ("", ())}
    return {**found, "lives": [list(vars(one).values()) for one in line.lives]} if line.lives else found
