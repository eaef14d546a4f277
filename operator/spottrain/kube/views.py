"""Dictionaries of the API into frozen views; the only place that digs in them."""

import contextlib
import datetime as dt
import json
from typing import Any

from spottrain.api import clouds, duration, names, notices, prices
from spottrain.plan import snapshot as snap

Object = dict[str, Any]

MOST_STEPS = 2**63 - 1
"""What the status can hold (int64)."""
MOST_SECONDS = 1e9
LATEST = 1e11
"""The latest moment that is taken for one, in Unix seconds."""
LONGEST_CAUSE = 64


def pod(raw: Object) -> snap.Pod:
    """A worker's pod, made by us (`is_worker` holds)."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    annotations = metadata.get("annotations") or {}
    phase = status.get("phase", "Pending")
    end = _main_end(raw) if phase == "Running" else None
    flushing = end is not None and _flushes(raw, end)
    deleting = metadata.get("deletionTimestamp")
    grace = (
        metadata.get("deletionGracePeriodSeconds") if deleting else spec.get("terminationGracePeriodSeconds")
    )
    return snap.Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        index=int(metadata["labels"][names.LABEL_INDEX]),
        attempt=int(metadata["labels"][names.LABEL_ATTEMPT]),
        attempt_id=annotations.get(names.ANNOTATION_ATTEMPT_ID, ""),
        created=duration.parse_time(metadata["creationTimestamp"]),
        bound=_bound(status),
        node=spec.get("nodeName") or "",
        ip=status.get("podIP") or "",
        phase=phase,
        running=phase == "Running" and (end is None or flushing),
        flushing=flushing,
        deleting=duration.optional_time(deleting),
        grace=float(grace or 0),
        disruption=_true_reason(status, "DisruptionTarget"),
        reason=status.get("reason") or "",
        exit=_exit(raw),
        said=_words(raw),
        go=annotations.get(names.ANNOTATION_GO, ""),
        unschedulable=_unschedulable(status),
        ask=_ask(metadata["labels"]),
        pools=annotations.get(names.ANNOTATION_POOLS, ""),
        version=metadata.get("resourceVersion") or "",
        waiting=_waiting(status),
        stranded=_stranded(status),
        save_asked=_moment(annotations.get(names.ANNOTATION_SAVE)),
        train_until=_moment(annotations.get(names.ANNOTATION_TRAIN_UNTIL)),
        stopped=_stopped(status),
    )


def _ask(labels: Object) -> clouds.Ask:
    """A newer version may have words of its own for it."""
    try:
        return clouds.Ask(labels.get(names.LABEL_CAPACITY, clouds.Ask.SPOT))
    except ValueError:
        return clouds.Ask.SPOT


def _stopped(status: Object) -> dt.datetime | None:
    """When the last of its containers ended; None while one runs or waits, or where none ever ran."""
    parts = ("initContainerStatuses", "containerStatuses")
    states = [one.get("state") or {} for part in parts for one in status.get(part) or ()]
    ends = [duration.optional_time((state.get("terminated") or {}).get("finishedAt")) for state in states]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def trimmed_pod(raw: Object) -> Object:
    """What is read of a pod here and where its log is asked for: a tenth of it."""
    wanted = ("nodeName", "terminationGracePeriodSeconds")
    spec: Object = {key: raw["spec"][key] for key in wanted if key in raw["spec"]}
    for part in ("containers", "initContainers"):
        named = [
            {key: one[key] for key in ("name", "restartPolicy") if key in one}
            for one in raw["spec"].get(part) or ()
        ]
        spec |= {part: named} if named else {}
    return {
        "metadata": without_bookkeeping(raw)["metadata"],
        "spec": spec,
        "status": raw.get("status") or {},
    }


def without_bookkeeping(raw: Object) -> Object:
    """All of an object but the API server's account of who wrote which field, which is half of it."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    return {**raw, "metadata": metadata}


def metadata_alone(raw: Object) -> Object:
    """Who it is, for a cache whose readers keep what they need themselves."""
    return {"metadata": without_bookkeeping(raw)["metadata"]}


