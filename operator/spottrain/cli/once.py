"""Each line of a log once, although a broken connection has it read again: by the API's timestamps."""

import datetime as dt
import re
from collections import Counter

from spottrain.api import duration

_STAMPED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) (.*)", re.DOTALL)
_OVERLAP = dt.timedelta(seconds=1)


class Once:
    """Lets every line through once.

    The API gives a log from a whole second on (`sinceTime`), and a program's two streams may lie a little out
    of order in it. So the log is read again from the second before the newest line on, and what was let
    through of that time is expected to come again.

    A kubelet keeps a long line (a progress bar) as pieces of 16 KiB with a time each. Read again from a
    moment within it, only the later pieces come, without a timestamp.
    """

    def __init__(self) -> None:
        self._newest: dt.datetime | None = None
        self._kept: dict[dt.datetime, Counter[str]] = {}
        self._again: Counter[str] = Counter()
        self._before = ""  # the last line that is too old to be expected whole

    @property
    def begun(self) -> bool:
        """Some line has come."""
        return self._newest is not None

    def reopen(self) -> tuple[str, ...]:
        """Flags of `kubectl logs`, to read it from its beginning or on from where it broke off."""
        self._again = sum(self._kept.values(), Counter())
        since = () if self._newest is None else (self._newest - _OVERLAP,)
        return ("--timestamps", *(f"--since-time={duration.format_time(moment)}" for moment in since))

    def line(self, text: str) -> str | None:
        """The line as the program wrote it; None if it has come before.

        What has no timestamp is the rest of a line that came before, or else the kubelet's own remark.
        """
        if self._again[text] > 0:
            self._again[text] -= 1
            return None
        found = _STAMPED.match(text)
        if found is None:
            whole = text.lstrip("\N{REPLACEMENT CHARACTER}")  # a piece may begin within a character
            return None if self._before.endswith(whole) else text
        self._keep(duration.parse_time(found[1] + found[2]), text)
        return found[3]

    def _keep(self, second: dt.datetime, text: str) -> None:
        self._newest = second if self._newest is None else max(self._newest, second)
        self._kept.setdefault(second, Counter())[text] += 1
        for old in [one for one in self._kept if one < self._newest - _OVERLAP]:
            self._before = next(reversed(self._kept.pop(old)))
