"""The `spec` of a SpotTrainingJob, parsed once at the edge into frozen values."""

import collections.abc as cabc
import dataclasses
import datetime as dt
import enum
import math
import re
from typing import Any

from spottrain.api import allowed, duration
from spottrain.api import prices as price


class InvalidSpecError(ValueError):
    """A spec that admission let through and can't be acted on; the text names field and remedy."""


DEFAULT_FAILURES = 3
DEFAULT_PARALLELISM = 50
LARGEST_GANG = 1000
LONGEST = 10 * 366 * 86400.0
"""Seconds: times so far from now can still be reckoned with."""


class Mode(enum.StrEnum):
    """How workers depend on each other."""

    GANG = "Gang"
    INDEPENDENT = "Independent"


class Spread(enum.StrEnum):
    """Where the workers of a gang stand to each other."""

    ZONE = "zone"
    PACK = "pack"
    NONE = "none"


@dataclasses.dataclass(frozen=True)
class Fallback:
    """How many seconds a worker waits for a spot node, and for how many it may then be on on-demand too."""

    after: float = 900.0
    length: float = 7200.0


@dataclasses.dataclass(frozen=True)
class Spot:
    """How far the job trusts spot capacity. `floor` is a number of workers; durations are seconds."""

    floor: int = 0
    window: float | None = None
    grace: float | None = None
    spread: Spread = Spread.PACK
    keep_training: bool = False
    """After a notice the gang trains on for as long as its save will still fit."""
    fallback: Fallback | None = None
    pools: allowed.Entries = ()
    """Where on spot workers may run; none: in every pool."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where and how checkpoints are kept; `interval` is seconds, None for auto.

    `uri` is empty where an Independent job leaves it to its program. `directory`: where a program that
    doesn't use the library writes its own, empty for one that does.
    """

    uri: str
    endpoint: str = ""
    region: str = ""
    keep: int = 3
    interval: float | None = None
    restore: str = "Latest"
    step: int | None = None
    on_broken: str = "Stop"
    directory: str = ""


@dataclasses.dataclass(frozen=True)
class Spec:
    """A SpotTrainingJob's wishes. `template` is the PodTemplateSpec as written; times are seconds.

    `worker_hostnames`: each worker has a DNS name, not worker 0 alone.

    `max_failures` counts those of the whole job, None for no limit; the two others speak of the indexes of an
    Independent job: failures that each may have, and how many may end as failed (None: all of them).
    """

    workers: int
    template: cabc.Mapping[str, Any]
    checkpoint: Checkpoint
    spot: Spot = Spot()
    max_failures: int | None = DEFAULT_FAILURES
    suspend: bool = False
    placement_timeout: float = 900.0
    ttl: float | None = None
    active_deadline: float | None = None
    progress_timeout: float | None = None
    complete_by: dt.datetime | None = None
    worker_hostnames: bool = False
    mode: Mode = Mode.GANG
    parallelism: int = DEFAULT_PARALLELISM
    max_failures_per_index: int = DEFAULT_FAILURES
    max_failed_indexes: int | None = None
    prices: price.Prices | None = None

    @property
    def independent(self) -> bool:
        """Each index runs by itself."""
        return self.mode is Mode.INDEPENDENT

    @property
    def at_once(self) -> int:
        """The most workers that run at the same time."""
        return min(self.workers, self.parallelism) if self.independent else self.workers


def parse(raw: cabc.Mapping[str, Any]) -> Spec:
    """A Spec from the resource's `spec`.

    Raises:
        InvalidSpecError: names the field and says what to write instead.

    """
    workers = _integer(raw.get("workers", 1), "spec.workers", least=1)
    mode = _mode(raw, workers)
    parallelism = _integer(raw.get("parallelism", DEFAULT_PARALLELISM), "spec.parallelism", least=1)
    at_once = min(workers, parallelism) if mode is Mode.INDEPENDENT else workers
    template = raw.get("template")
    if not isinstance(template, cabc.Mapping) or not template.get("spec", {}).get("containers"):
        raise InvalidSpecError("spec.template.spec.containers: name at least one container")
    spot = _spot(raw.get("spot") or {}, at_once, mode)
    _check_alternatives(spot.pools, template["spec"])
    placement = _seconds(raw.get("placementTimeout", "15m"), "spec.placementTimeout") or 0.0
    if mode is Mode.GANG and workers > 1:
        _check_order(spot.fallback, placement)
    return Spec(
        workers=workers,
        template=template,
        checkpoint=_checkpoint(raw.get("checkpoint") or {}, mode),
        spot=spot,
        suspend=bool(raw.get("suspend", False)),
        placement_timeout=placement,
        ttl=_seconds(raw.get("ttlAfterFinished"), "spec.ttlAfterFinished"),
        progress_timeout=_progress_timeout(raw, mode),
        active_deadline=_seconds(raw.get("activeDeadline"), "spec.activeDeadline"),
        complete_by=_complete_by(raw, mode),
        worker_hostnames=bool(raw.get("workerHostnames", False)),
        mode=mode,
        parallelism=parallelism,
        prices=_prices(raw.get("prices")),
        **_budgets(raw, mode),
    )


