"""Sets of indexes and a number for each index, in the short texts that a status can hold for 10,000 of them.

A set is written as an Indexed Job writes its `completedIndexes`: `0-4,7`. Numbers are run-length encoded from
index 0 on: `0*37,1,2*3` is 37 indexes at 0, one at 1, three at 2, and all that follow at 0. The work is in
the number of runs, never in the number of indexes.
"""

import bisect
import collections.abc as cabc
import dataclasses
import functools
import itertools
import operator

Run = tuple[int, int]
_TEXTS_REMEMBERED = 256
"""The texts of a job are the same from one pass to the next but for few."""


@dataclasses.dataclass(frozen=True)
class Indexes:
    """A set of indexes. `runs` are (first, last), in order, with a gap between each and the next."""

    runs: tuple[Run, ...] = ()

    @functools.cached_property
    def text(self) -> str:
        """`0-4,7`; two neighbours are `8,9`, as in `batch/v1` (pkg/controller/job/indexed_job_utils.go)."""
        return ",".join(_run_text(first, last) for first, last in self.runs)

    def __contains__(self, index: int) -> bool:
        place = bisect.bisect_right(self.runs, index, key=operator.itemgetter(0)) - 1
        return place >= 0 and self.runs[place][1] >= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __iter__(self) -> cabc.Iterator[int]:
        return itertools.chain.from_iterable(range(first, last + 1) for first, last in self.runs)

    def __or__(self, other: "Indexes") -> "Indexes":
        return _joined(sorted((*self.runs, *other.runs))) if other.runs else self

    def __sub__(self, other: "Indexes") -> "Indexes":
        return Indexes(tuple(_without(self.runs, other.runs))) if other.runs else self

    def __and__(self, other: "Indexes") -> "Indexes":
        return self - (self - other)

    def lowest(self, count: int) -> list[int]:
        """The first so many of them."""
        return list(itertools.islice(self, max(0, count)))


def _run_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _joined(runs: cabc.Iterable[Run]) -> Indexes:
    """Runs in order, which may overlap or touch."""
    joined: list[Run] = []
    for first, last in runs:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return Indexes(tuple(joined))


def _without(runs: tuple[Run, ...], holes: tuple[Run, ...]) -> cabc.Iterator[Run]:
    place = 0
    for first, last in runs:
        start = first
        while place < len(holes) and holes[place][1] < start:
            place += 1
        here = place
        while here < len(holes) and holes[here][0] <= last:
            if holes[here][0] > start:
                yield start, holes[here][0] - 1
            start = holes[here][1] + 1
            here += 1
        if start <= last:
            yield start, last


def of(indexes: cabc.Iterable[int]) -> Indexes:
    """The set of these."""
    return _joined((one, one) for one in sorted(set(indexes)))


def below(count: int) -> Indexes:
    """0 to `count` - 1."""
    return Indexes(((0, count - 1),)) if count > 0 else Indexes()


@functools.lru_cache(_TEXTS_REMEMBERED)
def parse(text: str) -> Indexes:
    """The set that such a text stands for.

    Raises:
        ValueError: it is no such text.

    """
    if not text:
        return Indexes()
    ends = [part.partition("-") for part in text.split(",")]
    return _joined(sorted((int(first), int(last or first)) for first, _, last in ends))


@dataclasses.dataclass(frozen=True)
class Counts:
    """A number for each index, 0 unless said otherwise.

    `runs` are (stop, number): the number holds from the stop before up to this one; the last one isn't 0.
    """

    runs: tuple[Run, ...] = ()

    @functools.cached_property
    def text(self) -> str:
        """`0*37,1,2*3`."""
        starts = (0, *(stop for stop, _ in self.runs))
        lengths = [(stop - start, number) for start, (stop, number) in zip(starts, self.runs, strict=False)]
        return ",".join(str(number) if length == 1 else f"{number}*{length}" for length, number in lengths)

    def __getitem__(self, index: int) -> int:
        place = bisect.bisect_right(self.runs, index, key=operator.itemgetter(0))
        return self.runs[place][1] if place < len(self.runs) else 0

    def over(self, limit: int) -> Indexes:
        """The indexes whose number is larger than that; `limit` is at least 0."""
        found = []
        start = 0
        for stop, number in self.runs:
            if number > limit:
                found.append((start, stop - 1))
            start = stop
        return _joined(found)

    def plus(self, more: cabc.Mapping[int, int]) -> "Counts":
        """The same with these added."""
        if not more:
            return self
        pieces: list[Run] = []
        start = 0
        changes = iter(sorted(more.items()))
        change = next(changes, None)
        for stop, number in (*self.runs, (max(more) + 1, 0)):
            while change is not None and change[0] < stop:
                index, added = change
                pieces += [(index, number), (index + 1, number + added)]
                start = index + 1
                change = next(changes, None)
            if stop > start:
                pieces.append((stop, number))
                start = stop
        return _compact(pieces)


def _compact(pieces: cabc.Iterable[Run]) -> Counts:
    """Runs by their stops, of which some may be empty or equal to their neighbour, or 0 at the end."""
    runs: list[Run] = []
    for stop, number in pieces:
        if runs and stop <= runs[-1][0]:
            continue
        if stop == 0:
            continue
        if runs and runs[-1][1] == number:
            runs[-1] = (stop, number)
        else:
            runs.append((stop, number))
    if runs and runs[-1][1] == 0:
        runs.pop()
    return Counts(tuple(runs))


@functools.lru_cache(_TEXTS_REMEMBERED)
def parse_counts(text: str) -> Counts:
    """The numbers that such a text stands for.

    Raises:
        ValueError: it is no such text.

    """
    pieces: list[Run] = []
    stop = 0
    for part in text.split(",") if text else ():
        number, _, length = part.partition("*")
        stop += int(length or 1)
        pieces.append((stop, int(number)))
    return _compact(pieces)
