"""The status of our Job: what queues and other tools read of us."""

from typing import Any

from spottrain.api import conditions, duration
from spottrain.plan import actions
from spottrain.plan import snapshot as snap

Object = dict[str, Any]


def status(report: actions.ReportJob, snapshot: snap.Snapshot) -> Object:
    """A Job status that the API server's state machine accepts: a terminal one comes with its precursor."""
    job = snapshot.job
    started = (job.started if job else None) or snapshot.status.start or snapshot.now
    ended = duration.format_time(snapshot.status.completion or snapshot.now)
    body: Object = {
        "active": report.active,
        "ready": report.ready,
        "terminating": report.terminating,
        "succeeded": report.succeeded,
        "failed": report.failed,
        "startTime": duration.format_time(started) if report.started else None,
    }
    if report.indexes is not None:
        body["completedIndexes"], body["failedIndexes"] = report.indexes
    if report.outcome is None:
        return body
    complete = report.outcome == "Complete"
    if complete:
        body["completionTime"] = ended
        body.setdefault("completedIndexes", _indexes(snapshot))
    precursor = "SuccessCriteriaMet" if complete else "FailureTarget"
    body["conditions"] = [
        {
            "type": kind,
            "status": "True",
            "reason": conditions.ALL_WORKERS_FINISHED if complete else report.reason,
            "message": report.message[:1024],
            "lastTransitionTime": ended,
            "lastProbeTime": ended,
        }
        for kind in (precursor, report.outcome)
    ]
    return body


def _indexes(snapshot: snap.Snapshot) -> str:
    workers = snapshot.status.workers.desired  # as they were at the end; the spec may have changed since
    return "0" if workers == 1 else f"0-{workers - 1}"
