"""What the status keeps of the indexes of an Independent job, in texts that hold 10,000 of them.

Why so, and how large it can get: docs/decisions/0012-indexes-in-the-status.md.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
from typing import Any

from spottrain.api import duration, indexes

NONE = indexes.Indexes()
NO_COUNTS = indexes.Counts()


@dataclasses.dataclass(frozen=True)
class Retry:
    """These indexes are begun again at that moment and not before."""

    time: dt.datetime
    indexes: indexes.Indexes


@dataclasses.dataclass(frozen=True)
class Shards:
    """The indexes of an Independent job.

    `completed` and `failed` have ended for good. `made`: the pod of the index's current attempt has been
    seen, so that an absent one is a lost one and not one that is still to be made. `restarts`: how often an
    index was begun again; its current attempt is one more. `failures`: how often its program failed.
    """

    completed: indexes.Indexes = NONE
    failed: indexes.Indexes = NONE
    made: indexes.Indexes = NONE
    restarts: indexes.Counts = NO_COUNTS
    failures: indexes.Counts = NO_COUNTS
    retries: tuple[Retry, ...] = ()

    def attempt(self, index: int) -> int:
        """The number of the index's current attempt, from 1."""
        return self.restarts[index] + 1

    @property
    def decided(self) -> indexes.Indexes:
        """They never run again."""
        return self.completed | self.failed

    def texts(self, workers: int) -> tuple[str, str]:
        """The completed and the failed ones of so many, as an Indexed Job of that size may write them."""
        there = indexes.below(workers)
        return (self.completed & there).text, (self.failed & there).text

    def waiting(self, now: dt.datetime) -> indexes.Indexes:
        """The indexes whose time to begin again has not come."""
        waits = NONE
        for one in self.retries:
            if one.time > now:
                waits |= one.indexes
        return waits

    def without_retries(self, gone: indexes.Indexes) -> "Shards":
        """The same, when these wait for no moment any more."""
        if not gone or not self.retries:
            return self
        left = [Retry(one.time, one.indexes - gone) for one in self.retries]
        return dataclasses.replace(self, retries=tuple(one for one in left if one.indexes))

    def with_retries(self, more: cabc.Mapping[dt.datetime, set[int]]) -> "Shards":
        """The same with these, the soonest first."""
        if not more:
            return self
        times = {one.time: one.indexes for one in self.retries}
        for time, some in more.items():
            times[time] = times.get(time, NONE) | indexes.of(some)
        return dataclasses.replace(self, retries=tuple(Retry(time, times[time]) for time in sorted(times)))


def parse(raw: cabc.Mapping[str, Any]) -> Shards | None:
    """The shards from a resource's `status`; None for one that has no such thing: a gang's.

    What has ended counts although the rest was lost, as under an older resource definition.
    """
    if not {"indexes", "completedIndexes", "failedIndexes"} & raw.keys():
        return None
    kept = raw.get("indexes") or {}
    return Shards(
        completed=indexes.parse(raw.get("completedIndexes", "")),
        failed=indexes.parse(raw.get("failedIndexes", "")),
        made=indexes.parse(kept.get("made", "")),
        restarts=indexes.parse_counts(kept.get("restarts", "")),
        failures=indexes.parse_counts(kept.get("failures", "")),
        retries=tuple(
            Retry(duration.parse_time(one["time"]), indexes.parse(one["indexes"]))
            for one in kept.get("retries", ())
        ),
    )


def render(shards: Shards | None) -> dict[str, Any]:
    """The fields of a `status` that hold them."""
    if shards is None:
        return {}
    retries = [
        {"time": duration.format_time(one.time), "indexes": one.indexes.text} for one in shards.retries
    ]
    return {
        "completedIndexes": shards.completed.text or None,
        "failedIndexes": shards.failed.text or None,
        "indexes": {
            "made": shards.made.text,
            "restarts": shards.restarts.text,
            "failures": shards.failures.text,
            "retries": retries,
        },
    }
