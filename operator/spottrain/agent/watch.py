"""A thread per source that asks again and again and tells what it heard."""

import collections.abc as cabc
import dataclasses

from spottrain.agent import clock as clocks
from spottrain.agent import notice, wire

SHORTEST_PAUSE = 0.25
LONGEST_PAUSE = 4.0
"""Seconds between two tries at a source that fails; a notice must not wait longer when it is back."""


@dataclasses.dataclass(frozen=True)
class Heard:
    """What came of one look, which `began` (monotonic seconds) and ended `at`: notices, or a fault."""

    source: str
    began: float
    at: float
    notices: tuple[notice.Notice, ...] = ()
    fault: wire.AnswerError | None = None


def watch(source: notice.Source, tell: cabc.Callable[[Heard], None], clock: clocks.Clock) -> None:
    """Look at the source until the process ends. A fault is told like anything else."""
    faults = 0
    while True:
        heard = look(source, clock)
        tell(heard)
        faults = faults + 1 if heard.fault else 0
        if not clock.wait(pause(source.pause, faults)):
            return


def look(source: notice.Source, clock: clocks.Clock) -> Heard:
    """One look."""
    began = clock.monotonic()
    try:
        notices = source.look()
    except wire.AnswerError as fault:
        return Heard(source.name, began, clock.monotonic(), fault=fault)
    return Heard(source.name, began, clock.monotonic(), notices)


def pause(usual: float, faults: int) -> float:
    """Seconds until the next look after so many faults in a row."""
    if not faults:
        return usual
    doubled: float = SHORTEST_PAUSE * 2 ** min(faults - 1, 10)
    return min(doubled, LONGEST_PAUSE)
