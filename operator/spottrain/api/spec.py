"""The `spec` of a SpotTrainingJob, parsed once at the edge into frozen values."""

import collections.abc as cabc
import dataclasses
import enum
import math
from typing import Any

from spottrain.api import duration


class InvalidSpecError(ValueError):
    """A spec that admission let through and can't be acted on; the text names field and remedy."""


class Spread(enum.StrEnum):
    """Where the workers of a gang stand to each other."""

    ZONE = "zone"
    PACK = "pack"
    NONE = "none"


@dataclasses.dataclass(frozen=True)
class Spot:
    """How far the job trusts spot capacity. `floor` is a number of workers; durations are seconds."""

    floor: int = 0
    window: float | None = None
    grace: float | None = None
    spread: Spread = Spread.PACK


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where and how checkpoints are kept; `interval` is seconds, None for auto."""

    uri: str
    endpoint: str = ""
    region: str = ""
    keep: int = 3
    interval: float | None = None
    restore: str = "Latest"
    step: int | None = None
    on_broken: str = "Stop"


@dataclasses.dataclass(frozen=True)
class Spec:
    """A SpotTrainingJob's wishes. `template` is the PodTemplateSpec as written; times are seconds.

    `worker_hostnames`: each worker has a DNS name, not worker 0 alone.
    """

    workers: int
    template: cabc.Mapping[str, Any]
    checkpoint: Checkpoint
    spot: Spot = Spot()
    max_failures: int = 3
    suspend: bool = False
    placement_timeout: float = 900.0
    ttl: float | None = None
    active_deadline: float | None = None
    progress_timeout: float | None = None
    worker_hostnames: bool = False


def parse(raw: cabc.Mapping[str, Any]) -> Spec:
    """A Spec from the resource's `spec`.

    Raises:
        InvalidSpecError: names the field and says what to write instead.

    """
    workers = _integer(raw.get("workers", 1), "spec.workers", least=1)
    if raw.get("mode", "Gang") != "Gang":
        raise InvalidSpecError("spec.mode: this version runs Gang only")
    template = raw.get("template")
    if not isinstance(template, cabc.Mapping) or not template.get("spec", {}).get("containers"):
        raise InvalidSpecError("spec.template.spec.containers: name at least one container")
    return Spec(
        workers=workers,
        template=template,
        checkpoint=_checkpoint(raw.get("checkpoint") or {}),
        spot=_spot(raw.get("spot") or {}, workers),
        max_failures=_integer(raw.get("maxFailures", 3), "spec.maxFailures", least=0),
        suspend=bool(raw.get("suspend", False)),
        placement_timeout=_seconds(raw.get("placementTimeout", "15m"), "spec.placementTimeout") or 0.0,
        ttl=_seconds(raw.get("ttlAfterFinished"), "spec.ttlAfterFinished"),
        progress_timeout=_seconds(raw.get("progressTimeout"), "spec.progressTimeout"),
        active_deadline=_seconds(raw.get("activeDeadline"), "spec.activeDeadline"),
        worker_hostnames=bool(raw.get("workerHostnames", False)),
    )


def _spot(raw: cabc.Mapping[str, Any], workers: int) -> Spot:
    default = Spread.PACK if workers > 1 else Spread.ZONE
    try:
        spread = Spread(raw.get("spread", default))
    except ValueError:
        raise InvalidSpecError("spec.spot.spread: write zone, pack or none") from None
    return Spot(
        floor=_floor(raw.get("onDemandFloor", 0), workers),
        window=_seconds(raw.get("window"), "spec.spot.window"),
        grace=_seconds(raw.get("gracePeriod"), "spec.spot.gracePeriod"),
        spread=spread,
    )


def _floor(raw: Any, workers: int) -> int:
    """Workers on on-demand nodes; a percentage is rounded up, so that 25% of 3 is one."""
    field = "spec.spot.onDemandFloor"
    if isinstance(raw, str):
        if not raw.endswith("%") or not raw[:-1].isdigit():
            raise InvalidSpecError(
                f'{field}: "{raw}" is neither a number of workers nor a percentage like 25%'
            )
        raw = math.ceil(workers * int(raw[:-1]) / 100)
    floor = _integer(raw, field, least=0)
    if floor > workers:
        raise InvalidSpecError(
            f"{field}: {floor} is more than the {workers} workers; lower it or add workers"
        )
    return floor


def _checkpoint(raw: cabc.Mapping[str, Any]) -> Checkpoint:
    uri = raw.get("uri", "")
    if not uri.startswith(("s3://", "file:///")):
        raise InvalidSpecError(
            "spec.checkpoint.uri: write s3://bucket/prefix, or file:///path on a volume all workers share"
        )
    interval = raw.get("interval", "auto")
    return Checkpoint(
        uri=uri,
        endpoint=raw.get("endpoint", ""),
        region=raw.get("region", ""),
        keep=_integer(raw.get("keep", 3), "spec.checkpoint.keep", least=1),
        interval=None if interval == "auto" else _seconds(interval, "spec.checkpoint.interval"),
        restore=raw.get("restore", "Latest"),
        step=raw.get("step"),
        on_broken=raw.get("onBroken", "Stop"),
    )


def _integer(value: Any, field: str, *, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidSpecError(f"{field}: write a whole number of at least {least}")
    return value


def _seconds(value: Any, field: str) -> float | None:
    if value is None:
        return None
    try:
        return duration.parse_seconds(str(value))
    except ValueError as error:
        raise InvalidSpecError(f"{field}: {error}") from error
