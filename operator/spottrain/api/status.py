"""The `status` of a SpotTrainingJob: parsed, computed as a whole, and written back when it differs.

A newer version may have written it before a downgrade. A phase or a cause that this one has no word for stays
the word that was found: it is none of ours in every comparison, and is written back as it was.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
import enum
from typing import Any, TypeVar

from spottrain.api import conditions as words
from spottrain.api import duration, indexes
from spottrain.api import ledger as ledgers
from spottrain.api import shards as shard
from spottrain.api.conditions import Condition

ATTEMPTS_KEPT = 10
FAILED_NODES_KEPT = 16
NONE = indexes.Indexes()

_Words = TypeVar("_Words", bound=enum.StrEnum)


class Phase(enum.StrEnum):
    """One word for people; the conditions are the truth."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Cause(enum.StrEnum):
    """Why an attempt was started."""

    INITIAL = "Initial"
    RECLAIMED = "Reclaimed"
    FAILED = "Failed"
    UNDETERMINED = "Undetermined"
    """A member failed and it isn't known yet whether a node took it down; settled later."""
    REPLACED = "Replaced"
    """A member was removed before it had a node: nothing ran, so nothing is counted."""
    UNPLACED = "Unplaced"
    """The gang could not be placed whole in time and gave back the nodes that it held."""
    SPEC_CHANGED = "SpecChanged"
    RESUMED = "Resumed"
    MOVED = "Moved"
    """It goes on in another place, on-demand or spot, for its deadline."""


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One life of the gang.

    `cause`, `reason` (one of few words) and `detail` say why it was started: how the one before ended.
    """

    number: int
    id: str
    cause: Cause | str
    start: dt.datetime
    reason: str = ""
    detail: str = ""
    node: str = ""
    index: int | None = None
    running: dt.datetime | None = None
    end: dt.datetime | None = None
    placed: dt.datetime | None = None
    """When all of its workers had a node; noted for jobs with a deadline."""
    stepping: dt.datetime | None = None
    """When worker 0 first told a step that this life did."""
    on_demand: bool = False
    """All of its workers are made for on-demand nodes, for the deadline."""
    resume_step: int | None = None
    """The first step of this life, as its workers told: 0 is the very beginning."""
    last_step: int | None = None
    """The last step that it is known to have done."""
    more: tuple[tuple[str, Any], ...] = dataclasses.field(default_factory=tuple)
    """Fields of a newer version, kept as they were found."""


def first_step(resumed_from: int | None, step: int | None, *, began: bool = False) -> int | None:
    """The first step of a life by what it tells: its checkpoint's step when it began, and its newest step.

    With nothing to go on from it began at the beginning, once it did: `began`, or a step done. Else None.
    """
    if resumed_from is not None:
        return resumed_from + 1
    return 0 if began or step is not None else None


@dataclasses.dataclass(frozen=True)
class FailedNode:
    """A machine on which the job failed by itself, and how often; `time` is the newest one's."""

    name: str
    uid: str
    failures: int
    time: dt.datetime


@dataclasses.dataclass(frozen=True)
class Storm:
    """How many reclaims in a row found no progress since the one before, and the step known at the last."""

    reclaims: int = 0
    step: int | None = None


@dataclasses.dataclass(frozen=True)
class Fallback:
    """Spot had no room. `until`: until when workers may be made for on-demand nodes too; None: that is past.

    `times`: how often in a row, without spot having had room for all workers in between.
    """

    since: dt.datetime
    until: dt.datetime | None
    times: int = 1

    def allows(self, now: dt.datetime) -> bool:
        """Workers that are made now may go to on-demand nodes."""
        return self.until is not None and now < self.until


@dataclasses.dataclass(frozen=True)
class Reclaim:
    """The newest loss of a worker with its node or by eviction."""

    time: dt.datetime
    cause: str
    node: str
    zone: str
    capacity: str
    provider: str
    index: int
    attempt: int
    instance_type: str = ""


@dataclasses.dataclass(frozen=True)
class Workers:
    """How many workers there are, counted in this pass. `indexes` is of an Independent job: all of them.

    `fallback`: those of `on_demand` that are there because spot had no room.
    """

    desired: int = 0
    running: int = 0
    on_demand: int = 0
    spot: int = 0
    succeeded: int = 0
    indexes: int = 0
    fallback: int = 0


