"""Machines that were lately taken away from any job: what the brake on pools is made of."""

import datetime as dt

from spottrain.api import clouds, status
from spottrain.plan import loss
from spottrain.plan import snapshot as snap

KEPT = 256


class Losses:
    """The newest losses, each machine once. Filled from the last reclaim that each job's status names.

    So a new process learns again what the statuses still say, and forgets the rest.
    """

    def __init__(self) -> None:
        self._newest: dict[str, snap.Loss] = {}

    def note(self, reclaim: status.Reclaim | None) -> None:
        """Take in a job's last reclaim; saying it again changes nothing. A drill takes no machine."""
        if reclaim is None or not reclaim.node or reclaim.cause == loss.DRILL:
            return
        known = self._newest.get(reclaim.node)
        if known is not None and known.time >= reclaim.time:
            return
        pool = snap.Pool(_capacity(reclaim.capacity), reclaim.zone, reclaim.instance_type)
        self._newest[reclaim.node] = snap.Loss(pool, reclaim.node, reclaim.time)
        if len(self._newest) > KEPT:
            del self._newest[min(self._newest.values(), key=lambda one: one.time).node]

    def since(self, moment: dt.datetime) -> tuple[snap.Loss, ...]:
        """Those after that moment."""
        return tuple(one for one in self._newest.values() if one.time > moment)


def _capacity(text: str) -> clouds.Capacity:
    try:
        return clouds.Capacity(text)
    except ValueError:
        return clouds.Capacity.UNKNOWN