def is_worker(raw: Object) -> bool:
    """It carries the labels of a worker as numbers; anything else under our label is not ours to judge."""
    labels = raw["metadata"].get("labels") or {}
    numbered = all(labels.get(key, "").isdigit() for key in (names.LABEL_INDEX, names.LABEL_ATTEMPT))
    return numbered and names.LABEL_JOB in labels


def controller_uid(raw: Object) -> str:
    """The UID of the object's controller; empty if it has none."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), "")


def _conditions(status: Object) -> dict[str, Object]:
    return {one["type"]: one for one in status.get("conditions") or ()}


def _true_reason(status: Object, type: str) -> str:  # noqa: A002
    condition = _conditions(status).get(type)
    if condition is None or condition["status"] != "True":
        return ""
    return condition.get("reason") or "Unknown"


def _bound(status: Object) -> dt.datetime | None:
    condition = _conditions(status).get("PodScheduled") or {}
    if condition.get("status") != "True":
        return None
    return duration.optional_time(condition.get("lastTransitionTime"))


def _unschedulable(status: Object) -> str:
    condition = _conditions(status).get("PodScheduled") or {}
    if condition.get("reason") != "Unschedulable":
        return ""
    return condition.get("message") or "unschedulable"


def _waits(status: Object) -> list[tuple[str, Object]]:
    """Name and `waiting` of each container that waits, init containers first."""
    parts = ("initContainerStatuses", "containerStatuses")
    statuses = [one for part in parts for one in status.get(part) or ()]
    states = [(one.get("name", ""), (one.get("state") or {}).get("waiting")) for one in statuses]
    return [(name, waits) for name, waits in states if waits is not None]


_BEGINNING = {"ContainerCreating", "PodInitializing"}


def _waiting(status: Object) -> str:
    """Its kubelet's words for a container that it tries in vain to start, such as `ImagePullBackOff: …`."""
    for name, waits in _waits(status):
        if (reason := waits.get("reason")) and reason not in _BEGINNING:
            return f"{name}: {reason}: {waits.get('message') or ''}".rstrip(": ")
    return ""


def _stranded(status: Object) -> dt.datetime | None:
    """Since when its kubelet has had a container that was made and never started, in a sandbox that is gone.

    A machine that dies between the two and comes back leaves such a pod. Where a container was made once and
    `restartPolicy` is Never its kubelet makes no other sandbox (`createPodSandbox` in computePodActions of
    kuberuntime_manager.go), so the pod is Pending for ever, and waits without a reason.
    """
    sandbox = _conditions(status).get("PodReadyToStartContainers") or {}
    if status.get("phase") != "Pending" or sandbox.get("status") != "False":
        return None
    if all(waits.get("reason") for _, waits in _waits(status)):
        return None
    return duration.optional_time(sandbox.get("lastTransitionTime"))


def main_container(raw: Object) -> str:
    """Name of the container that decides for its pod: the one that kubectl takes by default, else the first.

    We set that annotation to the template's first container unless the template has it, since a webhook may
    put another container before it.
    """
    found = [str(one["name"]) for one in raw["spec"].get("containers") or ()]
    annotated = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_MAIN)
    return annotated if annotated in found else next(iter(found), "")


def failed(raw: Object) -> bool:
    """It failed, or its main container did and others run on."""
    end = _main_end(raw)
    return (raw.get("status") or {}).get("phase") == "Failed" or (end is not None and end["exitCode"] != 0)


def _terminated(raw: Object, part: str) -> dict[str, Object]:
    """How containers that have ended did so, by name."""
    statuses = (raw.get("status") or {}).get(part) or ()
    states = {one.get("name", str(number)): one.get("state") or {} for number, one in enumerate(statuses)}
    return {name: state["terminated"] for name, state in states.items() if "terminated" in state}


def _main_end(raw: Object) -> Object | None:
    return _terminated(raw, "containerStatuses").get(main_container(raw))


