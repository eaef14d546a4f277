"""Something to be done once for each thing that is wanted, and tried again until it is. Time is given."""

import collections.abc as cabc
import logging
from typing import Generic, TypeVar

from spottrain.agent import cluster

LOG = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 2.0


class Duty(Generic[T]):
    """`act` is called with what is wanted.

    Its faults are logged, each kind once in a row: a node that is gone for hours fills no log.
    """

    def __init__(self, name: str, act: cabc.Callable[[T], None]) -> None:
        self._name = name
        self._act = act
        self._done: tuple[T] | None = None
        self._at = 0.0
        """When it was done, or is to be tried again after a fault."""
        self._faults = 0
        self._fault = ""

    def is_done(self, wanted: T) -> bool:
        """This was done, and nothing else since."""
        return self._done == (wanted,)

    def see_to(self, wanted: T, now: float, again: float | None = None) -> None:
        """Do it if it is to be done at this moment (monotonic seconds).

        With `again` it is done anew after so many seconds, though nothing has changed.

        Raises:
            cluster.UnreachableError: there is no use in trying anything else in this moment.

        """
        if self.is_done(wanted):
            if again is None or now < self._at + again:
                return
        elif self._faults and now < self._at:
            return
        try:
            self._act(wanted)
        except cluster.ClusterError as error:
            self._failed(error, now)
            if isinstance(error, cluster.UnreachableError):
                raise
        else:
            self._done, self._faults, self._fault, self._at = (wanted,), 0, "", now

    def _failed(self, error: cluster.ClusterError, now: float) -> None:
        self._done = None
        pause: float = FIRST_PAUSE * 2 ** min(self._faults, 10)
        self._faults += 1
        self._at = now + min(pause, LONGEST_PAUSE)
        if str(error) != self._fault:
            LOG.warning("%s: %s; trying again", self._name, error)
        self._fault = str(error)
