"""The life of a job, from its object, its pods and the machines under them: what the commands show. Pure."""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spottrain.api import clouds, conditions, duration, last_words, names
from spottrain.api import status as statuses

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Word:
    """The last word of a worker's program (train/termination.py); `first`: the step that it began with.

    None: it did not come so far.
    """

    state: str
    step: int | None
    first: int | None
    saved: int | None


@dataclass(frozen=True)
class Worker:
    """A pod that is there. `state`: in words; `began`, `ended`: its deciding container's."""

    pod: str
    index: int
    attempt: int
    node: str
    state: str
    began: dt.datetime | None = None
    ended: dt.datetime | None = None
    word: Word | None = None


@dataclass(frozen=True)
class Life:
    """An attempt. `begun`: why; `ending`: how it ended, empty as long as it has not.

    `first` and `step`: the first and the last step that it is known to have done; `onward`: where the next
    one went on; `lost`: how many steps that one had to do again. None: no worker has told it to the operator,
    nor says so in a pod that is still there.
    """

    number: int
    begun: str
    start: dt.datetime
    running: dt.datetime | None
    end: dt.datetime | None
    ending: str
    outcome: str
    node: str
    workers: tuple[Worker, ...]
    first: int | None = None
    step: int | None = None
    saved: int | None = None
    onward: int | None = None
    log: str = ""
    """The end of the log of its worker that failed last of all; nothing keeps that of other failures."""
    made: bool = True
    """Some of its pods were seen. An attempt is recorded first, and then may wait, or be the last."""

    @property
    def lost(self) -> int | None:
        """Steps that the next one had to do again."""
        if self.step is None or self.onward is None:
            return None
        return max(0, self.step + 1 - self.onward)

    def seconds(self, now: dt.datetime) -> tuple[float, float]:
        """For how long it waited for its workers, and for how long all of them ran."""
        end = self.end or now
        running = min(self.running or end, end)
        return (running - self.start).total_seconds(), (end - running).total_seconds()

    @property
    def steps(self) -> str:
        """Such as `64..126`; empty if nothing is known of them."""
        if self.first is None and self.step is None:
            return ""
        first, last = ("?" if one is None else str(one) for one in (self.first, self.step))
        return f"{first}..{last}"


@dataclass(frozen=True)
class Machine:
    """A node; empty texts where it is not known."""

    name: str
    capacity: str = ""
    zone: str = ""
    type: str = ""


@dataclass(frozen=True)
class History:
    """All of it. `cost`: hours and amounts of `status.cost`, as they are there."""

    name: str
    namespace: str
    mode: str
    spec: Object
    status: statuses.Status
    cost: Object
    created: dt.datetime
    lives: tuple[Life, ...]
    pods: tuple[Worker, ...]

    @property
    def independent(self) -> bool:
        """It has no gang: each index lives by itself."""
        return self.mode == "Independent"

    @property
    def whole(self) -> bool:
        """Nothing of its useful time is too long ago to be known."""
        return "usefulHours" in self.cost or not self.lives or self.lives[0].number <= 1

    def wall(self, now: dt.datetime) -> float:
        """Seconds from its beginning until its end or now."""
        begun = self.status.start or self.created
        return max(0.0, ((self.status.completion or now) - begun).total_seconds())

    def useful(self, now: dt.datetime) -> float:
        """Seconds of all workers together whose work is kept; without a ledger, those in which all ran."""
        if "usefulHours" in self.cost and not self.independent:
            return float(self.cost["usefulHours"]) * 3600 / int(self.spec.get("workers", 1))
        return sum(life.seconds(now)[1] for life in self.lives)


def tell(job: Object, pods: Sequence[Object] = ()) -> History:
    """The history of a job of which these pods are still there."""
    raw = job.get("status") or {}
    known, spec, metadata = statuses.parse(raw), job["spec"], job["metadata"]
    independent = spec.get("mode") == "Independent"
    workers = tuple(sorted(map(_worker, pods), key=lambda one: (one.attempt, one.index)))
    ids = {pod["metadata"]["name"]: _annotation(pod, names.ANNOTATION_ATTEMPT_ID) for pod in pods}
    return History(
        name=metadata["name"],
        namespace=metadata["namespace"],
        mode=spec.get("mode", "Gang"),
        spec=spec,
        status=known,
        cost={key: value for key, value in (raw.get("cost") or {}).items() if not isinstance(value, dict)},
        created=duration.parse_time(metadata["creationTimestamp"]),
        lives=_lives(known, () if independent else workers, ids),
        pods=workers,
    )


def machine(name: str, nodes: Mapping[str, Object]) -> Machine:
    """What is known of a node."""
    node = nodes.get(name)
    if node is None:
        return Machine(name)
    labels = node["metadata"].get("labels") or {}
    return Machine(
        name,
        str(clouds.capacity(labels, node["spec"].get("providerID") or "")),
        labels.get("topology.kubernetes.io/zone", ""),
        labels.get("node.kubernetes.io/instance-type", ""),
    )