def _flushes(raw: Object, end: Object) -> bool:
    """Its main container has ended well (`end`), and our sidecar may still be storing what it saved last.

    The kubelet tells the sidecar to stop then, and ends it when the grace is over.
    """
    sidecars = {one["name"] for one in raw["spec"].get("initContainers") or ()}
    if end["exitCode"] != 0 or names.CONTAINER_WATCH not in sidecars:
        return False
    return names.CONTAINER_WATCH not in _terminated(raw, "initContainerStatuses")


def _ends(raw: Object) -> list[Object]:
    """How its containers ended, the one that decides first.

    That is the main one. Where it never ran, it is what kept it from running: a container or an init
    container that ended badly. A native sidecar never decides: its kubelet ends it last, however it does.
    """
    sidecars = {
        one["name"] for one in raw["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"
    }
    inits = _terminated(raw, "initContainerStatuses")
    others = [
        *_terminated(raw, "containerStatuses").values(),
        *(end for name, end in inits.items() if name not in sidecars),
    ]
    main = _main_end(raw)
    return sorted(others, key=lambda end: (end is not main, end["exitCode"] == 0))


def _exit(raw: Object) -> snap.Exit | None:
    ends, phase = _ends(raw), (raw.get("status") or {}).get("phase")
    if not ends or (_main_end(raw) is None and phase not in {"Succeeded", "Failed"}):
        return None
    first = ends[0]
    return snap.Exit(
        code=first["exitCode"],
        reason=first.get("reason") or "",
        finished=duration.optional_time(first.get("finishedAt")),
        started=duration.optional_time(first.get("startedAt")),
        out_of_memory=first["exitCode"] != 0 and any(one.get("reason") == "OOMKilled" for one in ends),
        ran=not _never_ran(raw),
    )


def _never_ran(raw: Object) -> bool:
    """Its kubelet says ContainerStatusUnknown of a container that it had not started yet.

    It says so of each that hasn't ended when it removes a pod (`TerminatePod` of its status manager). Of one
    that did run and whose machine then forgot it there is a restart, or an end before this one, on record
    (`convertToAPIContainerStatuses`).
    """
    statuses = (raw.get("status") or {}).get("containerStatuses") or ()
    main: Object = next((one for one in statuses if one.get("name") == main_container(raw)), {})
    end = (main.get("state") or {}).get("terminated") or {}
    earlier = main.get("restartCount") or (main.get("lastState") or {}).get("terminated")
    return end.get("reason") == snap.FORGOTTEN and not earlier


def _words(raw: Object) -> snap.Words | None:
    """What the library wrote as termination message, or our sidecar in its place, which decides nothing.

    Any other program's text is no word of ours.
    """
    sidecar = _terminated(raw, "initContainerStatuses").get(names.CONTAINER_WATCH)
    for end in (*_ends(raw), *([sidecar] if sidecar else ())):
        with contextlib.suppress(ValueError, RecursionError):
            said = json.loads(end.get("message") or "")
            if isinstance(said, dict) and said.get("spottrain") == 1:
                state = str(said.get("state", ""))
                return snap.Words(
                    "" if end is sidecar and state != snap.UNSAVED else state,
                    step(said.get("step")),
                    step(said.get("savedStep")),
                    seconds(said.get("saveSeconds")),
                    unix(said.get("savedTime")),
                    step(said.get("resumedFrom")),
                )
    return None


def seconds(said: Any, most: float = MOST_SECONDS) -> float | None:
    """A number of seconds, or of steps in one, that the status may hold."""
    number = isinstance(said, int | float) and not isinstance(said, bool)
    return float(said) if number and 0 <= said < most else None


def unix(said: Any) -> dt.datetime | None:
    """A moment in Unix seconds, of a time that there may be."""
    moment = seconds(said, LATEST)
    return None if moment is None else dt.datetime.fromtimestamp(moment, dt.UTC)


def step(said: Any) -> int | None:
    """A step that the status may hold; the message is the user's program's, and may say anything."""
    if not isinstance(said, int) or isinstance(said, bool) or not 0 <= said <= MOST_STEPS:
        return None
    return said


def node(raw: Object, settings: snap.Settings) -> snap.Node:
    """A node, with who warns of its end."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    ready = _conditions(status).get("Ready") or {}
    notice, deadline = _notice(raw, settings.notice_marks)
    agent = _conditions(status).get(names.CONDITION_NOTICES) or {}
    capacity = clouds.capacity(
        labels,
        spec.get("providerID") or "",
        spot=settings.spot_marks,
        on_demand=settings.on_demand_marks,
    )
    rate, problem = _rate({**labels, **(metadata.get("annotations") or {})}, capacity)
    return snap.Node(
        name=metadata["name"],
        uid=metadata["uid"],
        capacity=capacity,
        provider=clouds.provider(spec.get("providerID") or ""),
        created=duration.parse_time(metadata["creationTimestamp"]),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        ready=ready.get("status") == "True",
        ready_since=duration.optional_time(ready.get("lastTransitionTime") or metadata["creationTimestamp"]),
        unschedulable=bool(spec.get("unschedulable")),
        notice=notice,
        deadline=deadline,
        listens=agent.get("reason") or "",
        listened=_moment(agent.get("lastHeartbeatTime")),
        noticed=_since(raw, names.ANNOTATION_RECLAIM),
        hint=_since(raw, names.ANNOTATION_HINT),
        rate=rate,
        rate_problem=problem,
    )


def _rate(marks: dict[str, str], capacity: clouds.Capacity) -> tuple[prices.Rate | None, str]:
    """What they say, or what is wrong with it."""
    try:
        return prices.marked(marks, capacity), ""
    except ValueError as error:
        return None, str(error)


def _since(raw: Object, annotation: str) -> dt.datetime | None:
    """When the agent, or whoever else writes it so, heard what this annotation says."""
    text = (raw["metadata"].get("annotations") or {}).get(annotation)
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        return _moment(json.loads(text or "{}").get("since"))
    return None


def _moment(text: str | None) -> dt.datetime | None:
    """A time that anybody may have written; None if it is none."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return duration.optional_time(text)
    return None


def _notice(raw: Object, marks: tuple[notices.Mark, ...]) -> tuple[str, dt.datetime | None]:
    """Our agent's annotation, or the mark of another handler (few of which name a deadline)."""
    text = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_RECLAIM)
    if text:
        return _annotated(text)
    return notices.first(marks, signs(raw))


