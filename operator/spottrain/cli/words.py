"""How what was found is written down: tables for people, JSON for programs."""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from typing import Any

from spottrain.api import duration
from spottrain.cli import checkpoints, overview

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns, aligned to the left, two blanks apart."""
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    texts = ("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(text.rstrip() for text in texts)


def size(count: float) -> str:
    """Bytes, in the largest unit that leaves a number of 1 or more."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"


_HARMFUL = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if code not in {9, 10}
}


def harmless(text: str) -> str:
    """Without control characters: what a program wrote must not steer a terminal, nor break a page."""
    return text.translate(_HARMFUL)


def span(seconds: float) -> str:
    """A duration in its two largest units: `28s`, `4m10s`, `3h12m`, `5d3h`."""
    whole = max(0, round(seconds))
    parts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    first = next((place for place, (number, _) in enumerate(parts) if number), 3)
    return "".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number) or "0s"


def plural(count: int, noun: str) -> str:
    """The noun, with an s unless it is one."""
    return noun if count == 1 else f"{noun}s"


def worker_hours(hours: float) -> str:
    """Three digits of what is less than an hour: a small job is some minutes."""
    return f"{hours:.3g} worker-hours" if hours < 1 else f"{round(hours, 2):g} worker-hours"


def as_json(value: Any) -> str:
    """JSON, indented; moments as RFC 3339."""
    return json.dumps(value, indent=2, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return duration.format_time(value)
    raise TypeError(f"{value!r} has no place in JSON")


def save(one: overview.Save) -> dict[str, Any]:
    """A save for programs."""
    commit = one.commit
    return {
        "step": one.directory.step,
        "name": one.directory.name,
        "place": str(one.place),
        "problem": one.problem or None,
        "time": _time(one.time),
        "bytes": one.bytes,
        "files": one.files,
        "parent": one.parent,
        "attempt": commit.writer.attempt if commit else None,
        "attemptID": one.directory.attempt_id,
        "worldSize": commit.world_size if commit else None,
        "versions": dict(commit.versions) if commit else None,
        "saveSeconds": commit.seconds or None if commit else None,
        "blockedSeconds": commit.blocked if commit and commit.seconds else None,
        "stop": commit.stop if commit else None,
    }


def saves(found: overview.Overview) -> str:
    """All saves as a table."""
    heads = ("STEP", "PLACE", "TIME", "SIZE", "FILES", "SAVE", "ATTEMPT", "NAME", "PROBLEM")
    rows = [
        (
            str(one.directory.step),
            f"{one.place}, parent"
            if one.parent and one.place is not overview.Place.LATEST
            else str(one.place),
            _time(one.time) or "-",
            size(one.bytes),
            str(one.files),
            f"{one.commit.seconds:.1f} s" if one.commit and one.commit.seconds else "-",
            str(one.commit.writer.attempt or "-") if one.commit else "-",
            one.directory.name,
            one.problem,
        )
        for one in found.saves
    ]
    return table(heads, rows)


def verified(one: checkpoints.Verified) -> str:
    """A line on one checkpoint."""
    return f"{one.directory.name}: {one.problem or f'sound ({size(one.bytes)})'}"


def differences(found: Sequence[checkpoints.Difference], first: str, second: str) -> str:
    """A table, or that there is none."""
    if not found:
        return "no difference"
    return table(("WHAT", first, second), ((one.what, one.first, one.second) for one in found))


def removals(found: Sequence[checkpoints.Removal], *, dry_run: bool) -> str:
    """A line for each, and one for all."""
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} {one.directory.name} ({size(one.bytes)})" for one in found]
    total = f"{verb} {len(found)} of them, {size(sum(one.bytes for one in found))}"
    return "\n".join([*lines, total]) if found else "nothing to remove"


def _time(moment: dt.datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None
