"""Durations as users write them (`90s`, `1h30m`, `2d`) and times as Kubernetes writes them (RFC 3339)."""

import datetime as dt
import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as `90s`, `1h30m` or `1.5h`.

    Raises:
        ValueError: with a sentence for the user, when the text is no duration.

    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'"{text}" is not a duration; write it like 90s, 15m, 1h30m or 2d')
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def parse_time(text: str) -> dt.datetime:
    """An aware time from RFC 3339 text, with or without fractions of a second."""
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def optional_time(text: str | None) -> dt.datetime | None:
    """`parse_time` for a field that may be absent."""
    return parse_time(text) if text else None


def format_time(moment: dt.datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes' own `metav1.Time`."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_seconds(seconds: float) -> str:
    """A short text for people: `28s`, `2m`, `1h30m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:g}s"
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
