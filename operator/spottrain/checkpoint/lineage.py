"""Who resumed from what, and what a reader may therefore take.

Each attempt claims the next number below `lineage/` with a conditional PUT, and the record names the
commit it goes on from (its parent). Order comes from these numbers alone.

    1 (A) ── 100 ── 200 ── 300*           * committed by A after B had claimed: past the fork point
                      └── 2 (B) ── 250
                                    └── 3 (C)
 C's trail, best first: C's own commits, then 250 (B), then 200 (A), 100 (A). Never 300: A was declared
dead when B claimed, and whatever it still writes is on no trail. That rule, not any lock, keeps two
writers apart.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spottrain import errors
from spottrain.checkpoint import layout
from spottrain.checkpoint.store import Store

LATEST = "Latest"


@dataclass(frozen=True)
class Parent:
    """The commit an attempt went on from: the number of its writer's claim, and its directory."""

    seq: int
    directory: layout.StepDir


@dataclass(frozen=True)
class Record:
    """One claim. `wish` is what the claimant was told to restore: Latest, Fresh or `Step:<n>`.

    `pinned`: its parent is a step that was asked for, and nothing older will do in its place.
    `announced`: the attempt before it had time to save where it stopped, and this one goes on from there.
    `time` is Unix seconds by the claimant's clock, for people and for pacing: nothing is ordered by it.
    """

    seq: int
    attempt_id: str
    job_uid: str = ""
    attempt: int = 0
    parent: Parent | None = None
    wish: str = LATEST
    pinned: bool = False
    time: float = 0.0
    announced: bool = False

    def encode(self) -> bytes:
        """The bytes of its JSON object."""
        parent = self.parent and {"seq": self.parent.seq, "step": self.parent.directory.name}
        return json.dumps(
            {
                "format": layout.FORMAT,
                "seq": self.seq,
                "attemptID": self.attempt_id,
                "jobUID": self.job_uid,
                "attempt": self.attempt,
                "parent": parent,
                "restore": self.wish,
                "pinned": self.pinned,
                "time": self.time,
                "announced": self.announced,
            },
            indent=1,
        ).encode()


def decode(data: bytes, seq: int) -> Record:
    """The record in these bytes; LineageBroken when they are not record number `seq`, or NewerFormat."""
    try:
        raw = json.loads(data)
        record = _parse(raw, seq)
    except (ValueError, KeyError, TypeError) as error:
        raise errors.LineageBroken(f"{layout.record_key(seq)} cannot be read: {error!r}") from error
    if record.seq != seq:
        raise errors.LineageBroken(f"{layout.record_key(seq)} says that it is number {record.seq}")
    return record


def _parse(raw: Any, seq: int) -> Record:
    layout.refuse_newer(raw["format"], layout.record_key(seq))
    if raw["format"] != layout.FORMAT:
        raise ValueError(f"format {raw['format']}")
    return Record(
        seq=int(raw["seq"]),
        attempt_id=str(raw["attemptID"]),
        job_uid=str(raw.get("jobUID", "")),
        attempt=int(raw.get("attempt", 0)),
        parent=_parse_parent(raw["parent"]),
        wish=str(raw.get("restore", LATEST)),
        pinned=bool(raw.get("pinned", False)),
        time=float(raw.get("time", 0.0)),
        announced=bool(raw.get("announced", False)),
    )


def _parse_parent(raw: Any) -> Parent | None:
    if raw is None:
        return None
    directory = layout.parse_step_dir(raw["step"])
    if directory is None:
        raise ValueError(f"parent {raw['step']!r} is no step directory")
    return Parent(int(raw["seq"]), directory)


