"""Ledgers for the tests: a gang of two that loses its second attempt to a fault, and comes to its end."""

from dataclasses import replace
from typing import Any

from chaos import checks
from chaos.facts import JobFacts, Told
from chaos.ledger import Life, Line
from spottrain.checkpoint.layout import StepDir
from spottrain.checkpoint.lineage import Parent, Record

STEPS = 10
WORKERS = 2
FIRST, SECOND = "aaaa", "bbbb"


def line(at: float, event: str, attempt: int, index: int, **more: Any) -> Line:
    """A line of the job's; attempt 1 is aaaa, attempt 2 bbbb."""
    name = {1: FIRST, 2: SECOND}[attempt]
    return Line(at, event, job="pair-1", uid="u", attempt=attempt, attempt_id=name, index=index, **more)


def begun(at: float, attempt: int, index: int, step: int) -> list[Line]:
    """A worker starts, and goes on behind that step."""
    return [
        line(at, "started", attempt, index),
        line(at + 0.1, "restoring", attempt, index),
        line(at + 0.3, "restored", attempt, index, step=step, digest=checks.digest(step)),
    ]


def worked(at: float, attempt: int, index: int, steps: range, node: str = "") -> list[Line]:
    """It does these steps, one each second."""
    return [
        line(at + number, "done", attempt, index, step=step, node=node) for number, step in enumerate(steps)
    ]


def saved(at: float, attempt: int, step: int) -> Line:
    """The store has acknowledged a save."""
    name = {1: FIRST, 2: SECOND}[attempt]
    return line(at, "committed", attempt, 0, step=step, commit=StepDir(step, name, "0").name)


def finished(at: float, attempt: int, index: int, *lives: Life) -> Line:
    """It has done all steps, with these lives."""
    return line(
        at, "finished", attempt, index, step=STEPS - 1, digest=checks.digest(STEPS - 1), lives=tuple(lives)
    )


def record(seq: int, attempt: int, at: float, parent: Parent | None = None) -> Record:
    """A claim at this time."""
    name = {1: FIRST, 2: SECOND}[attempt]
    return Record(seq=seq, attempt_id=name, job_uid="u", attempt=attempt, parent=parent, time=at)


def parent(step: int, seq: int = 1, name: str = FIRST) -> Parent:
    """A save that a claim goes on from."""
    return Parent(seq, StepDir(step, name, "0"))


def status(at: float, attempt: int, phase: str = "Running", **more: Any) -> Told:
    """As it was seen."""
    return Told(at, phase, attempt, {1: FIRST, 2: SECOND}[attempt], **more)


def good() -> JobFacts:
    """Attempt 1 does steps 0 to 5 and has saved 3; attempt 2 does 4 to 9."""
    lives = (Life(FIRST, 0, 3), Life(SECOND, 4, 9))
    lines = [
        one
        for index in range(WORKERS)
        for one in (
            *begun(100, 1, index, -1),
            *worked(101, 1, index, range(6)),
            *begun(120, 2, index, 3),
            *worked(121, 2, index, range(4, 10)),
            finished(128, 2, index, *lives),
        )
    ]
    lines += [saved(104.5, 1, 3), saved(127, 2, 9)]
    return JobFacts(
        name="pair-1",
        mode="Gang",
        workers=WORKERS,
        steps=STEPS,
        lines=tuple(sorted(lines, key=lambda one: one.at)),
        claims={"": {1: record(1, 1, 100.2), 2: record(2, 2, 120.2, parent(3))}},
        told=(
            status(100, 1),
            status(110, 2, "Restarting", reclaims=1),
            status(121, 2, reclaims=1),
            status(130, 2, "Complete", reclaims=1),
        ),
    )


def with_lines(job: JobFacts, *more: Line) -> JobFacts:
    """The same with these lines too."""
    return replace(job, lines=tuple(sorted((*job.lines, *more), key=lambda one: one.at)))


def without(job: JobFacts, event: str, **fields: Any) -> JobFacts:
    """The same without the lines of that kind that have these values."""

    def meant(one: Line) -> bool:
        return one.event == event and all(getattr(one, name) == value for name, value in fields.items())

    return replace(job, lines=tuple(one for one in job.lines if not meant(one)))
