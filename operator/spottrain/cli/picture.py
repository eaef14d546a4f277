"""The timeline of a job's attempts as a picture (SVG): waiting, running, and the work that was lost. Pure."""

import datetime as dt
from collections.abc import Iterator

from spottrain.cli import words
from spottrain.cli.history import History, Life
from spottrain.cli.markup import Content, Markup, joined, tag

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 960.0, 44.0, 250.0, 30.0, 30.0, 18.0
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800)
"""Seconds between lines of the scale; the largest is doubled until it does."""


def timeline(one: History, now: dt.datetime) -> Markup:
    """A bar for each attempt, oldest on top, over the time since the first of them."""
    start = one.lives[0].start
    whole = max(1.0, (max(life.end or now for life in one.lives) - start).total_seconds())
    scale = (WIDTH - LEFT - RIGHT) / whole
    height = TOP + ROW * len(one.lives) + 8
    rows = joined(*(_row(life, place, start, scale, now) for place, life in enumerate(one.lives)))
    return tag(
        "svg",
        tag("title", f"Timeline of the attempts of {one.name}", id="timeline-title"),
        tag("desc", _description(one, now), id="timeline-desc"),
        _patterns(),
        joined(*_scale(whole, scale, height)),
        rows,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby="timeline-title timeline-desc",
    )


def _description(one: History, now: dt.datetime) -> str:
    parts = []
    for life in one.lives:
        waited, ran = map(words.span, life.seconds(now))
        parts.append(
            f"Attempt {life.number} waited {waited} and ran {ran}, then: {life.outcome or 'goes on'}."
        )
    return " ".join(parts)


def _patterns() -> Markup:
    """Told apart without colours too: waiting is hatched, lost work is crossed."""
    wait = tag("path", d="M0 6 L6 0", class_="hatch-wait")
    lost = tag("path", d="M0 0 L6 6 M0 6 L6 0", class_="hatch-lost")
    size: dict[str, Content] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
    return tag("defs", tag("pattern", wait, id="wait", **size), tag("pattern", lost, id="lost", **size))


def _scale(whole: float, scale: float, height: float) -> Iterator[Markup]:
    step = next((one for one in TICKS if whole / one <= 6), TICKS[-1])
    while whole / step > 6:
        step *= 2
    for number in range(int(whole // step) + 1):
        x = LEFT + number * step * scale
        yield tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP - 8, y2=f"{height:g}", class_="tick")
        yield tag("text", words.span(number * step), x=f"{x:.1f}", y=TOP - 13, class_="scale")


def _row(life: Life, place: int, start: dt.datetime, scale: float, now: dt.datetime) -> Markup:
    x, y = LEFT + (life.start - start).total_seconds() * scale, TOP + place * ROW
    waited, ran = life.seconds(now)
    middle, end = x + waited * scale, x + (waited + ran) * scale
    lost = ran * scale * _share_lost(life)
    return tag(
        "g",
        tag("title", f"Attempt {life.number}: waited {words.span(waited)}, ran {words.span(ran)}"),
        tag("text", life.number, x=LEFT - 10, y=f"{y + 14:g}", class_="number"),
        _bar(x, middle, y, "wait"),
        _bar(middle, end, y, "ran"),
        _bar(end - lost, end, y, "lost") if lost else "",
        tag("text", _label(life), x=f"{end + 8:.1f}", y=f"{y + 14:g}", class_=f"label {life.outcome}"),
    )


def _bar(left: float, right: float, y: float, kind: str) -> Markup:
    return tag(
        "rect", x=f"{left:.1f}", y=f"{y:g}", width=f"{right - left:.1f}", height=f"{BAR:g}", class_=kind
    )


def _share_lost(life: Life) -> float:
    """Of the time that all ran, by steps."""
    if not life.lost or life.first is None or life.step is None:
        return 0.0
    return min(1.0, life.lost / max(1, life.step + 1 - life.first))


def _label(life: Life) -> str:
    where = f" ({life.node})" if life.node else ""
    return f"{life.outcome}{where}" if life.outcome else "goes on"
