"""`list`: a line for each job, with the columns that people know from `sky jobs queue`. Pure."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from spottrain.api import duration
from spottrain.cli import paint, words
from spottrain.cli.history import History

_NONE = "-"


def lines(found: Sequence[History], now: dt.datetime, *, everywhere: bool = False) -> list[paint.Line]:
    """A table, each job in the colour of its phase; `everywhere`: with the namespaces."""
    heads = ["NAME", "PHASE", "WALL", "USEFUL", "RECLAIMS", "FAILURES", "PROGRESS", "WORKERS", "SPOT/OD"]
    heads += ["CHECKPOINT"]
    rows = [_row(one, now) for one in found]
    if any("saved" in one.cost for one in found):
        heads += ["SAVED"]
        rows = [[*row, str(one.cost.get("saved", _NONE))] for row, one in zip(rows, found, strict=True)]
    if everywhere:
        heads = ["NAMESPACE", *heads]
        rows = [[one.namespace, *row] for row, one in zip(rows, found, strict=True)]
    head, *texts = words.table(heads, rows).split("\n")
    tones = [paint.of_phase(one.status.phase) for one in found]
    return [paint.Line(head, "head"), *map(paint.Line, texts, tones)]


def _row(one: History, now: dt.datetime) -> list[str]:
    status, workers = one.status, one.status.workers
    return [
        one.name,
        status.phase,
        words.span(one.wall(now)),
        useful(one, now),
        str(status.reclaims),
        str(status.failures),
        progress(one),
        f"{workers.running}/{workers.desired}",
        f"{workers.spot}/{workers.on_demand}",
        checkpoint_age(one, now) or _NONE,
    ]


def useful(one: History, now: dt.datetime) -> str:
    """See History.useful; at least that, if attempts are no longer known."""
    if one.independent:
        return _NONE
    return words.span(one.useful(now)) + ("" if one.whole else "+")


def progress(one: History) -> str:
    """Steps, or finished indexes."""
    if one.independent:
        return f"{one.status.workers.succeeded}/{one.status.workers.indexes or one.spec.get('workers', 1)}"
    step, total = one.status.step, one.status.progress.total
    if step is None:
        return _NONE
    # As `kubectl get` shows it. Steps are counted from 0: with step 299 of 300 all is done.
    return f"{step}/{total} ({min(1, (step + 1) / total):.0%})" if total else str(step)


def checkpoint_age(one: History, now: dt.datetime) -> str:
    """How old the newest checkpoint is; empty if none is known."""
    made = one.status.checkpoint.time if one.status.checkpoint else None
    return words.span((now - made).total_seconds()) if made else ""


def plain(one: History, now: dt.datetime) -> dict[str, Any]:
    """The same for programs."""
    status = one.status
    return {
        "namespace": one.namespace,
        "name": one.name,
        "mode": one.mode,
        "phase": str(status.phase),
        "wallSeconds": round(one.wall(now)),
        "usefulSeconds": None if one.independent else round(one.useful(now)),
        "usefulIsAll": one.whole,
        "reclaims": status.reclaims,
        "failures": status.failures,
        "attempt": status.attempt,
        "step": status.step,
        "totalSteps": status.progress.total,
        "workers": {
            "desired": status.workers.desired,
            "running": status.workers.running,
            "spot": status.workers.spot,
            "onDemand": status.workers.on_demand,
            "succeeded": status.workers.succeeded,
        },
        "checkpoint": status.checkpoint
        and {
            "step": status.checkpoint.step,
            "time": status.checkpoint.time and duration.format_time(status.checkpoint.time),
        },
        "cost": dict(one.cost) or None,
    }
