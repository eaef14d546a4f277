"""What a run is told, by the operator's environment variables or by the program; read once, at the edge."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, location, store

AUTO = "auto"
DEFAULT_KEEP = 3
DEFAULT_GRACE = 30.0
# torchrun's agent kills its workers this long after it passed SIGTERM on, unless told otherwise.
TORCHRUN_SHUTDOWN = 30.0
TERMINATION_LOG = "/dev/termination-log"


@dataclass(frozen=True)
class Settings:
    """`interval`: seconds, None for automatic. `grace`: seconds from SIGTERM to SIGKILL.

    `workers`: pods that train together; an index of an Independent job is alone. `resizable`: checkpoints of
    another number of ranks are loaded, whatever each had of its own.
    """

    location: location.Location
    attempt_id: str = ""
    attempt: int = 0
    job_uid: str = ""
    workers: int = 1
    keep: int = DEFAULT_KEEP
    interval: float | None = None
    wish: str = lineage.LATEST
    start_fresh_when_broken: bool = False
    resizable: bool = False
    grace: float = DEFAULT_GRACE
    go_file: Path | None = None
    termination_log: Path | None = None
    scratch: Path | None = None
    progress_port: int | None = None
    in_cluster: bool = False

    def claimant(self, drawn_id: str) -> claim.Claimant:
        """Who this run is to the store; `drawn_id` is used when the operator gave no attempt id."""
        return claim.Claimant(
            attempt_id=self.attempt_id or drawn_id,
            job_uid=self.job_uid,
            attempt=self.attempt,
            wish=self.wish,
            start_fresh_when_broken=self.start_fresh_when_broken,
        )


@dataclass(frozen=True)
class Arguments:
    """What the program passed to `session()`; None is "not said"."""

    uri: str | None = None
    endpoint: str | None = None
    region: str | None = None
    keep: int | None = None
    interval: float | str | None = None
    restore: str | int | None = None
    on_broken: str | None = None
    on_resize: str | None = None


@dataclass(frozen=True)
class _Source:
    """In a cluster the object's word counts and the program's fills gaps; elsewhere the other way round."""

    env: Mapping[str, str]
    in_cluster: bool = field(init=False)
    independent: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_cluster", bool(self.env.get("SPOTTRAIN_JOB")))
        object.__setattr__(self, "independent", self.env.get("SPOTTRAIN_MODE") == "Independent")

    def text(self, name: str, argument: object | None, default: str = "") -> str:
        said, passed = self.env.get(name, ""), "" if argument is None else str(argument)
        return ((said or passed) if self.in_cluster else (passed or said)) or default

    def number(self, name: str, argument: float | None, default: float, *, least: float) -> float:
        text = self.text(name, argument, str(default))
        try:
            value = float(text)
        except ValueError:
            raise errors.ConfigError(f"{name} must be a number, not {text!r}") from None
        if not value >= least:
            raise errors.ConfigError(f"{name} must be at least {least:g}, not {text}")
        return value


def read(env: Mapping[str, str], arguments: Arguments, *, of_job: bool = False) -> Settings:
    """The settings; ConfigError, with what to set, when something is missing or makes no sense.

    `of_job`: the location is the one that all indexes of an Independent job share, and not this index's own.
    """
    source = _Source(env)
    attempt_id = env.get("SPOTTRAIN_ATTEMPT_ID", "")
    if attempt_id and not layout.valid_attempt_id(attempt_id):
        raise errors.ConfigError(f"SPOTTRAIN_ATTEMPT_ID must be letters and digits, not {attempt_id!r}")
    go_file = env.get("SPOTTRAIN_GO_FILE", "")
    return Settings(
        location=_location(source, arguments, of_job=of_job),
        attempt_id=attempt_id,
        attempt=int(source.number("SPOTTRAIN_ATTEMPT", None, 0, least=0)),
        job_uid=env.get("SPOTTRAIN_JOB_UID", ""),
        workers=1 if source.independent else int(source.number("SPOTTRAIN_WORKERS", None, 1, least=1)),
        keep=int(source.number("SPOTTRAIN_CHECKPOINT_KEEP", arguments.keep, DEFAULT_KEEP, least=1)),
        interval=_interval(source, arguments.interval),
        wish=_wish(source, arguments),
        start_fresh_when_broken=_on_broken(source, arguments.on_broken),
        resizable=_on_resize(source, arguments.on_resize),
        grace=_grace(source),
        go_file=Path(go_file) if go_file else None,
        termination_log=_termination_log(source),
        scratch=Path(env["SPOTTRAIN_SCRATCH"]) if env.get("SPOTTRAIN_SCRATCH") else None,
        progress_port=int(source.number("SPOTTRAIN_PROGRESS_PORT", None, 0, least=0)) or None,
        in_cluster=source.in_cluster,
    )


@dataclass(frozen=True)
class Seat:
    """One of the job's processes: number `index` of `of`, those that torchrun starts in each pod counted."""

    index: int
    of: int


def seat(env: Mapping[str, str]) -> Seat:
    """Which of the job's processes this is; the only one where nobody says."""
    source = _Source(env)
    index, pods = (
        int(source.number(name, None, default, least=default))
        for name, default in (("SPOTTRAIN_INDEX", 0), ("SPOTTRAIN_WORKERS", 1))
    )
    if "WORLD_SIZE" not in env:
        return Seat(index, pods)
    rank, world = (int(source.number(name, None, 0, least=0)) for name in ("RANK", "WORLD_SIZE"))
    return Seat(index * world + rank, pods * world) if source.independent else Seat(rank, world)


