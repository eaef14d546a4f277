"""What must hold of every job, whatever its mode. Pure: facts in, sentences about what is wrong out.

A check is named as the statement that it makes sure of.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from chaos import ledger
from chaos.facts import JobFacts
from chaos.ledger import Line
from spottrain.checkpoint.layout import StepDir
from spottrain.checkpoint.lineage import Record

ON_ITS_WAY: Final = 20.0
"""Seconds from a pod's creation to its start on a busy machine."""

Check = Callable[[JobFacts], Iterator[str]]


@dataclass(frozen=True)
class Named:
    """A check with the statement that it makes sure of."""

    statement: str
    check: Check


def is_complete(job: JobFacts) -> Iterator[str]:
    """It ended, and well, if nobody deleted it before."""
    if job.last.phase != "Complete" and job.cancelled_at is None:
        said = f": {job.last.message}" if job.last.message else ""
        yield f"the job is {job.last.phase or 'not known to the operator'}{said}"


def states_are_whole(job: JobFacts) -> Iterator[str]:
    """What was restored is what had been saved for that step."""
    for line in ledger.of(job.lines, ledger.TORN):
        yield f"{_who(line)} restored step {line.step}: {line.text}"
    for line in ledger.of(job.lines, ledger.RESTORED):
        if line.digest != digest(line.step):
            yield f"{_who(line)} restored step {line.step} with a state that is not that of this step"


def results_hold_each_step_once(job: JobFacts) -> Iterator[str]:
    """The state at the end is that of every step done once, by attempts that did them."""
    done = {(line.attempt_id, line.index, line.step) for line in ledger.of(job.lines, ledger.DONE)}
    for line in ledger.of(job.lines, ledger.FINISHED):
        counted = [step for life in line.lives for step in range(life.first, life.last + 1)]
        if counted != list(range(job.steps)) or line.digest != digest(job.steps - 1):
            yield f"{_who(line)} finished with a state of steps {_ranges(line)}, not 0..{job.steps - 1}"
        for life in line.lives:
            missing = [
                step
                for step in range(life.first, life.last + 1)
                if (life.attempt_id, line.index, step) not in done
            ]
            if missing:
                yield (
                    f"{_who(line)} counts step {missing[0]} as done by {life.attempt_id}, which never did it"
                )


def no_committed_work_is_lost(job: JobFacts) -> Iterator[str]:
    """Each claim goes on from the newest save that the claim before it had been told was stored."""
    for key, records in job.claims.items():
        acknowledged = _acknowledged(job.tree(key))
        for seq in sorted(records)[1:]:
            yield from _losses(records, seq, acknowledged)


def _losses(records: Mapping[int, Record], seq: int, acknowledged: Mapping[str, list[Line]]) -> Iterator[str]:
    record, before = records[seq], records.get(seq - 1)
    if before is None:
        return  # another check says so
    # Later ones may have been stored while this claim was already looking: nobody was told of those in time.
    in_time = [line.step for line in acknowledged.get(before.attempt_id, ()) if line.at < record.time]
    newest = max([*in_time, _parent_step(before)])
    if _parent_step(record) < newest:
        yield (
            f"attempt {record.attempt} (claim {seq}) went on from step {_parent_step(record)}, "
            f"but step {newest} was committed by then"
        )


def nobody_follows_a_stale_writer(job: JobFacts) -> Iterator[str]:
    """Each claim goes on from a save on the line of the claim before it."""
    for records in job.claims.values():
        for seq, record in sorted(records.items()):
            if record.parent is None:
                continue
            if seq - 1 not in records:
                yield f"claim {seq} is there, claim {seq - 1} is not"
            elif not _on_line(records, seq - 1, record.parent.directory):
                yield (
                    f"attempt {record.attempt} (claim {seq}) went on from {record.parent.directory.name}, "
                    f"which is off the line of claim {seq - 1}"
                )


def _on_line(records: Mapping[int, Record], seq: int, directory: StepDir) -> bool:
    fork: StepDir | None = None
    while True:
        own = records[seq].attempt_id == directory.attempt_id
        if own and (fork is None or directory == fork or directory.step < fork.step):
            return True
        parent = records[seq].parent
        if parent is None or parent.seq not in records:
            return False
        fork, seq = parent.directory, parent.seq


