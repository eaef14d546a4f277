"""Which jobs need a pass: keys with due times, each handed out once, never to two workers at once."""

import asyncio
import heapq
import random

Key = tuple[str, str]

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 60.0


class Queue:
    """Level-triggered: a key that is added twice before its turn is handed out once."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._busy: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: Key, after: float = 0.0) -> None:
        """Ask for a pass in `after` seconds; the sooner of two wishes counts."""
        due = asyncio.get_running_loop().time() + after
        known = self._due.get(key)
        if known is None or due < known:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            self._changed.set()

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
            now = asyncio.get_running_loop().time()
            key = self._pop(now)
            if key is not None:
                self._busy.add(key)
                return key
            waits = [due for due, one in self._heap if one not in self._busy]
            pause = max(0.0, min(waits) - now) if waits else None
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """Its pass has ended; a wish that came meanwhile is due now."""
        self._busy.discard(key)
        self._changed.set()

    def _pop(self, now: float) -> Key | None:
        kept: list[tuple[float, Key]] = []
        found: Key | None = None
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue  # a sooner wish replaced it
            if key in self._busy:
                kept.append((due, key))
                continue
            del self._due[key]
            found = key
            break
        for one in kept:
            heapq.heappush(self._heap, one)
        return found