@dataclass(frozen=True)
class Ending:
    """How a process ends: `grace`, seconds from SIGTERM to SIGKILL, and the file for its last word."""

    grace: float
    termination_log: Path | None


def ending(env: Mapping[str, str]) -> Ending:
    """How this process ends; for programs that have no place for checkpoints."""
    source = _Source(env)
    return Ending(_grace(source), _termination_log(source))


def refuse_directory(env: Mapping[str, str]) -> None:
    """ConfigError where a sidecar stores what the program writes: both would save, each by its own steps."""
    if env.get("SPOTTRAIN_CHECKPOINT_DIRECTORY"):
        raise errors.ConfigError(
            "spec.checkpoint.directory is for programs that don't use the library, and this one does: take "
            "it out of the job"
        )


def draw_attempt_id() -> str:
    """An attempt id for a run that no operator started."""
    return secrets.token_hex(6)


def _location(source: _Source, arguments: Arguments, *, of_job: bool) -> location.Location:
    uri = source.text("SPOTTRAIN_CHECKPOINT_URI", arguments.uri)
    if not uri:
        raise errors.ConfigError(
            f"where should {'results' if of_job else 'checkpoints'} go? "
            "Set SPOTTRAIN_CHECKPOINT_URI, or call session(uri='s3://bucket/prefix'), or gs://, az://, file:///directory"
        )
    index = f"/{source.env.get('SPOTTRAIN_INDEX', '0')}" if source.independent else ""
    if index and not source.env.get("SPOTTRAIN_CHECKPOINT_URI"):
        # Every index runs the same program, and none may read what another has written. What the object
        # names is the index's own place already.
        uri = f"{uri.rstrip('/')}{index}"
    return location.Location(
        uri=uri.removesuffix(index) if of_job else uri,
        folders=2 if index and not of_job else 1,  # the job's, and the index's below it
        endpoint=source.text("SPOTTRAIN_CHECKPOINT_ENDPOINT", arguments.endpoint),
        region=source.text("SPOTTRAIN_CHECKPOINT_REGION", arguments.region),
        limits=store.Limits(
            connect=source.number("SPOTTRAIN_STORE_CONNECT_SECONDS", None, store.Limits.connect, least=0.1),
            read=source.number("SPOTTRAIN_STORE_READ_SECONDS", None, store.Limits.read, least=0.1),
            tries=int(source.number("SPOTTRAIN_STORE_TRIES", None, store.Limits.tries, least=1)),
        ),
    )


def _interval(source: _Source, argument: float | str | None) -> float | None:
    text = source.text("SPOTTRAIN_CHECKPOINT_INTERVAL", argument, AUTO)
    if text == AUTO:
        return None
    try:
        seconds = float(text)
    except ValueError:
        raise errors.ConfigError(f"the checkpoint interval must be auto or seconds, not {text!r}") from None
    if not seconds >= 0:
        raise errors.ConfigError(f"the checkpoint interval must not be negative: {text}")
    return seconds


def _wish(source: _Source, arguments: Arguments) -> str:
    passed = f"Step:{arguments.restore}" if isinstance(arguments.restore, int) else arguments.restore
    text = source.text("SPOTTRAIN_RESTORE", passed, lineage.LATEST)
    if text == "Step":
        text = f"Step:{source.env.get('SPOTTRAIN_RESTORE_STEP', '')}"
    wish = claim.same_wish(text)
    restarted = int(source.number("TORCHELASTIC_RESTART_COUNT", None, 0, least=0)) > 0
    # Without an operator's job uid a restart by torchrun can't be told from a new run; it must not go
    # back again.
    return lineage.LATEST if restarted and not source.in_cluster else wish


def _on_broken(source: _Source, argument: str | None) -> bool:
    text = source.text("SPOTTRAIN_ON_BROKEN", argument, "Stop")
    if text not in {"Stop", "StartFresh"}:
        raise errors.ConfigError(f"on_broken must be Stop or StartFresh, not {text!r}")
    return text == "StartFresh"


def _on_resize(source: _Source, argument: str | None) -> bool:
    text = source.text("SPOTTRAIN_ON_RESIZE", argument, "Stop")
    if text not in {"Stop", "Continue"}:
        raise errors.ConfigError(f"on_resize must be Stop or Continue, not {text!r}")
    return text == "Continue"


def _grace(source: _Source) -> float:
    grace = source.number("SPOTTRAIN_GRACE_SECONDS", None, DEFAULT_GRACE, least=0)
    if "TORCHELASTIC_RUN_ID" not in source.env:
        return grace
    name = (
        "PET_SHUTDOWN_TIMEOUT" if source.env.get("PET_SHUTDOWN_TIMEOUT") else "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
    )
    return min(grace, source.number(name, None, TORCHRUN_SHUTDOWN, least=0))


def _termination_log(source: _Source) -> Path | None:
    """One process of each pod writes it: the first on its machine."""
    if not source.in_cluster or source.env.get("LOCAL_RANK", "0") != "0":
        return None
    return Path(source.env.get("SPOTTRAIN_TERMINATION_LOG") or TERMINATION_LOG)
