"""`/metrics` of a run, in Prometheus' text format, version 0.0.4.

Written by hand: a program that trains needs nothing installed beside this library, and the registry of
prometheus_client is the process's, which is the program's own to use.
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "spottrain_run_"


@dataclass(frozen=True)
class Tally:
    """What adds up over one life of a run. All times are seconds."""

    steps: int = 0
    saves: int = 0
    failed: int = 0
    blocked: float = 0.0
    upload: float = 0.0

    def saved(self, *, blocked: float, whole: float) -> "Tally":
        """With one more save that was committed."""
        upload = self.upload + max(whole - blocked, 0.0)
        return replace(self, saves=self.saves + 1, blocked=self.blocked + blocked, upload=upload)


@dataclass(frozen=True)
class Reading:
    """A run at one moment. None is not known, and is left out."""

    tally: Tally
    step: int | None = None
    total: int | None = None
    rate: float | None = None
    resumed_from: int | None = None
    restore: float | None = None
    skipped: int | None = None
    saved_step: int | None = None
    saved_time: float | None = None
    interval: float | None = None
    unsaved: float | None = None
    stop: float | None = None
    grace: float | None = None


def render(now: Reading) -> bytes:
    """The page."""
    return "".join(_lines(now)).encode()


def _lines(now: Reading) -> Iterator[str]:
    tally = now.tally
    yield from _one("step", "gauge", "Last step that was done", now.step)
    yield from _one("goal_steps", "gauge", "Steps of the whole run, where it is known", now.total)
    yield from _one("steps_total", "counter", "Steps done in this life", tally.steps)
    yield from _one("steps_per_second", "gauge", "Over the last 100 steps, with what lies between", now.rate)
    yield from _one("resumed_from_step", "gauge", "Step of the checkpoint gone on from", now.resumed_from)
    yield from _one("restore_seconds", "gauge", "From the claim until the state was loaded", now.restore)
    yield from _one(
        "checkpoints_skipped_total", "counter", "Damaged checkpoints passed over by restore", now.skipped
    )
    yield from _one("checkpoint_step", "gauge", "Step of the newest checkpoint", now.saved_step)
    yield from _one(
        "checkpoint_timestamp_seconds", "gauge", "When it was committed, Unix time", now.saved_time
    )
    yield from _one("save_interval_seconds", "gauge", "Between saves, as it is wanted now", now.interval)
    yield from _one(
        "unsaved_seconds", "gauge", "Training that a loss without notice would cost now", now.unsaved
    )
    outcomes = (('{outcome="committed"}', tally.saves), ('{outcome="failed"}', tally.failed))
    yield from _metric("saves_total", "counter", "Saves of this life", outcomes)
    for name, text, seconds in (
        ("save_blocked_seconds", "For which committed saves held training up, slowest rank", tally.blocked),
        ("save_upload_seconds", "From local files to the commit", tally.upload),
    ):
        yield from _metric(name, "summary", text, (("_sum", seconds), ("_count", tally.saves)))
    yield from _one("stop_seconds", "gauge", "What a stop takes until its save is committed", now.stop)
    yield from _one("grace_seconds", "gauge", "From SIGTERM to SIGKILL", now.grace)


def _one(name: str, kind: str, text: str, value: float | None) -> Iterator[str]:
    if value is not None:
        yield from _metric(name, kind, text, (("", value),))


def _metric(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    """`samples`: what follows the name, and the value."""
    full = _PREFIX + name
    yield f"# HELP {full} {text}\n# TYPE {full} {kind}\n"
    for suffix, value in samples:
        yield f"{full}{suffix} {value!r}\n"
