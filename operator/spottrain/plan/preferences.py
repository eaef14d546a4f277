"""Which pools new workers had best go to: by what has been learnt of them from all jobs."""

import random

from spottrain.api import clouds
from spottrain.plan import snapshot as snap
from spottrain.plan import storms
from spottrain.policy import hazard, pools

MOST_PREFERRED = 3


def preferred(snapshot: snap.Snapshot, attempt_id: str) -> tuple[snap.Pool, ...]:
    """A few spot pools, the best one first; none where there is no choice.

    The draw is the attempt's own: deciding again decides the same, and jobs don't all follow each other.
    """
    rested = set(storms.resting(snapshot))
    seen = {node.pool: hazard.Record() for node in snapshot.nodes.values()}
    found = {pool.key: pool for pool in {**seen, **snapshot.known} if _on_offer(pool)}
    if len(found) < 2:
        return ()
    records = {name: snapshot.known.get(pool, hazard.Record()) for name, pool in found.items()}
    order = pools.ranked(records, snapshot.hours, random.Random(attempt_id))  # noqa: S311 - chance, not secrecy
    return tuple(found[name] for name in order if found[name] not in rested)[:MOST_PREFERRED]


def _on_offer(pool: snap.Pool) -> bool:
    return pool.capacity is clouds.Capacity.SPOT and pool.named
