"""A store that is asked again while it can't be reached: how a worker's beginning outlasts a short outage.

The clients' own tries may be over after a second, and a worker that ends before its program began counts as
a failure of the job. Later there is no need: a save that could not be stored is tried again by whoever saves.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from spottrain import errors
from spottrain.checkpoint.store import Entry, Put, Store
from spottrain.train import settings
from spottrain.train.clock import Clock
from spottrain.train.log import Log

SECONDS, PAUSE = 60.0, 1.0
"""For how long each thing is asked for again, and the seconds between two tries."""

_T = TypeVar("_T")


class Patient:
    """`place`, each of whose answers may take a minute. Only StoreUnavailable is waited out.

    It is raised after that, or as soon as `stopped` says so. Everything a Store does may be done twice:
    of `put_if_absent` that says its docstring.
    """

    def __init__(self, place: Store, clock: Clock, log: Log, stopped: Callable[[], bool]) -> None:
        self._place = place
        self._clock = clock
        self._log = log
        self._stopped = stopped

    @property
    def uri(self) -> str:
        """See Store."""
        return self._place.uri

    def list(self, prefix: str) -> "list[Entry]":
        """See Store."""
        return self._ask(lambda: self._place.list(prefix))

    def get(self, key: str) -> bytes | None:
        """See Store."""
        return self._ask(lambda: self._place.get(key))

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store."""
        return self._ask(lambda: self._place.get_file(key, target))

    def head(self, key: str) -> int | None:
        """See Store."""
        return self._ask(lambda: self._place.head(key))

    def put_file(self, key: str, source: Path) -> None:
        """See Store."""
        self._ask(lambda: self._place.put_file(key, source))

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        return self._ask(lambda: self._place.put_if_absent(key, data))

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        those = list(keys)
        self._ask(lambda: self._place.delete(those))

    def _ask(self, once: Callable[[], _T]) -> _T:
        begun, told = self._clock.monotonic(), False
        while True:
            try:
                return once()
            except errors.StoreUnavailable as error:
                if self._stopped() or self._clock.monotonic() >= begun + SECONDS:
                    raise
                if not told:
                    self._log.warning("store-away", f"{error}; trying again for up to {SECONDS:.0f} s")
                    told = True
            self._clock.sleep(PAUSE)


def beginning(
    place: Store, told: settings.Settings, clock: Clock, log: Log, stopped: Callable[[], bool]
) -> Store:
    """`place` as a beginning asks it: patiently in a pod. Elsewhere somebody sees an error at once."""
    return Patient(place, clock, log, stopped) if told.in_cluster else place
