"""Application failures: how long to wait before the next try, and when they are too many.

Reclaims never come in here: they cost no budget and no waiting, the twentieth no more than the first (what
brakes a job that gets nowhere is `storms.py`). A gang
that came to nothing before it ran, because it was not placed whole or a worker that waited for a node was
deleted, costs no budget either, but waiting: somebody may do it again at once, for ever.
"""

import datetime as dt
import hashlib

from spottrain.api import status
from spottrain.plan import snapshot as snap

_FAILURES = {status.Cause.FAILED, status.Cause.UNDETERMINED}
_NEVER_RAN = {status.Cause.UNPLACED, status.Cause.REPLACED}
FORGIVEN_AFTER = dt.timedelta(minutes=10)
PLACEMENT_BACKOFF = 30.0


def failures_in_a_row(attempts: tuple[status.Attempt, ...]) -> int:
    """Failures since an attempt last ran for ten minutes; reclaims in between neither count nor forgive."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.running and attempt.end and attempt.end - attempt.running >= FORGIVEN_AFTER:
            break
        count += attempt.cause in _FAILURES
    return count


def next_try(snapshot: snap.Snapshot, attempts: tuple[status.Attempt, ...]) -> dt.datetime | None:
    """When the attempt that follows one more failure may start; None for at once.

    The first failure in a row is met at once: a gang's may be the shadow of a lost node. From the second on
    it is 10 s doubling to 10 min, between half and all of it, and not before the one under way is settled, so
    that a faulty program never spins.
    """
    before = failures_in_a_row(attempts)
    if before == 0:
        return None
    settings = snapshot.settings
    moment = jittered(snapshot, settings.backoff, before - 1)
    unsettled = [one for one in attempts if one.cause is status.Cause.UNDETERMINED]
    if unsettled:
        moment = max(moment, unsettled[-1].start + dt.timedelta(seconds=settings.settlement))
    return moment


def next_placement(
    snapshot: snap.Snapshot, attempts: tuple[status.Attempt, ...], cause: status.Cause
) -> dt.datetime | None:
    """When a gang that never ran tries again: after 30 s doubling to 10 min, between half and all of it.

    At once, if a worker that waited was deleted, for the first time in a row: it may have been a person. Two
    gangs that held half of the room each must not come back at the same moment.
    """
    count = 0
    for attempt in reversed(attempts):
        if attempt.cause not in _NEVER_RAN or attempt.running:
            break
        count += 1
    if cause is status.Cause.REPLACED:
        if count == 0:
            return None
        count -= 1
    return jittered(snapshot, PLACEMENT_BACKOFF, count)


def jittered(snapshot: snap.Snapshot, first: float, doublings: int) -> dt.datetime:
    """`first` seconds doubled so often, at most ten minutes, and of that between half and all, from now on.

    Chance comes from the random ID that the next attempt will have; the moment goes into the status, so that
    a restart of the operator neither forgets nor lengthens the wait.
    """
    delay = min(first * 2.0 ** min(doublings, 30), snapshot.settings.backoff_limit)
    digest = hashlib.sha256(snapshot.fresh_id.encode()).digest()
    share = 0.5 + int.from_bytes(digest[:4]) / 2**33
    return snapshot.now + dt.timedelta(seconds=delay * share)
