"""How a worker fares: a table from the evidence on its pod and its node.

=========================================  ===========================================
evidence                                   verdict
=========================================  ===========================================
ended badly, a container OOMKilled         Failed, on a doomed node too
exit 0, not asked to stop                  Finished
exit 0, asked to stop, says "finished"     Finished
exit 0, asked to stop                      Reclaimed: saved and left, the work goes on
Failed, with evidence of a reclaim         Reclaimed
Failed, refused by the kubelet             Refused: nothing ran, it needs another place
Failed, with none                          Failed
alive, DisruptionTarget                    Reclaimed
alive, deleted by someone else             Reclaimed
alive, its node is lost or gone            Reclaimed
alive, its node was restarted under it     Reclaimed: its kubelet never starts it
alive, its node is under notice            Doomed
alive                                      Alive
=========================================  ===========================================

Evidence of a reclaim on a pod that Failed: the DisruptionTarget condition; a deletion that came before its
end; a node that is lost, gone or under notice (Karpenter deletes pods without the condition); the kubelet's
own shutdown (`Terminated`, `NodeShutdown`); a kubelet that came back to find the container gone
(`ContainerStatusUnknown`, or exit 255 `Unknown`): its machine was restarted or replaced. It says the former
of a container that never ran too, of a pod that was deleted: that is evidence of the deletion alone.

One container decides for its pod (`kube/views.py` says which): whatever runs on beside it, such as a mesh's
proxy, is ended with the pod when the attempt or the job is over.
"""

import dataclasses
import enum

from spottrain.api import names
from spottrain.plan import capacity
from spottrain.plan import snapshot as snap


class Fate(enum.Enum):
    """What has become of a worker."""

    ALIVE = enum.auto()
    DOOMED = enum.auto()
    FINISHED = enum.auto()
    RECLAIMED = enum.auto()
    FAILED = enum.auto()
    REFUSED = enum.auto()


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A worker's fate. `cause` is one of few words (a metric's label), `detail` is for people."""

    fate: Fate
    cause: str = ""
    detail: str = ""


EVICTED = "Evicted"
BY_KUBELET = "TerminationByKubelet"
DISRUPTIONS = {
    "EvictionByEvictionAPI": EVICTED,
    "PreemptionByScheduler": "Preempted",
    "DeletionByTaintManager": "TaintEvicted",
    "DeletionByPodGC": "NodeGone",
    BY_KUBELET: "NodeShutdown",
}
OTHER_DISRUPTION = "Disrupted"
NODE_LOST = "NodeLost"
NODE_GONE = "NodeGone"
NODE_SHUTDOWN = "NodeShutdown"
NODE_RESTARTED = "NodeRestarted"
NOTICE = "Notice"
DRILL = names.DRILL
POD_DELETED = "PodDeleted"
POD_VANISHED = "PodVanished"
OUT_OF_MEMORY = "OOMKilled"
NODE_REFUSED = "NodeRefused"
MACHINE_ENDS = {NODE_LOST, NODE_GONE, NODE_SHUTDOWN, NODE_RESTARTED, NOTICE}
"""The causes that say that the node itself goes. An eviction may have any reason, and a drill takes none."""

_REFUSALS = {
    "UnexpectedAdmissionError",  # a device plugin that is restarting, or has no healthy GPU left
    "TopologyAffinityError",
    "NodeAffinity",
    "Evicted",  # under pressure before it started; a pod that ran has DisruptionTarget
}
_OUT_OF = "OutOf"
"""`OutOfcpu`, `OutOfpods`, `OutOfnvidia.com/gpu`: scheduler and kubelet counted differently for a moment."""

_SHUTDOWN_REASONS = {"Terminated", "NodeShutdown", "Shutdown"}


@dataclasses.dataclass(frozen=True)
class Member:
    """One worker of the current attempt: its verdict, and its pod where there is one."""

    index: int
    verdict: Verdict
    pod: snap.Pod | None

    @property
    def node(self) -> str:
        """The name of the worker's node, or nothing."""
        return self.pod.node if self.pod else ""


def members(snapshot: snap.Snapshot) -> tuple[Member, ...]:
    """Every member of the current attempt with its verdict. An absent one is judged as it was last seen.

    One that nobody remembers is lost if it was seen to exist once, and else still to come; so is one that was
    withdrawn.
    """
    current, now = snapshot.current, snapshot.status
    present = [
        Member(index, classify(pod, snapshot), pod)
        for index, pod in current.items()
        if not capacity.withdrawn(pod)
    ]
    all_existed = now.attempt > 0 and now.created_attempt == now.attempt
    last = {pod.index: pod for pod in snapshot.departed if pod.attempt_id == now.attempt_id}
    there = current.keys() | capacity.withdrawn_members(snapshot).keys()
    missing = [index for index in range(snapshot.workers) if index not in there]
    lost = [index for index in missing if all_existed or index in now.created or index in last]
    return (*present, *(absent(snapshot, index, last.get(index)) for index in lost))


