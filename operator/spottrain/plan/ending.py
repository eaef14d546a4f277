"""The end of a job: decided once, and written before anything is cleaned up."""

from spottrain.api import conditions, status
from spottrain.plan import draft as drafts


def complete(draft: drafts.Draft, message: str) -> None:
    """All its work is done."""
    draft.condition(conditions.COMPLETE, True, conditions.ALL_WORKERS_FINISHED, message)
    _end(draft, status.Phase.COMPLETE, conditions.ALL_WORKERS_FINISHED, message)


def fail(draft: drafts.Draft, reason: str, message: str) -> None:
    """It is given up."""
    draft.condition(conditions.FAILED, True, reason, message)
    _end(draft, status.Phase.FAILED, reason, message)


def _end(draft: drafts.Draft, phase: status.Phase, reason: str, message: str) -> None:
    draft.update(phase=phase, completion=draft.snapshot.now, next_retry=None)
    draft.say(reason, message)
