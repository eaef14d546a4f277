"""Brakes on reclaims: for a job that is reclaimed faster than it makes progress, and for pools.

A reclaim costs no waiting, and the twentieth in a row no more than the first. But a job that is taken down
again and again before it has done anything pays for machines and gets nothing. So reclaims *without progress*
are counted while they follow each other; past `FREE` of them the next attempt waits, longer each time. An
attempt that ran for `PROGRESS`, or a step that moved since the reclaim before, sets the count back.

A pool (capacity, zone, instance type) that has just lost several machines, or most of those that workers had
there, is short of capacity: for as long as its capacity usually stays away, new workers would rather go
anywhere else. That is a preference, so it never keeps a worker from running; and it rests on what this
operator remembers of all jobs, so a restart may forget a part of it, which does no harm.
"""

import datetime as dt

from spottrain.api import conditions, status
from spottrain.plan import budget
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard

FREE = 20
PROGRESS = dt.timedelta(minutes=2)
FIRST_WAIT = 30.0

SEVERAL = 3
REST = dt.timedelta(minutes=10)
"""Of a pool of which nothing has been learnt."""
LONGEST_REST = dt.timedelta(hours=hazard.LONGEST_REST)
MOST_RESTING = 4


def count(draft: drafts.Draft) -> None:
    """The attempt under way is being reclaimed: note whether there was progress since the reclaim before."""
    now, storm = draft.status, draft.status.storm
    running = now.attempts[-1].running if now.attempts else None
    useful = running is not None and draft.snapshot.now - running >= PROGRESS
    moved = now.step is not None and (storm.step is None or now.step > storm.step)
    reclaims = 0 if useful or moved else storm.reclaims + 1
    draft.update(storm=status.Storm(reclaims, now.step))


def next_try(draft: drafts.Draft) -> dt.datetime | None:
    """When the attempt after a reclaim may start; None for at once, as it is but for a storm."""
    reclaims = draft.status.storm.reclaims
    if reclaims <= FREE:
        return None
    moment = budget.jittered(draft.snapshot, FIRST_WAIT, reclaims - FREE - 1)
    message = f"{sentence(draft.status)}: the next attempt waits"
    draft.say(conditions.RECLAIM_STORM, message)
    return moment


def sentence(now: status.Status) -> str:
    """What the storm is, for people."""
    return f"reclaimed {now.storm.reclaims} times in a row before it made progress"


def resting(snapshot: snap.Snapshot) -> tuple[snap.Pool, ...]:
    """The job's spot pools that have just lost several machines or most of them, the newest loss first."""
    newest = {
        pool: dt.datetime.fromtimestamp(3600 * record.since, dt.UTC)
        for pool, record in snapshot.known.items()
        if record.resting(snapshot.hours)
    }
    newest |= _braked(snapshot)
    spot = [pool for pool in newest if snapshot.offers(pool)]
    return tuple(sorted(spot, key=lambda pool: (newest[pool], pool.key), reverse=True)[:MOST_RESTING])


def beyond_the_brake(snapshot: snap.Snapshot) -> set[snap.Pool]:
    """Those that have just lost several machines: what they give they take back."""
    return set(_braked(snapshot))


def _braked(snapshot: snap.Snapshot) -> dict[snap.Pool, dt.datetime]:
    """The pools that have just lost several machines, and when the newest of them."""
    rests = {pool: _rest(snapshot, pool) for pool in {one.pool for one in snapshot.losses}}
    recent = [one for one in snapshot.losses if snapshot.now - one.time < rests[one.pool]]
    lost: dict[snap.Pool, list[snap.Loss]] = {}
    for one in recent:
        lost.setdefault(one.pool, []).append(one)
    return {
        pool: max(one.time for one in some)
        for pool, some in lost.items()
        if len({one.node for one in some}) >= SEVERAL
    }


def _rest(snapshot: snap.Snapshot, pool: snap.Pool) -> dt.timedelta:
    record = snapshot.known.get(pool)
    return REST if record is None else dt.timedelta(hours=record.rest)


def say_which_pools_rest(draft: drafts.Draft, pools: tuple[snap.Pool, ...]) -> None:
    """In one Event, when an attempt's workers are first made."""
    if not pools:
        return
    which = ", ".join(str(pool) for pool in pools)
    has = "has" if len(pools) == 1 else "have"
    message = f"{which} {has} just lost machines: other places are preferred for a while"
    draft.say(conditions.POOL_RESTS, message)
