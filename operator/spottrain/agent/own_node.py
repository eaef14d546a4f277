"""What the agent does to its own Node and to the workers on it, as requests."""

import collections.abc as cabc
import datetime as dt
import hashlib
import urllib.parse
from typing import Any

from spottrain.agent import cluster, hints, marks, notice
from spottrain.api import duration, names

Object = dict[str, Any]
CONDITION = names.CONDITION_NOTICES
WATCH_SECONDS = 240
OPERATOR_ACTS_WITHIN = 2.0
"""Seconds that the operator has, from the notice or from the moment that it has set itself: it stops the
whole gang, the agent its node's part."""
LEAST_TO_SAVE = 5.0
NODE_EVENTS = "/api/v1/namespaces/default/events"


class OwnNode:
    """One Node by name. Every method raises cluster.ClusterError."""

    def __init__(self, api: cluster.Cluster, name: str) -> None:
        self.name = name
        self._api = api
        self._path = f"/api/v1/nodes/{name}"
        self._uid = name  # as the kubelet does while it doesn't know better

    def get(self) -> Object:
        """The Node as it is."""
        node = self._api.request("GET", self._path)
        self._uid = node["metadata"]["uid"]
        return node

    def changes(self) -> cabc.Iterator[Object]:
        """The Node as it is, and each time that it changes, for some minutes."""
        query = urllib.parse.urlencode({"fieldSelector": f"metadata.name={self.name}"})
        return self._api.watch(f"/api/v1/nodes?{query}", WATCH_SECONDS)

    def mark(self, wanted: marks.Mark | None) -> None:
        """Make the Node carry this mark, or none of ours; 409 if somebody else has written it meanwhile."""
        patch = marks.patch(self.get(), wanted)
        if patch is not None:
            self._api.request("PATCH", self._path, patch, cluster.MERGE_PATCH)

    def hint(self, wanted: hints.Hint | None) -> None:
        """Make the Node carry this hint, or none of ours."""
        patch = hints.patch(self.get(), wanted)
        if patch is not None:
            self._api.request("PATCH", self._path, patch, cluster.MERGE_PATCH)

    def show(self, status: str, reason: str, message: str, now: dt.datetime) -> None:
        """Set the Node's condition; `status` is True, False or Unknown."""
        found = (self.get().get("status") or {}).get("conditions") or ()
        before: Object = next((one for one in found if one["type"] == CONDITION), {})
        moment = duration.format_time(now)
        same = before.get("status") == status
        condition = {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": before["lastTransitionTime"] if same else moment,
        }
        patch = {"status": {"conditions": [condition]}}
        self._api.request("PATCH", f"{self._path}/status", patch, cluster.STRATEGIC_MERGE_PATCH)

    def say(self, reason: str, message: str, told: tuple[str, ...], now: dt.datetime) -> bool:
        """One Event on the Node for each `told`, ever; False if it was there already."""
        digest = hashlib.sha256("\n".join((self._uid, reason, *told)).encode()).hexdigest()[:16]
        moment = duration.format_time(now)
        event = {
            "metadata": {"name": f"{self.name}.{digest}", "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self._uid},
            "reason": reason,
            "message": message,
            "type": "Warning",
            "count": 1,
            "source": {"component": names.AGENT, "host": self.name},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
        }
        try:
            self._api.request("POST", NODE_EVENTS, event)
        except cluster.ApiError as error:
            if error.code == 409:
                return False
            raise
        return True

    def workers(self) -> list[Object]:
        """The workers on the Node that run and that nobody has told to stop."""
        query = {"fieldSelector": f"spec.nodeName={self.name}", "labelSelector": names.LABEL_JOB}
        found = self._api.request("GET", f"/api/v1/pods?{urllib.parse.urlencode(query)}")["items"]
        return [one for one in found if _runs(one)]

    def stop(self, worker: Object, grace: int) -> bool:
        """Delete the worker; False if it is gone by now."""
        metadata = worker["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        body = {"gracePeriodSeconds": grace, "preconditions": {"uid": metadata["uid"]}}
        try:
            self._api.request("DELETE", path, body)
        except cluster.ApiError as error:
            if error.code in {404, 409}:
                return False
            raise
        return True


def _runs(pod: Object) -> bool:
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and "deletionTimestamp" not in pod["metadata"]


def grace(worker: Object, deadline: dt.datetime, now: dt.datetime, margin: float) -> int:
    """Seconds for a worker to end in: its own grace, or what is left; never 0, which gives it no word."""
    own = worker["spec"].get("terminationGracePeriodSeconds")
    left = int((deadline - now).total_seconds() - margin)
    return max(1, left if own is None else min(int(own), left))


def trains_on(worker: Object, deadline: dt.datetime, now: dt.datetime, margin: float) -> bool:
    """The operator lets it train until a moment that has not come, and that leaves it the time to save."""
    annotations = worker["metadata"].get("annotations") or {}
    try:
        until = duration.optional_time(annotations.get(names.ANNOTATION_TRAIN_UNTIL))
    except (ValueError, OverflowError):  # anybody may have written it
        return False
    latest = deadline - dt.timedelta(seconds=margin + LEAST_TO_SAVE)
    return until is not None and now < min(until + dt.timedelta(seconds=OPERATOR_ACTS_WITHIN), latest)


def sentence(one: notice.Notice) -> str:
    """A notice for people."""
    if one.kind is notice.Kind.HINT:
        words = f"{one.source} says that the node may be taken soon ({one.cause}, event {one.event})"
        return f"{words}: a checkpoint is asked for, and nobody is stopped"
    moment = duration.format_time(one.deadline) if one.deadline else "any moment"
    if one.cause == names.DRILL:
        return f"a drill ({one.event}): the node counts as one that is taken at {moment}, and stays"
    return f"{one.source} says that the node is taken at {moment} ({one.cause}, event {one.event})"
