"""A drill: a notice that somebody asks for by an annotation on the Node (`spottrain drill`).

What is done about it is what is done about a cloud's. Its window counts from when the agent hears of it, and
at its end the agent takes mark and annotation away.
"""

import collections.abc as cabc
import datetime as dt
import json
from typing import Any

from spottrain.agent import clock as clocks
from spottrain.agent import cluster, notice, own_node, wire
from spottrain.api import duration, names

NAME = "drill"
PATIENCE = dt.timedelta(minutes=10)
"""For how long one may wait for an agent: none comes out of the blue when that is back after hours."""
LONGEST = 3600.0


def read(node: cabc.Mapping[str, Any], now: dt.datetime) -> tuple[notice.Notice, ...]:
    """What the Node's annotation asks for.

    Raises:
        wire.AnswerError: nobody can tell what.

    """
    text = (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_DRILL)
    if text is None:
        return ()
    try:
        said = json.loads(text)
        event, window, asked = str(said["id"]), float(said["window"]), duration.parse_time(said["asked"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise wire.AnswerError("unreadable", f"no drill: {text[:100]!r}; use `spottrain drill`") from error
    if not 0 < window <= LONGEST:
        raise wire.AnswerError("unreadable", f"no drill: a window of {window:g} s; it may be up to an hour")
    if now - asked > PATIENCE:
        return ()
    return (notice.Notice(notice.Kind.END, NAME, names.DRILL, event, within=window),)


class Drill:
    """See notice.Source. It hangs until the Node changes."""

    name = NAME
    causes = (names.DRILL,)
    pause = 1.0
    needed = False

    def __init__(self, node: own_node.OwnNode, clock: clocks.Clock) -> None:
        self._node = node
        self._clock = clock
        self._changes: cabc.Iterator[dict[str, Any]] = iter(())

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        try:
            changed = next(self._changes, None)
            if changed is None:
                self._changes = self._node.changes()
                changed = next(self._changes, None)
        except cluster.ApiError as error:
            raise wire.AnswerError(f"{error.code // 100}xx", str(error)) from error
        except cluster.ClusterError as error:
            raise wire.AnswerError("none", str(error)) from error
        return () if changed is None else read(changed, self._clock.now())
