"""What a worker is asked to run on: one answer, from all that have a word in it.

The first of these that applies:

========  =========  ==============================================================
why       asked for  when
========  =========  ==============================================================
Floor     on-demand  it is one of `spot.onDemandFloor`
Deadline  on-demand  its attempt is to be there for `completeBy` (`plan/completion.py`)
Fallback  spot       spot had no room (`plan/fallback.py`): anywhere, rather on spot
Spot      only-spot  `spot.fallback` or `completeBy` says when to pay for more: not yet
Spot      spot       nothing says so: anywhere, rather on spot
========  =========  ==============================================================

It is answered when a pod is made and holds for that pod's life, so nobody who runs is moved for it. Only one
that has no node yet, and has found none, makes way for another of its index when more is allowed by now, or
`spot.pools` names other places.
"""

import collections.abc as cabc
import dataclasses
import enum

from spottrain.api import allowed, clouds, spec
from spottrain.plan import snapshot as snap

SHORTEST_WAIT = 10.0
"""Seconds from one pod of an index to the next where somebody deletes it before it has a node."""


class Why(enum.StrEnum):
    """Who has decided what a worker is asked to run on."""

    FLOOR = "Floor"
    DEADLINE = "Deadline"
    FALLBACK = "Fallback"
    SPOT = "Spot"


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is asked for, and why."""

    ask: clouds.Ask
    why: Why


def choose(snapshot: snap.Snapshot, *, floor: bool) -> Choice:
    """For a worker whose pod is made now; `floor`: it is one of those that the floor wants."""
    now = snapshot.status
    if floor:
        return Choice(clouds.Ask.ON_DEMAND, Why.FLOOR)
    if now.attempts and now.attempts[-1].on_demand:
        return Choice(clouds.Ask.ON_DEMAND, Why.DEADLINE)
    wishes = snapshot.valid_spec
    if wishes.spot.fallback is None and wishes.complete_by is None:
        return Choice(clouds.Ask.SPOT, Why.SPOT)
    if now.fallback is not None and now.fallback.allows(snapshot.now):
        return Choice(clouds.Ask.SPOT, Why.FALLBACK)
    return Choice(clouds.Ask.ONLY_SPOT, Why.SPOT)


def of_member(snapshot: snap.Snapshot, index: int) -> Choice:
    """For a gang's worker: the floor takes the lowest indexes."""
    return choose(snapshot, floor=index < snapshot.valid_spec.spot.floor)


def waits_in_vain(snapshot: snap.Snapshot, pod: snap.Pod) -> bool:
    """It finds no node, and one that is made now might."""
    return bool(pod.unschedulable) and pod.deleting is None and _asks_otherwise(snapshot, pod)


def withdrawn(pod: snap.Pod) -> bool:
    """It was deleted after it had found no node: it never ran, and its attempt goes on with another pod.

    Whoever is deleted without a node never gets one; a pod that merely vanished may have run. Who deleted it
    doesn't matter, and the spec may say by now again what it was made for.
    """
    return not pod.node and pod.deleting is not None and bool(pod.unschedulable)


def withdrawn_members(snapshot: snap.Snapshot) -> dict[int, snap.Pod]:
    """By index, a gang's pods of this attempt that were withdrawn and are gone."""
    attempt = snapshot.status.attempt_id
    last = {pod.index: pod for pod in snapshot.departed if pod.attempt_id == attempt}
    return {index: pod for index, pod in last.items() if index not in snapshot.current and withdrawn(pod)}


def pause(snapshot: snap.Snapshot, pod: snap.Pod) -> float:
    """Seconds until another is made for one that was deleted before it had a node.

    0 if it made way or had waited for long enough: what deletes every one at once gets few.
    """
    if _asks_otherwise(snapshot, pod):
        return 0.0
    return max(0.0, SHORTEST_WAIT - (snapshot.now - pod.created).total_seconds())


def _asks_otherwise(snapshot: snap.Snapshot, pod: snap.Pod) -> bool:
    """One that is made now would be asked to run on more, or in other pools."""
    if pod.node or isinstance(snapshot.spec, spec.InvalidSpecError):
        return False
    spot = snapshot.spec.spot
    if pod.ask is not clouds.Ask.ON_DEMAND and pod.pools != allowed.digest(spot.pools):
        return True
    floor = not snapshot.independent and pod.index < spot.floor
    return choose(snapshot, floor=floor).ask.exceeds(pod.ask)


def fallen_back(snapshot: snap.Snapshot, pods: cabc.Iterable[snap.Pod]) -> int:
    """How many of these are on on-demand nodes because spot had no room."""
    if isinstance(snapshot.spec, spec.InvalidSpecError) or snapshot.spec.spot.fallback is None:
        return 0
    return sum(one.ask is clouds.Ask.SPOT and snapshot.capacity_of(one).fills_floor for one in pods)
