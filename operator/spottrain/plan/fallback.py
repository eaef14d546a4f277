"""`spot.fallback`: workers wait for spot alone; where it has no room they may go to on-demand for a while.

::

    spot alone ──one finds no spot node for `after`, or every pool is beyond the brake──► anywhere, for `for`
        ▲                                                                                        │
        └── whoever is made anew, at a restart that has another reason ◄── the time is over ◄────┘

It opens for the whole job: all that wait may go, one by one, and those that are made meanwhile need not wait
again. Spot is still preferred, so nobody pays for on-demand where spot has room, or waits for it where that
is out as well. Nobody who runs is ever moved for it.

Capacity that has stayed away for hours mostly goes on to: if spot has no room again before it has held all
workers once, the next fallback is twice as long, up to `LONGEST` times the first.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt

from spottrain.api import clouds, conditions, duration, spec, status
from spottrain.plan import capacity, preferences, storms
from spottrain.plan import draft as drafts
from spottrain.plan import shards as shard
from spottrain.plan import snapshot as snap

LONGEST = 4


def go_to_on_demand_while_spot_has_no_room(draft: drafts.Draft) -> bool:
    """A worker has waited for a spot node for `after`, or every pool takes back what it gives."""
    wishes, now = draft.snapshot.valid_spec.spot.fallback, draft.status.fallback
    if wishes is None:
        draft.update(fallback=None)
        return False
    if now is not None and now.until is not None:
        _go_on(draft, now, now.until)
        return False
    if draft.status.attempts and draft.status.attempts[-1].on_demand:
        return False  # for its deadline: of spot that says nothing
    why = _why(draft, wishes)
    if why:
        _begin(draft, wishes, why)
        return True
    if now is not None and _all_have_a_place(draft) and not _fallen_back(draft):
        draft.update(fallback=None)
        draft.say(conditions.SPOT_FOUND, "all workers have found a place without the fallback again")
    return False


def _go_on(draft: drafts.Draft, now: status.Fallback, until: dt.datetime) -> None:
    if now.allows(draft.snapshot.now):
        draft.wake_at(until)
        return
    draft.update(fallback=dataclasses.replace(now, until=None))
    draft.say(conditions.FALLBACK_OVER, _over(_fallen_back(draft)))


def _begin(draft: drafts.Draft, wishes: spec.Fallback, why: str) -> None:
    times = 1 + (draft.status.fallback.times if draft.status.fallback else 0)
    length = wishes.length * min(2.0 ** min(times - 1, 30), LONGEST)
    until = draft.snapshot.now + dt.timedelta(seconds=length)
    draft.update(fallback=status.Fallback(draft.snapshot.now, until, times))
    draft.say(conditions.FELL_BACK, f"{why}: {_allowed(until)}")


def _why(draft: drafts.Draft, wishes: spec.Fallback) -> str:
    """Why spot alone won't do, in a sentence; empty while it does."""
    snapshot = draft.snapshot
    moments = _ends_of_waiting(wishes, _live(draft))
    due = [index for index, moment in moments.items() if moment <= snapshot.now]
    if due:
        who = f"worker {due[0]} has" if len(due) == 1 else f"{len(due)} workers have"
        return f"{who} found no spot node for {duration.format_seconds(wishes.after)}"
    if moments:
        draft.wake_at(min(moments.values()))
    if _all_rest(snapshot) and not _all_have_a_place(draft):
        return "every spot pool that is known has just lost machines"
    return ""


def _all_rest(snapshot: snap.Snapshot) -> bool:
    """No pool is left to try, as one is that was never seen. If its name is misspelt, `after` ends that."""
    pools = preferences.on_offer(snapshot)
    resting = bool(pools) and pools <= storms.beyond_the_brake(snapshot)
    return resting and not preferences.never_seen(snapshot)


def _ends_of_waiting(wishes: spec.Fallback, pods: cabc.Iterable[snap.Pod]) -> dict[int, dt.datetime]:
    """By index, when those that find no spot node will have waited for long enough."""
    waiting = [pod for pod in pods if pod.unschedulable and pod.ask is clouds.Ask.ONLY_SPOT]
    return {pod.index: pod.created + dt.timedelta(seconds=wishes.after) for pod in waiting}


def ahead(snapshot: snap.Snapshot, pods: cabc.Iterable[snap.Pod]) -> str:
    """When it will come to a fallback if these go on waiting, in a sentence; empty if it won't."""
    if isinstance(snapshot.spec, spec.InvalidSpecError) or snapshot.spec.spot.fallback is None:
        return ""
    moments = _ends_of_waiting(snapshot.spec.spot.fallback, pods)
    if not moments:
        return ""
    return f"from {duration.format_time(min(moments.values()))} on they may go to on-demand nodes too"


def _live(draft: drafts.Draft) -> cabc.Collection[snap.Pod]:
    if draft.snapshot.independent:
        return shard.places(draft).live.values()
    return draft.snapshot.current.values()


def _all_have_a_place(draft: drafts.Draft) -> bool:
    wanted = shard.wanted(draft) if draft.snapshot.independent else draft.snapshot.workers
    return sum(bool(pod.node) for pod in _live(draft)) >= wanted


def _fallen_back(draft: drafts.Draft) -> int:
    return capacity.fallen_back(draft.snapshot, _live(draft))


def describe(draft: drafts.Draft) -> None:
    """Condition SpotSufficient, once there was a fallback."""
    now = draft.status.fallback
    if now is None:
        draft.mended(conditions.SPOT_SUFFICIENT, conditions.SPOT_FOUND, "no worker needs the fallback")
        return
    count = draft.status.workers.fallback
    reason, text = conditions.FALLBACK_OVER, _over(count)
    if now.until is not None:
        reason, text = conditions.FELL_BACK, f"{_allowed(now.until)}; {count} are there"
    draft.condition(conditions.SPOT_SUFFICIENT, False, reason, text)


def _allowed(until: dt.datetime) -> str:
    return f"until {duration.format_time(until)} workers may go to on-demand nodes"


def _over(count: int) -> str:
    stay = f"; {count} stay on on-demand nodes until their next restart" if count else ""
    return f"the time of the fallback is over: new workers wait for spot nodes{stay}"
