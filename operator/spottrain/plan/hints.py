"""A node may be taken soon: those who save together are asked for an early checkpoint, nobody is stopped."""

import collections.abc as cabc
import datetime as dt

from spottrain.api import conditions
from spottrain.plan import actions
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

SELDOM = dt.timedelta(minutes=5)
"""From one hint that is passed on to the next: where a cloud runs short, many machines get one each."""


def pass_on(draft: drafts.Draft, pods: cabc.Iterable[snap.Pod]) -> None:
    """Ask these workers, who save together, if a node of theirs has a hint that is younger than they are."""
    running = [pod for pod in pods if pod.running and pod.deleting is None]
    moment = _moment(draft.snapshot, running)
    if moment is None:
        return
    unasked = [pod for pod in running if pod.save_asked != moment]
    for pod in unasked:
        draft.act(actions.AskToSave(pod.name, moment))
    if unasked and len(unasked) == len(running):
        nodes = sorted({pod.node for pod in running if _hint(draft.snapshot, pod) == moment})
        words = f"{', '.join(nodes) or 'a node'} may be taken soon"
        draft.say(conditions.RECLAIM_HINT, f"{words}: a checkpoint is asked for, and nobody is stopped")


def _moment(snapshot: snap.Snapshot, pods: list[snap.Pod]) -> dt.datetime | None:
    """Of the hint that they are to be asked for; the last one's, until it is long enough ago."""
    asked = max((pod.save_asked for pod in pods if pod.save_asked is not None), default=None)
    newest = max((one for pod in pods if (one := _hint(snapshot, pod)) is not None), default=None)
    if asked is not None and (newest is None or newest - asked < SELDOM):
        return asked
    return newest


def _hint(snapshot: snap.Snapshot, pod: snap.Pod) -> dt.datetime | None:
    """A worker that was made after the hint has begun from a checkpoint just now."""
    node = snapshot.nodes.get(pod.node)
    if node is None or node.hint is None or node.hint < pod.created:
        return None
    return node.hint
