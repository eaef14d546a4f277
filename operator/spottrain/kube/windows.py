"""How long machines last after a notice: from when it came to the machine's last sign of life."""

import collections
import collections.abc as cabc
import dataclasses
import datetime as dt

from spottrain.api import names
from spottrain.plan import snapshot as snap

KEPT = 20
"""Of each provider the newest: clouds change."""


@dataclasses.dataclass(frozen=True)
class _Notice:
    """A notice under way."""

    uid: str
    provider: str
    since: dt.datetime


class Windows:
    """Fed with every state of every node. Only notices that say when they came are timed, and no drill.

    `measured` is told each window (provider, seconds) from `begin` on: of several operators one counts.
    """

    def __init__(self, measured: cabc.Callable[[str, float], None]) -> None:
        self._measured = measured
        self._counts = False
        self._open: dict[str, _Notice] = {}
        self._over: collections.deque[str] = collections.deque(maxlen=1024)
        """UIDs of the nodes that were timed and whose objects may still be there."""
        self._kept: dict[str, collections.deque[snap.Window]] = {}

    def begin(self) -> None:
        """From now on windows are counted."""
        self._counts = True

    @property
    def nodes(self) -> cabc.Set[str]:
        """Names of the nodes under notice: they are watched until their end, though nobody works there."""
        return self._open.keys()

    @property
    def recent(self) -> tuple[snap.Window, ...]:
        """The newest of each provider."""
        return tuple(one for kept in self._kept.values() for one in kept)

    def look(self, name: str, node: snap.Node | None, now: dt.datetime, *, at_work: bool) -> None:
        """A node's newest state, None when it is gone; `at_work`: it carries a worker that has not ended."""
        known = self._open.get(name)
        if known is not None and (node is None or node.uid != known.uid):
            self.ended(name, now, at_work=at_work)
        if node is None or node.uid in self._over:
            return
        if node.noticed is None or node.notice == names.DRILL:
            self._open.pop(name, None)  # withdrawn
        else:
            self._open[name] = _Notice(node.uid, node.provider, node.noticed)

    def ended(self, name: str, moment: dt.datetime, *, at_work: bool) -> None:
        """The node gave its last sign of life at that moment."""
        known = self._open.pop(name, None)
        if known is None or not self._counts:
            return
        self._over.append(known.uid)
        window = snap.Window(known.provider, max(0.0, (moment - known.since).total_seconds()), at_work)
        self._kept.setdefault(known.provider, collections.deque(maxlen=KEPT)).append(window)
        self._measured(window.provider, window.seconds)