@dataclasses.dataclass(frozen=True)
class Progress:
    """What was last told beside the step: how many there are, how many a second, and when it was known."""

    total: int | None = None
    per_second: float | None = None
    time: dt.datetime | None = None


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The newest complete checkpoint that is known: when it was, and how many seconds the save took."""

    step: int
    time: dt.datetime | None = None
    save_seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class Status:
    """All of `status`.

    `attempt` 0: none was started. `created_attempt` follows once all its pods exist; until then `created`
    are the workers of a gang that were seen, and one of them that is absent is lost, not still to come.
    """

    phase: Phase | str = Phase.PENDING
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    attempt: int = 0
    attempt_id: str = ""
    created_attempt: int = 0
    created: indexes.Indexes = NONE
    go_attempt: int = 0
    reclaims: int = 0
    failures: int = 0
    workers: Workers = Workers()
    step: int | None = None
    progress: Progress = Progress()
    checkpoint: Checkpoint | None = None
    last_reclaim: Reclaim | None = None
    attempts: tuple[Attempt, ...] = ()
    start: dt.datetime | None = None
    completion: dt.datetime | None = None
    next_retry: dt.datetime | None = None
    shards: shard.Shards | None = None
    """Of an Independent job that was begun."""
    active_since: dt.datetime | None = None
    storm: Storm = Storm()
    failed_nodes: tuple[FailedNode, ...] = ()
    fallback: Fallback | None = None
    restart: float | None = None
    """Seconds that a start of this job takes, as measured (`plan/outlook.py`)."""
    cost: ledgers.Ledger = ledgers.EMPTY

    @property
    def over(self) -> bool:
        """The decision has been taken: complete or failed, for ever, or an end that a newer version knows."""
        if isinstance(self.phase, Phase):
            return self.phase in {Phase.COMPLETE, Phase.FAILED}
        return self.completion is not None

    def decides_as(self, other: "Status") -> bool:
        """Whatever follows from the one follows from the other: they differ in words and counts alone.

        Counts of workers, `go_attempt`, the words of conditions, what is told of progress beside the step,
        the steps of each attempt and what all costs are for people; no policy reads them, but for the one of
        `completeBy`, which can do with what was written last. Which workers were seen is for an operator that
        comes after this one alone. All of it is written within seconds.
        """
        return self.decisions == other.decisions

    @property
    def decisions(self) -> tuple["Status", dict[str, tuple[bool | None, str, int]]]:
        """The status without its words, and what its conditions hold true."""
        counted = Workers(self.workers.desired, indexes=self.workers.indexes)
        bare = dataclasses.replace(
            self,
            workers=counted,
            conditions=(),
            go_attempt=0,
            created_attempt=0,
            created=NONE,
            progress=Progress(),
            checkpoint=None,
            attempts=tuple(
                dataclasses.replace(one, resume_step=None, last_step=None) for one in self.attempts
            ),
            cost=ledgers.EMPTY,
        )
        return bare, words.decided(self.conditions)


def parse(raw: cabc.Mapping[str, Any]) -> Status:
    """A Status from the resource's `status`, which may be empty."""
    workers = raw.get("workers") or {}
    return Status(
        phase=_word(Phase, raw.get("phase") or Phase.PENDING),
        conditions=tuple(_condition(one) for one in raw.get("conditions", ())),
        observed_generation=raw.get("observedGeneration", 0),
        attempt=raw.get("attempt", 0),
        attempt_id=raw.get("attemptID", ""),
        created_attempt=raw.get("createdAttempt", 0),
        created=indexes.parse(raw.get("createdIndexes", "")),
        go_attempt=raw.get("goAttempt", 0),
        reclaims=raw.get("reclaims", 0),
        failures=raw.get("failures", 0),
        workers=Workers(
            desired=workers.get("desired", 0),
            running=workers.get("running", 0),
            on_demand=workers.get("onDemand", 0),
            spot=workers.get("spot", 0),
            succeeded=workers.get("succeeded", 0),
            indexes=workers.get("indexes", 0),
            fallback=workers.get("fallback", 0),
        ),
        step=(raw.get("progress") or {}).get("step"),
        progress=_progress(raw.get("progress") or {}),
        checkpoint=_checkpoint(raw.get("checkpoint") or {}),
        last_reclaim=_reclaim(raw.get("lastReclaim")),
        attempts=tuple(_attempt(one) for one in raw.get("attempts", ())),
        start=duration.optional_time(raw.get("startTime")),
        completion=duration.optional_time(raw.get("completionTime")),
        next_retry=duration.optional_time(raw.get("nextRetryTime")),
        shards=shard.parse(raw),
        active_since=duration.optional_time(raw.get("activeSince")),
        storm=_storm(raw.get("storm") or {}),
        failed_nodes=tuple(_failed_node(one) for one in raw.get("failedNodes", ())),
        fallback=_fallback(raw.get("fallback") or {}),
        restart=raw.get("restartSeconds"),
        cost=ledgers.parse(raw.get("cost") or {}),
    )