def no_step_twice_in_one_attempt(job: JobFacts) -> Iterator[str]:
    """An attempt of an index does each step at most once, and begins right behind what it restored."""
    seen: set[tuple[str, int, int]] = set()
    restored: dict[tuple[str, int], int] = {}
    for line in ledger.of(job.lines, ledger.RESTORED, ledger.DONE):
        place = (line.attempt_id, line.index)
        if line.event == ledger.RESTORED:
            if place in restored:
                yield f"{_who(line)} restored twice: two processes were the same worker"
            restored[place] = line.step
            continue
        if (*place, line.step) in seen:
            yield f"{_who(line)} did step {line.step} twice"
        seen.add((*place, line.step))
        if line.step <= restored.get(place, -1):
            yield f"{_who(line)} did step {line.step}, having restored step {restored[place]}"


def counts_only_go_up(job: JobFacts) -> Iterator[str]:
    """Of attempts, reclaims and failures, in every status that was seen."""
    for before, after in zip(job.told, job.told[1:], strict=False):
        for what in ("attempt", "reclaims", "failures"):
            if getattr(after, what) < getattr(before, what):
                yield f"status.{what} went from {getattr(before, what)} to {getattr(after, what)}"


def claims_follow_the_attempts(job: JobFacts) -> Iterator[str]:
    """In the store, attempts come in the order of their numbers, each once."""
    for records in job.claims.values():
        numbers = [record.attempt for _, record in sorted(records.items())]
        if numbers != sorted(set(numbers)):
            yield f"claims were made by attempts {', '.join(map(str, numbers))}, in this order"


def no_failure_is_charged(job: JobFacts) -> Iterator[str]:
    """The programs never fail by themselves."""
    most = max((one.failures for one in job.told), default=0)
    if most:
        yield f"{most} failures were charged, and the program never fails by itself"


def a_complete_job_stays_so(job: JobFacts) -> Iterator[str]:
    """Nobody starts anything for it any more."""
    if job.completed_at is None:
        return
    for line in ledger.of(job.lines, ledger.STARTED):
        if line.at > job.completed_at:
            yield f"{_who(line)} was started {line.at - job.completed_at:.1f} s after the job was complete"
    for one in job.told:
        if one.at > job.completed_at and one.phase != "Complete":
            yield f"the job was complete, and then {one.phase}"


def a_deleted_job_starts_nothing(job: JobFacts) -> Iterator[str]:
    """But for what had been made before, and was on its way to a machine."""
    for line in ledger.of(job.lines, ledger.STARTED):
        if job.cancelled_at is not None and line.at > job.cancelled_at + ON_ITS_WAY:
            yield f"{_who(line)} was started {line.at - job.cancelled_at:.1f} s after the job was deleted"


COMMON = (
    Named("complete", is_complete),
    Named("states restored are whole", states_are_whole),
    Named("each step counts once in the result", results_hold_each_step_once),
    Named("no committed work lost", no_committed_work_is_lost),
    Named("no stale writer followed", nobody_follows_a_stale_writer),
    Named("no step twice in one attempt", no_step_twice_in_one_attempt),
    Named("counts only go up", counts_only_go_up),
    Named("claims follow the attempts", claims_follow_the_attempts),
    Named("no failure charged", no_failure_is_charged),
    Named("a complete job stays so", a_complete_job_stays_so),
    Named("a deleted job starts nothing", a_deleted_job_starts_nothing),
)


def digest(step: int) -> str:
    """The state after this step when every step was done once; "" before the first."""
    found = ""
    for one in range(step + 1):
        found = hashlib.sha256(f"{found} {one}".encode()).hexdigest()
    return found


def _acknowledged(lines: tuple[Line, ...]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in ledger.of(lines, ledger.COMMITTED):
        found.setdefault(line.attempt_id, []).append(line)
    return found


def _parent_step(record: Record) -> int:
    return record.parent.directory.step if record.parent else -1


def _who(line: Line) -> str:
    return f"worker {line.index} of attempt {line.attempt}"


def _ranges(line: Line) -> str:
    return ", ".join(f"{one.first}..{one.last}" for one in line.lives) or "none"
