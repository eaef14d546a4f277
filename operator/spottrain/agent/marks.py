"""The mark on the Node, by which the operator and the next life of the agent know. Pure."""

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
class Mark:
    """Why and until when. `since` is when the notice was first seen."""

    cause: str
    event: str
    source: str
    deadline: dt.datetime
    since: dt.datetime

    def text(self) -> str:
        """As the annotation's value."""
        return json.dumps(
            {
                "cause": self.cause,
                "deadline": duration.format_time(self.deadline),
                "event": self.event,
                "source": self.source,
                "since": duration.format_time(self.since),
                "by": names.AGENT,
            }
        )

    @property
    def drill(self) -> bool:
        """It is rehearsed: the machine stays."""
        return self.cause == names.DRILL

    def as_notice(self) -> notice.Notice:
        """The notice that it was made for."""
        return notice.Notice(notice.Kind.END, self.source, self.cause, self.event, self.deadline)


def on(node: Object) -> Mark | None:
    """The agent's mark on a Node. Someone else's (a drill's, a person's) is not ours to take away."""
    text = _annotations(node).get(names.ANNOTATION_RECLAIM, "")
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        said = json.loads(text)
        if said.get("by") == names.AGENT:
            return Mark(
                cause=str(said["cause"]),
                event=str(said["event"]),
                source=str(said["source"]),
                deadline=duration.parse_time(said["deadline"]),
                since=duration.parse_time(said["since"]),
            )
    return None


def chosen(notices: cabc.Iterable[notice.Notice], before: Mark | None, now: dt.datetime) -> Mark | None:
    """The mark for the notice that ends the machine first, and for a drill if none does.

    One that has it already keeps `since`. A deadline never moves back: whoever counts on it has begun. A
    drill whose deadline has passed is over.
    """
    found = [_mark(one, before, now) for one in notices]
    lasting = [one for one in found if not one.drill or one.deadline > now]
    return min(lasting, key=lambda one: (one.drill, one.deadline, one.since), default=None)


def _mark(one: notice.Notice, before: Mark | None, now: dt.datetime) -> Mark:
    if before is None or (before.source, before.event) != (one.source, one.event):
        now = now.replace(microsecond=0)  # as it will be read back
        return Mark(one.cause, one.event, one.source, one.ends(now), now)
    deadline = min(before.deadline, one.deadline or before.deadline)
    return dataclasses.replace(before, cause=one.cause, deadline=deadline)


def patch(node: Object, mark: Mark | None) -> Object | None:
    """A merge patch that makes the Node carry the mark or none; None if nothing is to change.

    It holds the version of the Node that it was made from, since the list of taints is written as a whole.
    """
    text = _annotations(node).get(names.ANNOTATION_RECLAIM)
    if mark is None and text is not None and on(node) is None:
        return None
    taints = (node.get("spec") or {}).get("taints") or []
    others = [one for one in taints if one.get("key") != names.TAINT_RECLAIM]
    wanted = [*others, *([_taint(mark)] if mark else [])]
    same_taints = len(wanted) == len(taints) and all(_has(taints, one) for one in wanted)
    if same_taints and text == (mark.text() if mark else None):
        return None
    before = on(node)
    rehearsed = before is not None and before.drill  # what asked for it goes with it, or it would begin anew
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {
                names.ANNOTATION_RECLAIM: mark.text() if mark else None,
                **({names.ANNOTATION_DRILL: None} if rehearsed else {}),
            },
        },
        "spec": {"taints": wanted},
    }


def _taint(mark: Mark) -> Object:
    return {"key": names.TAINT_RECLAIM, "value": mark.cause, "effect": "NoSchedule"}


def _has(taints: list[Object], wanted: Object) -> bool:
    return any(all(one.get(key) == value for key, value in wanted.items()) for one in taints)


def _annotations(node: Object) -> Object:
    return node["metadata"].get("annotations") or {}
