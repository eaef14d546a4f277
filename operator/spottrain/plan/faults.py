"""Machines on which a job fails again and again, such as one with a broken GPU: its next workers avoid them.

A failure is held against a node only where it is clear which one it was: when all the members that failed
first, in the same second, were on that node. A program that can't start fails everywhere at once, and the
peers of a dead worker fail a little later.

Two failures on one machine, and the job's workers must not go there again (a required affinity, so that an
autoscaler finds another), as long as there is, or may come, another machine of its kind. If every one of that
kind has failed twice, it is not the machines: none is avoided. If no other place is found within
`placementTimeout`, all is forgiven. An independent index that finishes on a machine clears it: a few bad
pieces of work among thousands say nothing against the machines that they ran on. A machine that comes back
under the same name is another one.
"""

import collections.abc as cabc
import datetime as dt

from spottrain.api import clouds, conditions, status
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

TWICE = 2
MOST_AVOIDED = 8


def blame(draft: drafts.Draft, failed: cabc.Iterable[snap.Pod]) -> None:
    """These workers ended badly by themselves, which is counted as one failure: hold it against a machine."""
    node = _culprit(draft.snapshot, tuple(failed))
    if node is None:
        return
    known = {one.uid: one for one in draft.status.failed_nodes if _same_machine(one, draft.snapshot)}
    before = known.pop(node.uid, None)
    times = 1 + (before.failures if before else 0)
    new = status.FailedNode(node.name, node.uid, times, draft.snapshot.now)
    draft.update(failed_nodes=(*known.values(), new)[-status.FAILED_NODES_KEPT :])
    if times == TWICE:
        message = f"{times} failures on node {node.name}: the next workers of this job avoid it"
        draft.say(conditions.NODE_AVOIDED, message)


def _culprit(snapshot: snap.Snapshot, failed: tuple[snap.Pod, ...]) -> snap.Node | None:
    """The one node of all that failed first; None if there are several, or it is another machine now."""
    ends = {pod.exit.finished for pod in failed if pod.exit and pod.exit.finished}
    first = [pod for pod in failed if not ends or (pod.exit and pod.exit.finished == min(ends))]
    places = {pod.node for pod in first}
    if len(places) != 1 or snapshot.replaced(first[0]):
        return None
    return snapshot.nodes.get(first[0].node)


def _same_machine(one: status.FailedNode, snapshot: snap.Snapshot) -> bool:
    node = snapshot.nodes.get(one.name)
    return node is not None and node.uid == one.uid


def avoided(snapshot: snap.Snapshot) -> tuple[str, ...]:
    """Names of the nodes that this job's next workers must not run on, at most `MOST_AVOIDED`."""
    bad = [one.name for one in snapshot.status.failed_nodes if one.failures >= TWICE]
    here = [one for one in snapshot.status.failed_nodes if one.name in bad and _same_machine(one, snapshot)]
    return tuple(one.name for one in here if _has_alternative(snapshot, one.name, set(bad)))[-MOST_AVOIDED:]


def _has_alternative(snapshot: snap.Snapshot, name: str, bad: set[str]) -> bool:
    """Another machine of its kind is there, or its cloud may bring one."""
    node = snapshot.nodes[name]
    kind = (node.capacity, node.instance_type)
    others = [one for one in snapshot.nodes.values() if (one.capacity, one.instance_type) == kind]
    usable = [
        one for one in others if one.name not in bad and one.ready and not (one.unschedulable or one.notice)
    ]
    return bool(usable) or node.provider != clouds.OTHER


def clear(draft: drafts.Draft, names: cabc.Set[str]) -> None:
    """Work was done on these nodes: what failed there before is held against them no more."""
    left = tuple(one for one in draft.status.failed_nodes if one.name not in names)
    if left != draft.status.failed_nodes:
        draft.update(failed_nodes=left)


def nothing_else_fits(draft: drafts.Draft, waiting: cabc.Collection[snap.Pod]) -> bool:
    """These found no place but the avoided ones within `placementTimeout`."""
    if not waiting or not avoided(draft.snapshot):
        return False
    limit = min(pod.created for pod in waiting) + dt.timedelta(seconds=draft.snapshot.placement_timeout)
    if draft.snapshot.now < limit:
        draft.wake_at(limit)
        return False
    return True


def forgive(draft: drafts.Draft) -> None:
    """No machine is avoided any more; failures to come count from one again."""
    draft.update(failed_nodes=())
