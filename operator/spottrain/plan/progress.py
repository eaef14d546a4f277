"""`spec.progressTimeout`: a gang whose first worker stays at one step for too long is stuck, and restarted.

The library's rank 0 tells its step when it is asked (`train/progress.py`). Only what it said itself is
judged: the same step in two answers that lie further apart than the timeout. What can't be read is never
taken for a standstill; that it can't is said.
"""

from spottrain.api import duration, spec
from spottrain.plan import loss
from spottrain.plan import snapshot as snap

STALLED = "Stalled"


def asked(snapshot: snap.Snapshot) -> snap.Pod | None:
    """The worker that is to be asked for its step; None if nobody is."""
    if snapshot.independent:
        return None
    attempts, pod = snapshot.status.attempts, snapshot.current.get(0)
    if _timeout(snapshot) is None or snapshot.status.over or not attempts or not attempts[-1].running:
        return None
    return pod if pod is not None and pod.running and pod.deleting is None and pod.ip else None


def stalled(snapshot: snap.Snapshot) -> loss.Member | None:
    """Worker 0 with its verdict, if it has made no step for too long."""
    timeout, said, pod = _timeout(snapshot), snapshot.progress, asked(snapshot)
    if timeout is None or pod is None or said is None or said.attempt_id != snapshot.status.attempt_id:
        return None
    if said.still < timeout:
        return None
    place = "before its first step" if said.step is None else f"at step {said.step}"
    lasted, limit = duration.format_seconds(round(said.still)), duration.format_seconds(timeout)
    text = f"{pod.name} has been {place} for {lasted}, and spec.progressTimeout is {limit}"
    return loss.Member(0, loss.Verdict(loss.Fate.FAILED, STALLED, text), pod)


def problem(snapshot: snap.Snapshot) -> str:
    """Why progress can't be watched although it is wished for; empty if it can."""
    if asked(snapshot) is None or snapshot.progress is None:
        return ""
    return snapshot.progress.problem


def _timeout(snapshot: snap.Snapshot) -> float | None:
    return None if isinstance(snapshot.spec, spec.InvalidSpecError) else snapshot.spec.progress_timeout