class Records:
    """The records of one URI. They never change once written, so each is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Record] = {}

    def refresh(self) -> Mapping[int, Record]:
        """All records by number, as they are now."""
        return self._read_missing(self.numbers())

    def numbers(self) -> list[int]:
        """The numbers claimed so far: one LIST."""
        keys = (layout.parse_record_key(entry.key) for entry in self._store.list(layout.LINEAGE))
        return sorted(seq for seq in keys if seq is not None)

    def refresh_as_newest(self, mine: Record) -> Mapping[int, Record]:
        """The same, after one LIST for both, when `ensure_newest` would raise nothing."""
        return self._read_missing(self._numbers_up_to(mine))

    def ensure_newest(self, mine: Record) -> None:
        """Raise StaleAttempt, naming the newer claim, when there is one."""
        self._numbers_up_to(mine)

    def _numbers_up_to(self, mine: Record) -> list[int]:
        numbers = self.numbers()
        newest = max(numbers, default=0)
        if newest > mine.seq:
            raise self._taken_over(mine, newest)
        if newest < mine.seq:
            raise errors.LineageBroken(
                f"{layout.record_key(mine.seq)}, our own claim, is gone from the store"
            )
        return numbers

    def _read_missing(self, numbers: Iterable[int]) -> Mapping[int, Record]:
        self._known |= {seq: self._read(seq) for seq in numbers if seq not in self._known}
        return dict(self._known)

    def _taken_over(self, mine: Record, newest: int) -> errors.StaleAttempt:
        try:
            return stale(mine.attempt_id, self._read(newest))
        except errors.NewerFormat as error:
            return errors.StaleAttempt(
                f"claim {newest} has taken over ({error}); {mine.attempt_id} is stale and writes nothing more"
            )

    def _read(self, seq: int) -> Record:
        data = self._store.get(layout.record_key(seq))
        if data is None:
            raise errors.LineageBroken(f"{layout.record_key(seq)} was listed and is gone")
        return decode(data, seq)


def stale(attempt_id: str, newer: Record) -> errors.StaleAttempt:
    """The error for the writer `attempt_id` on meeting a newer claim."""
    return errors.StaleAttempt(
        f"attempt {newer.attempt} ({newer.attempt_id}) has taken over with claim {newer.seq}; "
        f"{attempt_id} is stale and writes nothing more"
    )


def ancestry(records: Mapping[int, Record], seq: int) -> Iterator[tuple[Record, layout.StepDir | None]]:
    """Record `seq`, its parent's, and so on; with each the fork point above which its commits don't count."""
    record = records[seq]
    fork: layout.StepDir | None = None
    while True:
        yield record, fork
        came_from = record.parent
        if came_from is None:
            return
        parent = records.get(came_from.seq)
        if parent is None or parent.seq >= record.seq:
            raise errors.LineageBroken(f"claim {record.seq} goes on from claim {came_from.seq}, not there")
        if parent.attempt_id != came_from.directory.attempt_id:
            raise errors.LineageBroken(
                f"claim {record.seq} names a parent that claim {parent.seq} did not write"
            )
        record, fork = parent, came_from.directory


def trail(
    records: Mapping[int, Record], seq: int, committed: Iterable[layout.StepDir], *, past_pins: bool = False
) -> list[layout.StepDir]:
    """The commits that the attempt of claim `seq` may take, best first: the restore rule.

    Its own, highest step first; then the commit it went on from and what that attempt had committed below
    it; and so on back. A pinned claim ends the trail with its parent, unless `past_pins`.
    """
    by_attempt: dict[str, list[layout.StepDir]] = {}
    for directory in committed:
        by_attempt.setdefault(directory.attempt_id, []).append(directory)
    found: list[layout.StepDir] = []
    pinned = False
    for record, fork in ancestry(records, seq):
        own = by_attempt.get(record.attempt_id, [])
        found += sorted((d for d in own if _before(d, fork, exactly=pinned)), reverse=True)
        if pinned:
            break
        pinned = record.pinned and not past_pins
    return found


def _before(directory: layout.StepDir, fork: layout.StepDir | None, *, exactly: bool) -> bool:
    if fork is None or directory == fork:
        return True
    return not exactly and directory.step < fork.step


def parents(records: Mapping[int, Record]) -> frozenset[layout.StepDir]:
    """Every commit that some attempt went on from."""
    return frozenset(record.parent.directory for record in records.values() if record.parent)
