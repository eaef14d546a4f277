"""Lines that mean something, and their colours on a terminal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from spottrain.cli import words

_CODES = {"head": "1", "good": "32", "wait": "33", "bad": "31", "dim": "2"}
_PHASES = {"Running": "good", "Complete": "good", "Failed": "bad", "Pending": "wait", "Restarting": "wait"}


@dataclass(frozen=True)
class Line:
    """`tone`: head, good, wait, bad, dim, or nothing."""

    text: str
    tone: str = ""


def of_phase(phase: str) -> str:
    """The tone of a job in that phase."""
    return _PHASES.get(phase, "")


def colourful(stream: TextIO, env: Mapping[str, str]) -> bool:
    """A terminal that shows colours, and a user who wants them (https://no-color.org)."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def painted(line: Line, *, colours: bool) -> str:
    """The text, in its colour."""
    code, text = _CODES.get(line.tone, "") if colours and line.text else "", words.harmless(line.text)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
