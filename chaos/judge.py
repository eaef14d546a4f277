"""All checks on all jobs, as one verdict. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos import ledger, modes
from chaos.facts import JobFacts
from demo.table import columns


@dataclass(frozen=True)
class Judged:
    """One job with what is wrong with it, by the statement that does not hold."""

    job: JobFacts
    wrong: tuple[tuple[str, str], ...]

    @property
    def attempts(self) -> int:
        """How many it took."""
        return max((one.attempt for one in self.job.told), default=0)

    @property
    def repeated(self) -> int:
        """Steps that were done more than once, over all workers."""
        done = ledger.of(self.job.lines, ledger.DONE)
        return len(done) - len({(line.index, line.step) for line in done})


@dataclass(frozen=True)
class Verdict:
    """Everything that was found. `left`: what was left behind; `trouble`: what went wrong with the run."""

    jobs: tuple[Judged, ...]
    left: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is not as it must be."""
        of_jobs = [f"{one.job.name}: {text} [{name}]" for one in self.jobs for name, text in one.wrong]
        return (*of_jobs, *(f"left behind: {text}" for text in self.left), *self.trouble)

    @property
    def passed(self) -> bool:
        """Whether all is as it must be."""
        return not self.sentences


def judge(job: JobFacts) -> Judged:
    """Everything that is wrong with a job."""
    wrong = [(named.statement, text) for named in modes.of(job.mode) for text in named.check(job)]
    return Judged(job, tuple(wrong))


def table(verdict: Verdict) -> str:
    """For people: the jobs, then the statements."""
    return f"{_jobs(verdict.jobs)}\n\n{_statements(verdict)}"


def _jobs(jobs: Sequence[Judged]) -> str:
    heading = ["job", "mode", "workers", "phase", "attempts", "reclaims", "failures", "steps", "repeated"]
    rows = [
        [
            one.job.name,
            one.job.mode,
            str(one.job.workers),
            _phase(one.job),
            str(one.attempts),
            str(one.job.last.reclaims),
            str(one.job.last.failures),
            str(one.job.steps * one.job.workers),
            str(one.repeated),
        ]
        for one in jobs
    ]
    return columns([heading, *rows])


def _phase(job: JobFacts) -> str:
    return "deleted" if job.cancelled_at is not None else job.last.phase or "-"


def _statements(verdict: Verdict) -> str:
    rows = [["statement", "jobs", "verdict"]]
    statements = dict.fromkeys(named.statement for one in verdict.jobs for named in modes.of(one.job.mode))
    for statement in statements:
        judged = [
            one for one in verdict.jobs if statement in {named.statement for named in modes.of(one.job.mode)}
        ]
        bad = [one.job.name for one in judged if statement in {name for name, _ in one.wrong}]
        rows.append([statement, str(len(judged)), f"NOT: {', '.join(bad)}" if bad else "holds"])
    rows.append(["nothing left behind", str(len(verdict.jobs)), "NOT" if verdict.left else "holds"])
    return columns(rows)


def summary(verdict: Verdict) -> dict[str, Any]:
    """For programs."""
    return {
        "passed": verdict.passed,
        "wrong": list(verdict.sentences),
        "jobs": [
            {
                "name": one.job.name,
                "mode": one.job.mode,
                "workers": one.job.workers,
                "phase": _phase(one.job),
                "attempts": one.attempts,
                "reclaims": one.job.last.reclaims,
                "failures": one.job.last.failures,
                "steps": one.job.steps * one.job.workers,
                "steps_repeated": one.repeated,
                "wrong": [{"statement": name, "text": text} for name, text in one.wrong],
            }
            for one in verdict.jobs
        ],
    }
