"""Log lines of a worker → what they say. Pure.

Two kinds matter, both with `key=value` words (docs/library.md): the library's, which hold `event=`, and
those of the training program, which hold `step=` and `loss=`, or `final_loss=`. The rest is for people.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

STEP, FINAL = "step", "final"
"""The events of the program's own lines."""

_PAIR = re.compile(r"(?<!\S)([A-Za-z_]\w*)=(\S+)")
# `kubectl logs --timestamps` puts one before each line: 2026-11-29T15:20:03.123456789Z
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z (.*)", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One line that a program can read: its event, its fields as text, and when it was written."""

    event: str
    time: float
    """Unix seconds."""
    fields: Mapping[str, str] = field(default_factory=dict)

    def integer(self, name: str) -> int | None:
        """A field as a whole number; None when it is absent or is none (a line that was cut)."""
        text = self.fields.get(name, "")
        return int(text) if re.fullmatch(r"-?\d+", text) else None


def parse(text: str) -> Line | None:
    """One line of `kubectl logs --timestamps`; None when it is for people only, or was cut."""
    stamp, body = _split(text)
    fields = dict(_PAIR.findall(body))
    event = fields.get("event") or _event(fields)
    time = _number(fields.get("time", ""))
    moment = stamp if time is None else time
    return None if not event or moment is None else Line(event, moment, fields)


def parse_all(texts: Iterable[str]) -> tuple[Line, ...]:
    """The lines that a program can read, in order."""
    return tuple(line for text in texts if (line := parse(text)) is not None)


def stamp_of(text: str) -> str:
    """The time stamp that begins the line, as text that sorts; empty when there is none."""
    found = _STAMP.match(text)
    return "" if found is None else f"{found.group(1)}.{(found.group(2) or '.')[1:]:0<9}"


def _event(fields: Mapping[str, str]) -> str:
    if "final_loss" in fields:
        return FINAL
    return STEP if {"step", "loss"} <= fields.keys() else ""


def _split(text: str) -> tuple[float | None, str]:
    found = _STAMP.match(text)
    if found is None:
        return None, text
    whole = datetime.fromisoformat(f"{found.group(1)}+00:00").timestamp()
    return whole + float(found.group(2) or 0), found.group(3)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
