"""`spec.spot.keepTraining`: after a notice a gang trains on while the next one's machines are got.

The next attempt is recorded at once, as after every notice, and with it the worker of the machine that goes
is asked for elsewhere. Only the old workers' end waits, so that what is trained until then is saved too.
"""

import collections.abc as cabc
import datetime as dt

from spottrain.api import conditions, duration, spec, status
from spottrain.plan import actions, grace, loss
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

SAVES = 2.0
"""So many times the last save's duration must fit into what is left: all machines upload at once, and a stop
may come in the middle of another save."""
BESIDE = 5.0
"""Seconds beside the save: until SIGTERM has reached the last rank, the step under way has ended and all have
agreed on the last one."""

_NOTICES = {loss.NOTICE, loss.DRILL}


def see_to(draft: drafts.Draft) -> cabc.Set[str]:
    """The names of the older workers that are left to train; each is told until when."""
    pods = _trainees(draft.snapshot)
    moment = _until(draft.snapshot, pods)
    if moment is None or moment <= draft.snapshot.now:
        return set()
    draft.wake_at(moment)
    untold = [pod for pod in pods if pod.train_until != moment]
    for pod in untold:
        draft.act(actions.TrainUntil(pod.name, moment))
    if len(untold) == len(pods):
        words = f"attempt {pods[0].attempt} trains on until {duration.format_time(moment)}, and saves then"
        draft.say(conditions.TRAINS_ON, words)
    return {pod.name for pod in pods}


def _trainees(snapshot: snap.Snapshot) -> list[snap.Pod]:
    """The whole gang of the attempt that a notice ended, if it still trains; one that isn't whole can't."""
    now = snapshot.status
    last = now.attempts[-1] if now.attempts else None
    if last is None or last.cause is not status.Cause.RECLAIMED or last.reason not in _NOTICES:
        return []
    pods = [pod for pod in snapshot.older if pod.attempt == now.attempt - 1]
    trains = len(pods) == snapshot.workers and all(_trains(pod, snapshot) for pod in pods)
    return pods if trains else []


def _trains(pod: snap.Pod, snapshot: snap.Snapshot) -> bool:
    fate = loss.classify(pod, snapshot).fate
    return bool(pod.go) and pod.running and fate in {loss.Fate.ALIVE, loss.Fate.DOOMED}


def _until(snapshot: snap.Snapshot, pods: list[snap.Pod]) -> dt.datetime | None:
    """When the first machine's end leaves just enough; None without a deadline, or a save to go by."""
    wishes, saved = snapshot.spec, snapshot.status.checkpoint
    if isinstance(wishes, spec.InvalidSpecError) or not wishes.spot.keep_training:
        return None
    nodes = {snapshot.nodes[pod.node] for pod in pods if pod.node in snapshot.nodes}
    deadlines = [node.deadline for node in nodes if node.notice]
    if not deadlines or saved is None or saved.save_seconds is None:
        return None
    needed = SAVES * saved.save_seconds + BESIDE + grace.LEAST_MARGIN + grace.beyond(snapshot)
    known = [one for one in deadlines if one is not None]
    if len(known) < len(deadlines):
        return None
    return (min(known) - dt.timedelta(seconds=needed)).replace(microsecond=0)
