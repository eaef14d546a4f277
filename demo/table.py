"""What happened, for people. Pure."""

from collections.abc import Sequence

from demo.facts import Attempt, Run
from demo.summary import equal_final_loss


def report(broken: Run, unbroken: Run) -> str:
    """The tables that end the demo."""
    return "\n\n".join((_attempts(broken), _losses(broken), _final(broken, unbroken)))


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text; the first one is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _attempts(run: Run) -> str:
    heading = ["attempt", "started because", "steps", *(f"rank {index}" for index in range(run.workers))]
    return columns([heading, *([*_attempt(one), *_places(one, run.workers)] for one in run.attempts)])


def _attempt(attempt: Attempt) -> list[str]:
    cause = " ".join(part for part in (attempt.cause, attempt.reason) if part)
    done = f"{number(attempt.resumed_at)}..{number(attempt.last_step)}"
    return [str(attempt.number), cause, "never trained" if attempt.last_step is None else done]


def _places(attempt: Attempt, workers: int) -> list[str]:
    by_index = {member.index: member for member in attempt.members}
    found = [by_index.get(index) for index in range(workers)]
    return [f"{one.node} ({one.capacity})" if one and one.node else "-" for one in found]


def _losses(run: Run) -> str:
    heading = [
        "loss",
        "node",
        "rank",
        "at step",
        "resumed at",
        "steps lost",
        "of an interval's",
        "s to running",
        "s to first step",
    ]
    rows = [
        [
            loss.fault.kind,
            loss.fault.node,
            str(loss.fault.rank),
            number(loss.last_step),
            number(loss.resumed_at),
            number(loss.lost_steps),
            number(loss.interval_steps),
            seconds(loss.seconds_to_running),
            seconds(loss.seconds_to_first_step),
        ]
        for loss in run.losses()
    ]
    return columns([heading, *rows])


def _final(broken: Run, unbroken: Run) -> str:
    rows = [["run", "final loss"], *([run.name, run.final_loss or "?"] for run in (broken, unbroken))]
    same = "equal to the last bit" if equal_final_loss(broken, unbroken) else "NOT equal"
    return f"{columns(rows)}\n{same}"


def number(value: int | None) -> str:
    """A whole number, or ? for unknown."""
    return "?" if value is None else str(value)


def seconds(value: float | None) -> str:
    """Seconds with a decimal, or ? for unknown."""
    return "?" if value is None else f"{value:.1f}"
