"""The pods of an Independent job: ending those that were replaced, making as many as may run, keeping few."""

import dataclasses
import datetime as dt
import hashlib

from spottrain.api import clouds, indexes
from spottrain.api import shards as kept
from spottrain.plan import actions, capacity, faults, grace, pods, preferences, storms
from spottrain.plan import draft as drafts
from spottrain.plan import shards as shard
from spottrain.plan import snapshot as snap

MOST_MADE = 50
"""Pods that one pass makes: it takes a second or two, and then looks at everything again. A notice waits no
longer than that."""
KEPT = 50
"""Ended pods that stay for `kubectl logs`: so many that failed, and so many that finished."""


def end_older(draft: drafts.Draft) -> None:
    """End what was replaced, and what still runs of an index that has ended."""
    for pod in shard.places(draft).older:
        if not pod.ended:
            pods.end(draft, pod, None if pod.go else pods.UNRELEASED_GRACE)


def say_go(draft: drafts.Draft) -> None:
    """Let an index restore once its predecessors have ended: no save of theirs is under way any more."""
    places = shard.places(draft)
    lingering = places.lingering
    for index, pod in places.live.items():
        if pod.go != pod.attempt_id and index not in lingering:
            draft.act(actions.SayGo(pod.name, pod.attempt_id))


def watch(draft: drafts.Draft) -> None:
    """Be back when a silent node's time is over, or when an index begins again."""
    pods.watch_machines(draft)
    shards = draft.status.shards or kept.Shards()
    for one in shards.retries:
        if one.time > draft.snapshot.now:
            draft.wake_at(one.time)


def end_of(pod: snap.Pod) -> tuple[dt.datetime, int]:
    """When the pod ended, as far as is known, and its index: an order of ended pods."""
    finished = pod.exit.finished if pod.exit else None
    return finished or pod.created, pod.index


def tidy(draft: drafts.Draft) -> None:
    """Delete ended pods whose end is recorded, all but the newest; of an index's failed ones the last."""
    ended = [pod for pod in shard.places(draft).older if pod.ended and pod.deleting is None]
    failed: dict[int, snap.Pod] = {}
    for pod in sorted((one for one in ended if one.phase == "Failed"), key=end_of):
        failed[pod.index] = pod
    finished = [pod for pod in ended if pod.phase == "Succeeded"]
    stay = {pod.uid for some in (failed.values(), finished) for pod in sorted(some, key=end_of)[-KEPT:]}
    for pod in ended:
        if pod.uid not in stay:
            draft.act(actions.DeletePod(pod.name, pod.uid))


def make(draft: drafts.Draft) -> None:
    """Create the next indexes: first those that begin again, each when its predecessor's place is free.

    While creates are refused, as by a quota, it is asked again for no more than may have room by now.
    """
    snapshot, shards, places = draft.snapshot, draft.status.shards or kept.Shards(), shard.places(draft)
    held = {pod.index for pod in places.older if not pod.ended and not snapshot.leaving(pod)}
    held = {index for index in held if index not in shards.decided}
    room = snapshot.valid_spec.at_once - len(places.live) - len(held)
    taken = indexes.of(held | places.live.keys()) | shards.decided | shards.waiting(snapshot.now)
    ready = indexes.below(snapshot.valid_spec.workers) - taken
    again = ready & shards.restarts.over(0)
    wanted = again.lowest(room)
    wanted += (ready - again).lowest(room - len(wanted))
    for overlay in _overlays(draft, places, wanted[:MOST_MADE]):
        draft.act(actions.CreatePod(overlay))
    if len(wanted) > MOST_MADE and snapshot.refusal is None:
        draft.wake_at(snapshot.now)


def _overlays(draft: drafts.Draft, places: shard.Places, wanted: list[int]) -> list[actions.Overlay]:
    """What the next pods of these indexes get; an attempt ID is drawn for each create, for that one alone."""
    snapshot, shards = draft.snapshot, draft.status.shards or kept.Shards()
    if not wanted:
        return []
    lingering = places.lingering
    for_floor, choice = _missing_from_floor(snapshot, places), preferences.Choice(snapshot)
    common = actions.Overlay(
        index=0,
        attempt=0,
        attempt_id="",
        ask=clouds.Ask.SPOT,
        grace=grace.grace(snapshot).seconds,
        avoid=tuple(sorted({*filter(snapshot.shunned, snapshot.nodes), *faults.avoided(snapshot)})),
        resting=storms.resting(snapshot),
        providers=snapshot.providers,
    )
    return [
        dataclasses.replace(
            common,
            index=index,
            attempt=shards.attempt(index),
            attempt_id=(drawn := _draw_id(snapshot, index, shards.attempt(index))),
            preferred=choice.preferred(drawn),
            ask=capacity.choose(snapshot, floor=number < for_floor).ask,
            go=index not in lingering,
        )
        for number, index in enumerate(wanted)
    ]


def _draw_id(snapshot: snap.Snapshot, index: int, attempt: int) -> str:
    """Random, since the pass's own ID is; one for each index of the pass."""
    return hashlib.sha256(f"{snapshot.fresh_id}-{index}-{attempt}".encode()).hexdigest()[:16]


def on_floor(pod: snap.Pod, snapshot: snap.Snapshot) -> bool:
    """It fills the floor, or will when it has a node."""
    node = snapshot.nodes.get(pod.node)
    return pod.ask is clouds.Ask.ON_DEMAND if node is None else node.capacity.fills_floor


def _missing_from_floor(snapshot: snap.Snapshot, places: shard.Places) -> int:
    """How many of the next pods have to be on on-demand nodes: the floor is a part of those that run."""
    there = sum(on_floor(pod, snapshot) for pod in places.live.values())
    return max(0, snapshot.valid_spec.spot.floor - there)
