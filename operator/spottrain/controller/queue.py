"""Which jobs need a pass: keys with due times, each handed out once, never to two workers at once."""

import asyncio
import heapq
import itertools
import math
import random

Key = tuple[str, str]

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 60.0
PACE = 0.1
"""Seconds between the end of a job's pass and the next one that news of its pods may cause. A gang that ends
and comes back sends hundreds of events; one pass for many of them writes less and decides the same."""
LONGEST_TURN = 30.0
"""Seconds that a due key may be passed over by those in a hurry. A third of that made 50 gangs, hit at once
on a small control plane, wait for each other: the median one was whole after 17 s instead of 12."""
_REMEMBERED = 4096


class Queue:
    """Level-triggered: a key that is added twice before its turn is handed out once.

    Of the keys that are due, those that were told to hurry come first, in the order in which they began to:
    a gang that is being replaced is brought to its end before the next one is, and before another is begun,
    so that most are whole again sooner and none later. Keys that have been due for `LONGEST_TURN`, and for
    longer than the one in a hurry, come before it: a fresh loss waits no longer than that, and the passes of
    what was due before it, however many gangs are being replaced.
    """

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._hurried: list[tuple[float, Key]] = []
        self._others: list[tuple[float, Key]] = []
        self._in_turn: list[tuple[int, float, Key]] = []
        """Of those in a hurry, the ones that are due, with their turn."""
        self._hurrying: dict[Key, int] = {}
        self._turns = itertools.count()
        self._busy: set[Key] = set()
        self._ended: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due)

    def due(self) -> int:
        """How many keys wait for their turn."""
        now = _now()
        return sum(moment <= now for moment in self._due.values())

    def add(self, key: Key, after: float = 0.0) -> None:
        """Ask for a pass in `after` seconds; the sooner of two wishes counts."""
        due = _now() + after
        known = self._due.get(key)
        if known is None or due < known:
            self._due[key] = due
            self._push(key)

    def soon(self, key: Key) -> None:
        """Ask for a pass because something was seen: at once, unless the last one has only just ended."""
        ended = self._ended.get(key)
        self.add(key, 0.0 if ended is None else max(0.0, ended + PACE - _now()))

    def hurry(self, key: Key, wanted: bool) -> None:  # noqa: FBT001 - a switch
        """Hand it out before others that are due, from the next wish on, or no longer."""
        if not wanted:
            self._hurrying.pop(key, None)
        elif key not in self._hurrying:
            self._hurrying[key] = next(self._turns)

    def fail(self, key: Key, at_least: float = 0.0) -> float:
        """The pass failed: ask for another after a doubling, jittered pause, which is returned.

        `at_least` is how long the server itself wants us to wait, in seconds.
        """
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(FIRST_PAUSE * 2.0 ** (count - 1), LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
        pause = max(pause, at_least)
        self.add(key, pause)
        return pause

    def succeed(self, key: Key) -> None:
        """The next failure's pause is short again."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """The next key that is due; `done` must follow."""
        while True:
            self._changed.clear()
            now = _now()
            key = self._pop(now)
            if key is not None:
                self._busy.add(key)
                return key
            waits = [heap[0][0] for heap in (self._hurried, self._others) if heap]
            pause = max(0.0, min(waits) - now) if waits else None
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """Its pass has ended; a wish that came meanwhile counts from now on."""
        self._busy.discard(key)
        self._ended[key] = _now()
        if len(self._ended) > _REMEMBERED:
            self._ended = {one: end for one, end in self._ended.items() if end + PACE > _now()}
        if key in self._due:
            self._push(key)

    def _push(self, key: Key) -> None:
        """A busy key's wish waits for `done`."""
        if key not in self._busy:
            heap = self._hurried if key in self._hurrying else self._others
            heapq.heappush(heap, (self._due[key], key))
            self._changed.set()

    def _pop(self, now: float) -> Key | None:
        while (due := self._first(self._hurried)) <= now:
            _, key = heapq.heappop(self._hurried)
            heapq.heappush(self._in_turn, (self._hurrying.get(key, -1), due, key))
        while self._in_turn and self._is_stale(*self._in_turn[0][1:]):
            heapq.heappop(self._in_turn)
        other = self._first(self._others)
        waited_too_long = other + LONGEST_TURN <= now
        if self._in_turn and not (waited_too_long and other <= self._in_turn[0][1]):
            _, _, key = heapq.heappop(self._in_turn)
        elif other <= now:
            _, key = heapq.heappop(self._others)
        else:
            return None
        del self._due[key]
        return key

    def _first(self, heap: list[tuple[float, Key]]) -> float:
        """When the first of these keys is due, past those whose wish a sooner one has replaced."""
        while heap and self._is_stale(*heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def _is_stale(self, due: float, key: Key) -> bool:
        return key in self._busy or self._due.get(key) != due


def _now() -> float:
    return asyncio.get_running_loop().time()
