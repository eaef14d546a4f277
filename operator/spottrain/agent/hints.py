"""The hint on the Node: it may be taken soon, so its workers are asked for a checkpoint. Pure.

A hint is one for as long as its source says anything, however often and in whatever words: each new one would
cost a save of a whole gang.
"""

import collections.abc as cabc
import contextlib
import dataclasses
import datetime as dt
import json
from typing import Any

from spottrain.agent import notice
from spottrain.api import duration, names

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Hint:
    """Why. `since` is when it was first seen: workers that are younger need no save for it."""

    cause: str
    event: str
    source: str
    since: dt.datetime

    def text(self) -> str:
        """As the annotation's value."""
        return json.dumps(
            {
                "cause": self.cause,
                "event": self.event,
                "source": self.source,
                "since": duration.format_time(self.since),
                "by": names.AGENT,
            }
        )

    def as_notice(self) -> notice.Notice:
        """The notice that it was made for."""
        return notice.Notice(notice.Kind.HINT, self.source, self.cause, self.event)


def on(node: Object) -> Hint | None:
    """The agent's hint on a Node; one that somebody else wrote is not ours to take away."""
    text = _annotations(node).get(names.ANNOTATION_HINT, "")
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        said = json.loads(text)
        if said.get("by") == names.AGENT:
            since = duration.parse_time(said["since"])
            return Hint(str(said["cause"]), str(said["event"]), str(said["source"]), since)
    return None


def chosen(notices: cabc.Iterable[notice.Notice], before: Hint | None, now: dt.datetime) -> Hint | None:
    """The hint of those that are not over: the one before, or else the first."""
    standing = [one for one in notices if one.deadline is None or one.deadline > now]
    if before is not None and any(one.source == before.source for one in standing):
        return before
    for one in standing:
        return Hint(one.cause, one.event, one.source, now.replace(microsecond=0))  # as it will be read back
    return None


def patch(node: Object, hint: Hint | None) -> Object | None:
    """A merge patch that makes the Node carry the hint or none; None if nothing is to change."""
    text, wanted = _annotations(node).get(names.ANNOTATION_HINT), hint.text() if hint else None
    if text == wanted or (hint is None and on(node) is None):
        return None
    return {"metadata": {"annotations": {names.ANNOTATION_HINT: wanted}}}


def _annotations(node: Object) -> Object:
    return node["metadata"].get("annotations") or {}