def _progress_timeout(raw: cabc.Mapping[str, Any], mode: Mode) -> float | None:
    timeout = _seconds(raw.get("progressTimeout"), "spec.progressTimeout")
    if timeout is not None and mode is not Mode.GANG:
        raise InvalidSpecError(
            "spec.progressTimeout: only a gang is watched; leave it out, and set activeDeadlineSeconds in "
            "spec.template.spec"
        )
    return timeout


_TIME = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _complete_by(raw: cabc.Mapping[str, Any], mode: Mode) -> dt.datetime | None:
    text = raw.get("completeBy")
    if text is None:
        return None
    if mode is not Mode.GANG:
        raise InvalidSpecError(
            "spec.completeBy: the work left is only known of a gang; leave it out, and set "
            "spec.spot.onDemandFloor for the workers that must not wait for spot"
        )
    try:
        if _TIME.fullmatch(str(text)):
            return duration.parse_time(str(text))
    except ValueError:
        pass
    raise InvalidSpecError(
        f'spec.completeBy: "{text}" is not a time; write date, time and zone, like 2026-12-01T08:00:00Z'
    )


def _mode(raw: cabc.Mapping[str, Any], workers: int) -> Mode:
    try:
        mode = Mode(raw.get("mode", Mode.GANG))
    except ValueError:
        raise InvalidSpecError("spec.mode: this version runs Gang and Independent") from None
    if mode is Mode.GANG and workers > LARGEST_GANG:
        raise InvalidSpecError(f"spec.workers: a gang has at most {LARGEST_GANG}; only Independent has more")
    return mode


