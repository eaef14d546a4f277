"""Waiting for the operator's word that the attempt before this one has ended.

The pod's annotations appear as a file, one `key="value"` a line. Until `spottrain.dev/go` names our
attempt, the last one may still be saving, and a checkpoint chosen now would be one too old.
"""

import json
from collections.abc import Callable
from pathlib import Path

from spottrain import errors
from spottrain.train.clock import Clock

KEY = "spottrain.dev/go"
LIMIT_SECONDS = 15 * 60.0
_POLL_SECONDS = 0.1


def wait(file: Path, attempt_id: str, clock: Clock, stopped: Callable[[], bool]) -> None:
    """Return when `file` releases `attempt_id`, or when `stopped` says that it no longer matters.

    NotReleased when neither happens for a quarter of an hour.
    """
    deadline = clock.monotonic() + LIMIT_SECONDS
    while not (stopped() or released(read(file), attempt_id)):
        if clock.monotonic() > deadline:
            raise errors.NotReleased(
                f"{file} did not say {KEY}={attempt_id} for {LIMIT_SECONDS:.0f} s: is the operator running?"
            )
        clock.sleep(_POLL_SECONDS)


def released(text: str, attempt_id: str) -> bool:
    """Whether this text of annotations releases the attempt."""
    return annotation(text, KEY) == attempt_id


def annotation(text: str, wanted: str) -> str:
    """The value of that key in this text of annotations; empty if it has none."""
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == wanted:
            return _unquoted(value)
    return ""


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(value))
    except ValueError:
        return value


def read(file: Path) -> str:
    """The file's text; empty while it isn't there."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # The volume is filled shortly after the start; until then there is nothing to read.
        return ""
