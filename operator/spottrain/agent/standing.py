"""Which notices stand, from what the sources say over time."""

import dataclasses

from spottrain.agent import notice

WITHDRAWN_AFTER = 5.0
"""Seconds of good answers without a notice until it counts as withdrawn: one odd answer unmarks no node."""

Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class _Seen:
    notice: notice.Notice
    at: float


class Standing:
    """The notices that stand, each as it was last told. Moments are monotonic seconds."""

    def __init__(self) -> None:
        self._seen: dict[Key, _Seen] = {}

    def take(
        self,
        source: str,
        notices: tuple[notice.Notice, ...],
        at: float,
        withdrawn_after: float = WITHDRAWN_AFTER,
    ) -> None:
        """A good answer of that source. A fault is no answer, and changes nothing."""
        for one in notices:
            self._seen[source, one.event] = _Seen(one, at)
        said = {(source, one.event) for one in notices}
        others = {key: seen for key, seen in self._seen.items() if key[0] == source and key not in said}
        for key in [key for key, seen in others.items() if at - seen.at >= withdrawn_after]:
            del self._seen[key]

    def adopt(self, one: notice.Notice, at: float) -> None:
        """One that stood before this process began: it is withdrawn if its source no longer says it."""
        self._seen.setdefault((one.source, one.event), _Seen(one, at))

    def of(self, kind: notice.Kind) -> tuple[notice.Notice, ...]:
        """Those of that kind."""
        return tuple(seen.notice for seen in self._seen.values() if seen.notice.kind is kind)
