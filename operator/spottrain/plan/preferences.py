"""Which pools new workers had best go to: by what has been learnt of them from all jobs."""

import collections
import random

from spottrain.api import allowed, clouds
from spottrain.plan import snapshot as snap
from spottrain.plan import storms
from spottrain.policy import hazard, pools

MOST_PREFERRED = 3


def preferred(snapshot: snap.Snapshot, attempt_id: str) -> tuple[snap.Pool, ...]:
    """A few spot pools, the best one first, for one attempt; see Choice."""
    return Choice(snapshot).preferred(attempt_id)


def home(snapshot: snap.Snapshot, preferred: tuple[snap.Pool, ...]) -> str:
    """The zone in which the attempt keeps together: where most of it is, or else is sent; empty: unknown.

    A pod affinity would say the same, and the scheduler then compare each pod with all others of the cluster.
    """
    nodes = (snapshot.nodes.get(pod.node) for pod in snapshot.current.values())
    zones = collections.Counter(node.zone for node in nodes if node and node.zone).most_common()
    if zones:
        return min(zone for zone, count in zones if count == zones[0][1])
    return next((pool.zone for pool in preferred), "")


def on_offer(snapshot: snap.Snapshot) -> set[snap.Pool]:
    """The job's spot pools that there are: nodes were seen, or something is known of them."""
    seen = {node.pool for node in snapshot.nodes.values()}
    return {pool for pool in seen | snapshot.known.keys() if snapshot.offers(pool)}


def never_seen(snapshot: snap.Snapshot) -> set[snap.Pool]:
    """What `spot.pools` allows and nobody has met yet: an autoscaler may make it."""
    seen = on_offer(snapshot)
    entries = allowed.unseen(snapshot.pools, ((pool.zone, pool.instance_type) for pool in seen))
    return {snap.Pool(clouds.Capacity.SPOT, *entry.place) for entry in entries}


class Choice:
    """The spot pools that there are to choose from, for all workers that are made in a pass."""

    def __init__(self, snapshot: snap.Snapshot) -> None:
        choice = sorted(on_offer(snapshot) | never_seen(snapshot), key=lambda pool: pool.key)
        self._found = {pool.key: pool for pool in choice}
        self._records = {
            name: snapshot.known.get(pool, hazard.Record()) for name, pool in self._found.items()
        }
        self._weights = {name: snapshot.weight(pool) for name, pool in self._found.items()}
        self._resting = set(storms.resting(snapshot))
        self._hours = snapshot.hours

    def preferred(self, attempt_id: str) -> tuple[snap.Pool, ...]:
        """A few of them, the best one first; none where there is no choice.

        The draw is the attempt's own: deciding again decides the same, and jobs don't all follow each other.
        """
        if len(self._found) < 2:
            return ()
        chance = random.Random(attempt_id)  # noqa: S311 - not secrecy
        order = pools.ranked(self._records, self._hours, chance, self._weights)
        return tuple(self._found[name] for name in order if self._found[name] not in self._resting)[
            :MOST_PREFERRED
        ]