def render(status: Status) -> dict[str, Any]:
    """The resource's `status`; absent values are left out."""
    return _without_none(_all_fields(status))


def _all_fields(status: Status) -> dict[str, Any]:
    workers, storm = status.workers, status.storm
    return {
        "phase": str(status.phase),
        "conditions": [_render_condition(one) for one in status.conditions],
        "observedGeneration": status.observed_generation,
        "attempt": status.attempt,
        "attemptID": status.attempt_id or None,
        "createdAttempt": status.created_attempt,
        "createdIndexes": status.created.text or None,
        "goAttempt": status.go_attempt,
        "reclaims": status.reclaims,
        "failures": status.failures,
        "workers": {
            "desired": workers.desired,
            "running": workers.running,
            "onDemand": workers.on_demand,
            "spot": workers.spot,
            "succeeded": workers.succeeded,
            "fallback": workers.fallback,
            **({} if status.shards is None else {"indexes": workers.indexes}),
        },
        "workersText": f"{workers.running}/{workers.desired}",
        "progress": _render_progress(status) or None,
        "checkpoint": _render_checkpoint(status.checkpoint),
        "lastReclaim": _render_reclaim(status.last_reclaim),
        "attempts": [_render_attempt(one) for one in status.attempts],
        "startTime": _time(status.start),
        "completionTime": _time(status.completion),
        "nextRetryTime": _time(status.next_retry),
        **shard.render(status.shards),
        "finishedText": None if status.shards is None else f"{workers.succeeded}/{workers.indexes}",
        "activeSince": _time(status.active_since),
        "storm": None if storm == Storm() else _without_none(dataclasses.asdict(storm)),
        "failedNodes": [_render_failed_node(one) for one in status.failed_nodes] or None,
        "fallback": _render_fallback(status.fallback),
        "restartSeconds": status.restart,
        "cost": ledgers.render(status.cost),
    }


def _time(moment: dt.datetime | None) -> str | None:
    return None if moment is None else duration.format_time(moment)


def _without_none(raw: cabc.Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value is not None}


def _word(known: type[_Words], text: str) -> _Words | str:
    try:
        return known(text)
    except ValueError:
        return text


_STATUS_TEXT = {True: "True", False: "False", None: "Unknown"}
_STATUS_VALUE = {text: value for value, text in _STATUS_TEXT.items()}


def _condition(raw: cabc.Mapping[str, Any]) -> Condition:
    return Condition(
        type=raw["type"],
        status=_STATUS_VALUE.get(raw["status"]),
        reason=raw["reason"],
        message=raw["message"],
        since=duration.parse_time(raw["lastTransitionTime"]),
        generation=raw.get("observedGeneration", 0),
    )


def _render_condition(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": _STATUS_TEXT[condition.status],
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": duration.format_time(condition.since),
        "observedGeneration": condition.generation,
    }


def _storm(raw: cabc.Mapping[str, Any]) -> Storm:
    return Storm(reclaims=raw.get("reclaims", 0), step=raw.get("step"))


def _fallback(raw: cabc.Mapping[str, Any]) -> Fallback | None:
    if "since" not in raw:
        return None
    until = duration.optional_time(raw.get("until"))
    return Fallback(duration.parse_time(raw["since"]), until, raw.get("times", 1))


def _render_fallback(fallback: Fallback | None) -> dict[str, Any] | None:
    """With `until` even where there is none: a merge patch takes away what is null, not what is left out."""
    if fallback is None:
        return None
    return {"since": _time(fallback.since), "until": _time(fallback.until), "times": fallback.times}