def _lives(known: statuses.Status, workers: tuple[Worker, ...], ids: Mapping[str, str]) -> tuple[Life, ...]:
    """From the last one back: how one ended is told by the one after it."""
    found: list[Life] = []
    after: statuses.Attempt | None = None
    for one in reversed(known.attempts):
        own = tuple(w for w in workers if w.attempt == one.number and ids[w.pod] == one.id)
        found.append(_life(one, after, found[-1] if found else None, own, known))
        after = one
    return tuple(reversed(found))


def _life(
    one: statuses.Attempt,
    after: statuses.Attempt | None,
    follower: Life | None,
    workers: tuple[Worker, ...],
    known: statuses.Status,
) -> Life:
    words = [worker.word for worker in workers if worker.word]
    firsts = (one.resume_step, *(word.first for word in words))
    lasts = (one.last_step, *(word.step for word in words))
    outcome, ending = _ending(after, known)
    return Life(
        number=one.number,
        begun=_why(one),
        start=one.start,
        running=one.running,
        end=one.end or known.completion,
        outcome=outcome,
        ending=ending,
        node=after.node if after else "",
        workers=workers,
        first=min((step for step in firsts if step is not None), default=None),
        step=max((step for step in lasts if step is not None), default=None),
        saved=max((word.saved for word in words if word.saved is not None), default=None),
        onward=follower.first if follower else None,
        log=_log(one, known),
        made=bool(workers or known.created) or not known.created_attempt < one.number == known.attempt,
    )


def _log(one: statuses.Attempt, known: statuses.Status) -> str:
    """The end of the log of its worker that failed last: perhaps before an attempt without pods."""
    failed = conditions.find(known.conditions, conditions.FAILED)
    spoken = last_words.parted(failed.message)[1] if failed else None
    if spoken is None:
        return ""
    numbers = [each.number for each in known.attempts]
    whose = spoken.attempt if spoken.attempt in numbers else numbers[-1]
    return str(spoken).strip() if one.number == whose else ""


def _ending(after: statuses.Attempt | None, known: statuses.Status) -> tuple[str, str]:
    """One word, and a sentence; both empty while it lasts."""
    if after is not None:
        return str(after.cause), _why(after)
    if not known.over and known.phase is not statuses.Phase.SUSPENDED:
        return "", ""
    said = next((one.message for one in known.conditions if one.type == known.phase and one.status), "")
    said, _ = last_words.parted(said)
    return str(known.phase), f"{known.phase}: {said}" if said else str(known.phase)


def _why(one: statuses.Attempt) -> str:
    reason = f" ({one.reason})" if one.reason else ""
    where = f" on {one.node}" if one.node and one.node not in one.detail else ""
    return f"{one.cause}{reason}{where}: {one.detail}" if one.detail else f"{one.cause}{reason}{where}"


def _worker(pod: Object) -> Worker:
    labels, status = pod["metadata"].get("labels") or {}, pod.get("status") or {}
    ran = _container(pod)
    state = ran.get("state") or {}
    ended, running = state.get("terminated") or {}, state.get("running") or {}
    return Worker(
        pod=pod["metadata"]["name"],
        index=int(labels.get(names.LABEL_INDEX, 0)),
        attempt=int(labels.get(names.LABEL_ATTEMPT, 0)),
        node=pod["spec"].get("nodeName", ""),
        state=_state(status, state, deleted="deletionTimestamp" in pod["metadata"]),
        began=duration.optional_time((ended or running).get("startedAt")),
        ended=duration.optional_time(ended.get("finishedAt")),
        word=_word(ended.get("message", "")),
    )


def _container(pod: Object) -> Object:
    """The status of the container that decides: the annotated one, else the first of the pod."""
    found = {one["name"]: one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
    main = _annotation(pod, names.ANNOTATION_MAIN) or pod["spec"]["containers"][0]["name"]
    return found.get(main) or {}


def _state(status: Object, state: Object, *, deleted: bool) -> str:
    disrupted = next(
        (
            one.get("reason", "")
            for one in status.get("conditions") or ()
            if one["type"] == "DisruptionTarget" and one["status"] == "True"
        ),
        "",
    )
    if ended := state.get("terminated"):
        reason = ended.get("reason", "")
        text = f"exited {ended['exitCode']}" + (
            f" ({reason})" if reason not in {"", "Error", "Completed"} else ""
        )
    elif deleted:
        text = "stopping"
    elif waiting := state.get("waiting"):
        text = f"waiting ({waiting.get('reason', '?')})"
    else:
        text = str(status.get("phase", "unknown")).lower()
    return f"{text}, {disrupted}" if disrupted else text


def _word(message: str) -> Word | None:
    try:
        said = json.loads(message)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("spottrain") != 1:
        return None
    step, resumed = _number(said.get("step")), _number(said.get("resumedFrom"))
    first = statuses.first_step(resumed, step)
    return Word(str(said.get("state", "")), step, first, _number(said.get("savedStep")))


def _number(value: Any) -> int | None:
    """What a program wrote there, if it is a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _annotation(pod: Object, key: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(key, ""))
