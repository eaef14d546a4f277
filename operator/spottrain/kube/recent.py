"""Small memories that must not grow for ever."""

import asyncio
import collections
import collections.abc as cabc
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """The newest `most` values by key; what was set longest ago is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: collections.OrderedDict[str, V] = collections.OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> V | None:
        """The value, or None."""
        return self._values.get(key)

    def set(self, key: str, value: V) -> None:
        """Remember it as the newest."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def forget(self, key: str) -> None:
        """No such key is remembered any more."""
        self._values.pop(key, None)


class Pace:
    """Holds back what may wait: wishes for a key are granted `seconds` after the first of them.

    They stay granted until it is said that what was wished for is done, or is no longer wanted. `stretch`
    is asked at a first wish by how much longer it has to wait.
    """

    def __init__(
        self, seconds: float, stretch: cabc.Callable[[], float] = lambda: 1.0, most: int = 4096
    ) -> None:
        self._seconds = seconds
        self._stretch = stretch
        self._due: Recent[float] = Recent(most)

    def wait(self, key: str) -> float:
        """Seconds until it may be done; 0 means now."""
        now = asyncio.get_running_loop().time()
        due = self._due.get(key)
        if due is None:
            due = now + self._seconds * self._stretch()
            self._due.set(key, due)
        return max(0.0, due - now)

    def done(self, key: str) -> None:
        """Nothing waits any more: the next wish is a first one."""
        self._due.forget(key)