def absent(snapshot: snap.Snapshot, index: int, pod: snap.Pod | None) -> Member:
    """The verdict on a worker that is gone: by its pod as it was last seen, if anybody remembers it."""
    verdict = classify(pod, snapshot) if pod else Verdict(Fate.ALIVE)
    shards = snapshot.status.shards
    attempt = shards.attempt(index) if shards else snapshot.status.attempt
    name = pod.name if pod else names.pod_name(snapshot.name, index, attempt)
    if verdict.fate in {Fate.ALIVE, Fate.DOOMED}:
        verdict = Verdict(Fate.RECLAIMED, POD_VANISHED, f"{name} is gone")
    return Member(index, verdict, pod)


def classify(pod: snap.Pod, snapshot: snap.Snapshot) -> Verdict:
    """The fate of a pod of the current attempt; see the table above."""
    if pod.exit is not None and pod.exit.out_of_memory:
        return Verdict(Fate.FAILED, OUT_OF_MEMORY, f"{pod.name} was OOMKilled; raise its memory limit")
    if pod.outcome == "Succeeded":
        return _succeeded(pod, snapshot)
    cause = reclaim_cause(pod, snapshot)
    if pod.outcome == "Failed":
        return Verdict(Fate.RECLAIMED, *cause) if cause else _failed(pod)
    if cause is None:
        return Verdict(Fate.ALIVE)
    return Verdict(Fate.DOOMED if cause[0] in {NOTICE, DRILL} else Fate.RECLAIMED, *cause)


def reclaim_cause(pod: snap.Pod, snapshot: snap.Snapshot) -> tuple[str, str] | None:
    """The strongest evidence that the pod was, or is being, reclaimed: (cause, text for people)."""
    if pod.disruption == BY_KUBELET and pod.reason == "Evicted":  # under pressure; the machine stays
        return EVICTED, f"{pod.name}: {pod.disruption}, evicted under pressure"
    if pod.disruption:
        return DISRUPTIONS.get(pod.disruption, OTHER_DISRUPTION), f"{pod.name}: {pod.disruption}"
    if not pod.node:
        return (POD_DELETED, f"{pod.name} was deleted") if pod.asked_to_stop else None
    return _node_evidence(pod, snapshot) or _pod_evidence(pod, snapshot)


def _node_evidence(pod: snap.Pod, snapshot: snap.Snapshot) -> tuple[str, str] | None:
    node = snapshot.nodes.get(pod.node)
    if node is None:
        return NODE_GONE, f"node {pod.node} is gone"
    if snapshot.replaced(pod):
        return NODE_GONE, f"node {pod.node} is another machine now"
    if snapshot.lost(pod):
        return NODE_LOST, f"node {pod.node} is {'silent' if node.silent else 'not ready'}"
    if node.notice == names.DRILL:
        return DRILL, f"node {pod.node} is part of a drill"
    if node.notice:
        return NOTICE, f"node {pod.node} is about to be taken ({node.notice})"
    return None


def _pod_evidence(pod: snap.Pod, snapshot: snap.Snapshot) -> tuple[str, str] | None:
    """What its kubelet says comes first: the deletion may be our own, of what was lost already."""
    if pod.outcome == "Failed" and pod.reason in _SHUTDOWN_REASONS:
        return NODE_SHUTDOWN, f"{pod.name}: the kubelet of {pod.node} shut down"
    lost_by_kubelet = pod.exit is not None and (
        pod.exit.reason == snap.FORGOTTEN or (pod.exit.code == 255 and pod.exit.reason == "Unknown")
    )
    never_ran = pod.asked_to_stop and pod.exit is not None and not pod.exit.ran
    if pod.outcome == "Failed" and lost_by_kubelet and not never_ran:
        return NODE_RESTARTED, f"{pod.name}: node {pod.node} was restarted under it"
    if pod.asked_to_stop:
        return POD_DELETED, f"{pod.name} was deleted"
    if snapshot.stranded(pod):
        return NODE_RESTARTED, f"{pod.name}: node {pod.node} was restarted before it could start"
    return None


def _succeeded(pod: snap.Pod, snapshot: snap.Snapshot) -> Verdict:
    says_finished = pod.said is not None and pod.said.state == "finished"
    if says_finished or not pod.asked_to_stop:
        return Verdict(Fate.FINISHED)
    cause = reclaim_cause(pod, snapshot) or (POD_DELETED, f"{pod.name} was deleted")
    return Verdict(Fate.RECLAIMED, *cause)


def _failed(pod: snap.Pod) -> Verdict:
    if pod.exit is None and (pod.reason in _REFUSALS or pod.reason.startswith(_OUT_OF)):
        return Verdict(Fate.REFUSED, NODE_REFUSED, f"node {pod.node} refused {pod.name}: {pod.reason}")
    return Verdict(Fate.FAILED, "Error", _exit_text(pod))


def _exit_text(pod: snap.Pod) -> str:
    if pod.exit is None:
        return f"{pod.name} failed ({pod.reason or 'no reason given'})"
    return f"{pod.name} exited {pod.exit.code} ({pod.exit.reason or 'no reason given'})"
