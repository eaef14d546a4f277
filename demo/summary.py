"""What happened, as JSON for programs. Pure."""

from typing import Any

from demo.facts import Attempt, Loss, Run
from demo.verdict import shortcomings


def summary(broken: Run, unbroken: Run) -> dict[str, Any]:
    """The content of `summary.json`; docs/demo.md explains the fields.

    `lost_steps` and `seconds_to_first_step` have one entry for each loss, in order; null: nobody said.
    """
    losses = broken.losses()
    return {
        "completed": broken.completed,
        "attempts": len(broken.attempts),
        "equal_final_loss": equal_final_loss(broken, unbroken),
        "final_loss": broken.final_loss,
        "unbroken_final_loss": unbroken.final_loss,
        "lost_steps": [loss.lost_steps for loss in losses],
        "interval_steps": [loss.interval_steps for loss in losses],
        "seconds_to_running": [_rounded(loss.seconds_to_running) for loss in losses],
        "seconds_to_first_step": [_rounded(loss.seconds_to_first_step) for loss in losses],
        "reclaims": broken.reclaims,
        "failures": broken.failures,
        "losses": [_loss(loss) for loss in losses],
        "attempt_details": [_attempt(one, broken.workers) for one in broken.attempts],
        "shortcomings": shortcomings(broken, unbroken),
    }


def equal_final_loss(broken: Run, unbroken: Run) -> bool:
    """Both runs ended, and with the same loss to the last digit that was written."""
    known = broken.final_loss is not None and broken.completed and unbroken.completed
    return known and broken.final_loss == unbroken.final_loss


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "kind": loss.fault.kind,
        "attempt": loss.fault.attempt,
        "node": loss.fault.node,
        "rank": loss.fault.rank,
        "step_at_loss": loss.fault.step,
        "last_step": loss.last_step,
        "resumed_at": loss.resumed_at,
        "lost_steps": loss.lost_steps,
        "interval_steps": loss.interval_steps,
        "seconds_to_running": _rounded(loss.seconds_to_running),
        "seconds_to_first_step": _rounded(loss.seconds_to_first_step),
    }


def _attempt(attempt: Attempt, workers: int) -> dict[str, Any]:
    first = attempt.first_step
    return {
        "attempt": attempt.number,
        "cause": attempt.cause,
        "reason": attempt.reason,
        "detail": attempt.detail,
        "resumed_at": attempt.resumed_at,
        "last_step": attempt.last_step,
        "saves": [mark.step for mark in attempt.saves],
        "running": _rounded(attempt.running(workers)),
        "first_step": None if first is None else _rounded(first.time),
        "workers": [
            {"rank": one.index, "pod": one.pod, "node": one.node, "capacity": one.capacity}
            for one in sorted(attempt.members, key=lambda one: one.index)
        ],
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