def _budgets(raw: cabc.Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    """The limits of failures. A gang has one; indexes have three, as those of an Indexed Job."""
    whole = _optional_integer(raw.get("maxFailures"), "spec.maxFailures")
    default = DEFAULT_FAILURES if whole is None else whole
    if mode is Mode.GANG:
        return {"max_failures": default}
    each = _integer(raw.get("maxFailuresPerIndex", default), "spec.maxFailuresPerIndex", least=0)
    failed = _optional_integer(raw.get("maxFailedIndexes"), "spec.maxFailedIndexes")
    return {"max_failures": whole, "max_failures_per_index": each, "max_failed_indexes": failed}


def _spot(raw: cabc.Mapping[str, Any], workers: int, mode: Mode) -> Spot:
    """`workers`: how many run at once, of which the floor is a part."""
    default = Spread.PACK if workers > 1 and mode is Mode.GANG else Spread.ZONE
    try:
        spread = Spread(raw.get("spread", default))
    except ValueError:
        raise InvalidSpecError("spec.spot.spread: write zone, pack or none") from None
    return Spot(
        floor=_floor(raw.get("onDemandFloor", 0), workers, mode),
        window=_seconds(raw.get("window"), "spec.spot.window"),
        grace=_seconds(raw.get("gracePeriod"), "spec.spot.gracePeriod"),
        spread=spread,
        keep_training=_keep_training(raw, mode),
        fallback=_fallback(raw.get("fallback")),
        pools=_pools(raw.get("pools")),
    )


def _keep_training(raw: cabc.Mapping[str, Any], mode: Mode) -> bool:
    keep = bool(raw.get("keepTraining", False))
    if keep and mode is not Mode.GANG:
        raise InvalidSpecError(
            "spec.spot.keepTraining: only a gang trains on after a notice, as only its saves are measured; "
            "leave it out"
        )
    return keep


def _pools(raw: object) -> allowed.Entries:
    try:
        return () if raw is None else allowed.parse(raw)
    except ValueError as error:
        raise InvalidSpecError(f"spec.spot.pools: {error}") from error


def _check_alternatives(pools: allowed.Entries, pod: cabc.Mapping[str, Any]) -> None:
    """Each required node term of the template is combined with each place: a pod could have megabytes."""
    places, terms = len(allowed.rectangles(pools)), _required_terms(pod) or 1
    if places * terms > allowed.MOST:
        raise InvalidSpecError(
            f"spec.spot.pools: {places} places that can't be written as one, each with the {terms} required "
            f"node terms of spec.template, make {places * terms} alternatives in every pod, more than "
            f"{allowed.MOST}: name zones alone, or instance types alone, or write fewer nodeSelectorTerms"
        )


def _required_terms(pod: cabc.Mapping[str, Any]) -> int:
    """How many the template has; none where it isn't what the API server takes, which will say so."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: Any = pod
    for key in ("affinity", "nodeAffinity", required, "nodeSelectorTerms"):
        found = found.get(key) if isinstance(found, cabc.Mapping) else None
    return len(found) if isinstance(found, list) else 0


def _fallback(raw: cabc.Mapping[str, Any] | None) -> Fallback | None:
    if raw is None:
        return None
    after = _seconds(raw.get("after", "15m"), "spec.spot.fallback.after") or 0.0
    length = _seconds(raw.get("for", "2h"), "spec.spot.fallback.for")
    if not length:
        raise InvalidSpecError("spec.spot.fallback.for: write a duration longer than 0, for example 2h")
    return Fallback(after, length)


def _check_order(fallback: Fallback | None, placement: float) -> None:
    """A gang that gives its nodes back begins to wait anew, and would never have waited for long enough."""
    if fallback is not None and fallback.after > placement:
        raise InvalidSpecError(
            f"spec.spot.fallback.after: {duration.format_seconds(fallback.after)} is longer than "
            f"spec.placementTimeout ({duration.format_seconds(placement)}), after which a gang that is not "
            "whole gives its nodes back and waits anew: lower the one or raise the other"
        )


def _floor(raw: Any, workers: int, mode: Mode) -> int:
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
        which = "workers" if mode is Mode.GANG else "workers that run at once"
        raise InvalidSpecError(
            f"{field}: {floor} is more than the {workers} {which}; lower it or add workers"
        )
    return floor


def _prices(raw: cabc.Mapping[str, Any] | None) -> price.Prices | None:
    if raw is None:
        return None
    missing = [key for key in ("spot", "onDemand") if key not in raw]
    if missing:
        raise InvalidSpecError(f"spec.prices.{missing[0]} is missing: one price says nothing; write both")
    return price.Prices(_price(raw, "spot"), _price(raw, "onDemand"))


def _price(raw: cabc.Mapping[str, Any], key: str) -> price.Amount:
    given = raw[key]
    # A third of 1, reckoned by a tool, has more digits than anybody means.
    text = f"{given:.{price.DECIMALS}f}".rstrip("0").rstrip(".") if isinstance(given, float) else str(given)
    try:
        return price.parse(text)
    except ValueError as error:
        raise InvalidSpecError(f"spec.prices.{key}: {error}") from error


def _checkpoint(raw: cabc.Mapping[str, Any], mode: Mode) -> Checkpoint:
    uri = raw.get("uri", "")
    left_out = mode is Mode.INDEPENDENT and not uri
    if not left_out and not uri.startswith(("s3://", "gs://", "az://", "file:///")):
        raise InvalidSpecError(
            "spec.checkpoint.uri: write s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or "
            "file:///path on a volume all workers share"
        )
    interval = raw.get("interval", "auto")
    directory = raw.get("directory", "")
    _check_directory(directory, uri, interval)
    return Checkpoint(
        uri=uri,
        endpoint=raw.get("endpoint", ""),
        region=raw.get("region", ""),
        keep=_integer(raw.get("keep", 3), "spec.checkpoint.keep", least=1),
        interval=None if interval == "auto" else _seconds(interval, "spec.checkpoint.interval"),
        restore=raw.get("restore", "Latest"),
        step=raw.get("step"),
        on_broken=raw.get("onBroken", "Stop"),
        directory=directory,
    )


_DIRECTORY = re.compile(r"(/[^/:\s]+)+")


def _check_directory(directory: str, uri: str, interval: str) -> None:
    field = "spec.checkpoint.directory"
    if not directory:
        return
    if not uri:
        raise InvalidSpecError(
            f"{field} needs spec.checkpoint.uri, where what is written there is kept: set it"
        )
    if not _DIRECTORY.fullmatch(directory) or {".", ".."} & set(directory.split("/")):
        raise InvalidSpecError(
            f"{field}: write an absolute path without '.', '..', colons, spaces or a slash at its end, for "
            "example /checkpoints"
        )
    if interval != "auto":
        raise InvalidSpecError(
            f"spec.checkpoint.interval is for programs that use the library: with {field} the program saves "
            "when it likes, so leave the interval out"
        )


def _integer(value: Any, field: str, *, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidSpecError(f"{field}: write a whole number of at least {least}")
    return value


def _optional_integer(value: Any, field: str) -> int | None:
    return None if value is None else _integer(value, field, least=0)


def _seconds(value: Any, field: str) -> float | None:
    if value is None:
        return None
    try:
        seconds = duration.parse_seconds(str(value))
    except ValueError as error:
        raise InvalidSpecError(f"{field}: {error}") from error
    if seconds > LONGEST:
        raise InvalidSpecError(f'{field}: "{value}" is longer than ten years; write less, for example 365d')
    return seconds