def signs(raw: Object) -> notices.Signs:
    """What a Node, as the API server gives it, carries."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    return notices.Signs(
        taints={one["key"]: one.get("value") or "" for one in spec.get("taints") or ()},
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        conditions={
            one["type"]: (one.get("reason") or "", one.get("message") or "")
            for one in status.get("conditions") or ()
            if one["status"] == "True"
        },
    )


def _annotated(text: str) -> tuple[str, dt.datetime | None]:
    """A malformed annotation is a notice all the same: someone took the trouble to set it."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        said = json.loads(text)
        return str(said.get("cause") or "notice")[:LONGEST_CAUSE], duration.optional_time(
            said.get("deadline")
        )
    return "notice", None


def job(raw: Object, owner_uid: str) -> snap.Job:
    """A batch/v1 Job of our job's name."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    ends = _conditions(status)
    return snap.Job(
        uid=metadata["uid"],
        managed_by=spec.get("managedBy") or "",
        suspended=bool(spec.get("suspend")),
        template_hash=(metadata.get("annotations") or {}).get(names.ANNOTATION_TEMPLATE_HASH, ""),
        workers=spec.get("completions") or 0,
        parallelism=spec.get("parallelism") or 0,
        started=duration.optional_time(status.get("startTime")),
        finished=any((ends.get(one) or {}).get("status") == "True" for one in ("Complete", "Failed")),
        queued=names.KUEUE_QUEUE_LABEL in (metadata.get("labels") or {}),
        ours=controller_uid(raw) == owner_uid,
        counts=tuple(
            status.get(one) or 0 for one in ("active", "ready", "terminating", "succeeded", "failed")
        ),
    )
