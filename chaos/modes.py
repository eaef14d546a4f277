"""What each mode allows, and what must therefore hold of its jobs. Pure.

A mode is one entry of MODES: its checks beside those of all modes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from chaos import checks, ledger
from chaos.checks import Named
from chaos.facts import JobFacts, Window
from chaos.ledger import Line

GANG: Final = "Gang"
INDEPENDENT: Final = "Independent"

SLACK: Final = 2.0
"""Seconds between a process's last line and the moment at which its end is known to all."""


# Gang: any loss restarts all, and what came after the last commit is done again.


def all_finish_in_one_attempt(job: JobFacts) -> Iterator[str]:
    """The job is complete when every member of one attempt ended well."""
    if job.completed_at is None:
        return
    by_attempt: dict[int, set[int]] = {}
    for line in ledger.of(job.lines, ledger.FINISHED):
        if line.at < job.completed_at:
            by_attempt.setdefault(line.attempt, set()).add(line.index)
    final = by_attempt.get(job.last.attempt, set())
    missing = sorted(set(range(job.workers)) - final)
    if missing:
        yield f"the job is complete, and workers {missing} of attempt {job.last.attempt} never finished"


def one_attempt_at_a_time(job: JobFacts) -> Iterator[str]:
    """No worker of an attempt still works when the next one has begun to, unless nobody could reach it."""
    yield from _overlaps(job.lines, job.cut)


def each_number_is_one_attempt(job: JobFacts) -> Iterator[str]:
    """In the statuses and for all workers."""
    told = [(one.attempt, one.attempt_id) for one in job.told if one.attempt_id]
    yield from _namesakes([*told, *((line.attempt, line.attempt_id) for line in job.lines)])


# Independent: an index by itself, and one that is finished is finished.


def all_indexes_finish(job: JobFacts) -> Iterator[str]:
    """Each index ended well."""
    finished = {line.index for line in ledger.of(job.lines, ledger.FINISHED)}
    missing = sorted(set(range(job.workers)) - finished)
    if job.completed_at is not None and missing:
        yield f"the job is complete, and indexes {missing} never finished"


def a_finished_index_never_runs_again(job: JobFacts) -> Iterator[str]:
    """Once recorded as finished it isn't started; one that ended unseen may be, and finds its work done."""
    recorded: dict[int, float] = {}
    for one in job.told:
        for index in one.completed:
            recorded.setdefault(index, one.at)
    finished: set[int] = set()
    for line in job.lines:
        if line.event == ledger.FINISHED:
            finished.add(line.index)
        if line.event == ledger.STARTED and line.at > recorded.get(line.index, line.at):
            yield f"index {line.index} was started again after it was recorded as finished"
        if line.event == ledger.DONE and line.index in finished and not _unreachable(job.cut, line):
            yield f"index {line.index} did step {line.step} after it had finished"


def one_attempt_of_an_index_at_a_time(job: JobFacts) -> Iterator[str]:
    """As in a gang, but each index by itself."""
    for index in range(job.workers):
        yield from _overlaps([line for line in job.lines if line.index == index], job.cut)


def each_number_is_one_attempt_of_its_index(job: JobFacts) -> Iterator[str]:
    """An index counts its attempts by itself."""
    for index in range(job.workers):
        of_index = [(line.attempt, line.attempt_id) for line in job.lines if line.index == index]
        for text in _namesakes(of_index):
            yield f"index {index}: {text}"


def _overlaps(lines: Sequence[Line], cut: tuple[Window, ...]) -> Iterator[str]:
    begun: dict[int, float] = {}
    for line in ledger.of(lines, ledger.RESTORED):
        begun[line.attempt] = min(line.at, begun.get(line.attempt, line.at))
    last = {(line.attempt, line.index): line for line in ledger.of(lines, ledger.DONE)}
    for line in last.values():
        later = min((at for number, at in begun.items() if number > line.attempt), default=None)
        if later is not None and line.at > later and not _unreachable(cut, line):
            yield (
                f"worker {line.index} of attempt {line.attempt} on {line.node} did step {line.step} "
                f"{line.at - later:.1f} s after a later attempt had begun"
            )


def _namesakes(attempts: Iterable[tuple[int, str]]) -> Iterator[str]:
    names: dict[int, str] = {}
    for number, name in attempts:
        if names.setdefault(number, name) != name:
            yield f"attempt {number} is both {names[number]} and {name}"
            names[number] = name


def _unreachable(cut: tuple[Window, ...], line: Line) -> bool:
    return any(one.node in {"", line.node} and one.begin <= line.at <= one.end + SLACK for one in cut)


MODES: Final[Mapping[str, tuple[Named, ...]]] = {
    GANG: (
        Named("all finish in one attempt", all_finish_in_one_attempt),
        Named("one attempt at a time", one_attempt_at_a_time),
        Named("each number is one attempt", each_number_is_one_attempt),
    ),
    INDEPENDENT: (
        Named("all indexes finish", all_indexes_finish),
        Named("a finished index never runs again", a_finished_index_never_runs_again),
        Named("one attempt at a time", one_attempt_of_an_index_at_a_time),
        Named("each number is one attempt", each_number_is_one_attempt_of_its_index),
    ),
}


def of(mode: str) -> tuple[Named, ...]:
    """All checks of a job of that mode."""
    return (*checks.COMMON, *MODES[mode])