def _failed_node(raw: cabc.Mapping[str, Any]) -> FailedNode:
    return FailedNode(raw["name"], raw["uid"], raw["failures"], duration.parse_time(raw["time"]))


def _render_failed_node(node: FailedNode) -> dict[str, Any]:
    return {"name": node.name, "uid": node.uid, "failures": node.failures, "time": _time(node.time)}


def _progress(raw: cabc.Mapping[str, Any]) -> Progress:
    return Progress(raw.get("total"), raw.get("perSecond"), duration.optional_time(raw.get("time")))


def _render_progress(status: Status) -> dict[str, Any]:
    told = status.progress
    return _without_none(
        {
            "step": status.step,
            "total": told.total,
            "perSecond": told.per_second,
            "time": _time(told.time),
        }
    )


def _checkpoint(raw: cabc.Mapping[str, Any]) -> Checkpoint | None:
    if "step" not in raw:
        return None
    return Checkpoint(raw["step"], duration.optional_time(raw.get("time")), raw.get("saveSeconds"))


def _render_checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    if checkpoint is None:
        return None
    return _without_none(
        {
            "step": checkpoint.step,
            "time": _time(checkpoint.time),
            "saveSeconds": checkpoint.save_seconds,
        }
    )


def _attempt(raw: cabc.Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=raw["number"],
        id=raw["id"],
        cause=_word(Cause, raw["cause"]),
        start=duration.parse_time(raw["startTime"]),
        reason=raw.get("reason", ""),
        detail=raw.get("detail", ""),
        node=raw.get("node", ""),
        index=raw.get("index"),
        running=duration.optional_time(raw.get("runningTime")),
        end=duration.optional_time(raw.get("endTime")),
        placed=duration.optional_time(raw.get("placedTime")),
        stepping=duration.optional_time(raw.get("firstStepTime")),
        on_demand=raw.get("onDemand", False),
        resume_step=raw.get("resumeStep"),
        last_step=raw.get("lastStep"),
        more=tuple(sorted((key, value) for key, value in raw.items() if key not in _ATTEMPT_FIELDS)),
    )


def _render_attempt(attempt: Attempt) -> dict[str, Any]:
    return {**dict(attempt.more), **_without_none(_attempt_fields(attempt))}


def _attempt_fields(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "id": attempt.id,
        "cause": str(attempt.cause),
        "startTime": _time(attempt.start),
        "reason": attempt.reason or None,
        "detail": attempt.detail or None,
        "node": attempt.node or None,
        "index": attempt.index,
        "runningTime": _time(attempt.running),
        "endTime": _time(attempt.end),
        "placedTime": _time(attempt.placed),
        "firstStepTime": _time(attempt.stepping),
        "onDemand": attempt.on_demand or None,
        "resumeStep": attempt.resume_step,
        "lastStep": attempt.last_step,
    }


def _reclaim(raw: cabc.Mapping[str, Any] | None) -> Reclaim | None:
    if not raw:
        return None
    return Reclaim(
        time=duration.parse_time(raw["time"]),
        cause=raw["cause"],
        node=raw.get("node", ""),
        zone=raw.get("zone", ""),
        capacity=raw.get("capacity", ""),
        provider=raw.get("provider", ""),
        index=raw.get("index", 0),
        attempt=raw.get("attempt", 0),
        instance_type=raw.get("instanceType", ""),
    )


def _render_reclaim(reclaim: Reclaim | None) -> dict[str, Any] | None:
    if reclaim is None:
        return None
    return {
        "time": _time(reclaim.time),
        "cause": reclaim.cause,
        "node": reclaim.node,
        "zone": reclaim.zone,
        "capacity": reclaim.capacity,
        "provider": reclaim.provider,
        "index": reclaim.index,
        "attempt": reclaim.attempt,
        "instanceType": reclaim.instance_type,
    }


FIELDS = frozenset(_all_fields(Status(shards=shard.Shards()))) - {"progress"}
"""Of `status`, those that this version takes away when it has no value for them. What else is found there is
a newer version's and is left alone; so is `progress`, of which we know a part, and which never goes back."""
_ATTEMPT_FIELDS = frozenset(
    _attempt_fields(Attempt(0, "", Cause.INITIAL, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)))
)
