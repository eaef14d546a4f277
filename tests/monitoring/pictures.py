"""Pictures of the boards: their JSON and a Prometheus' answers, as a page that headless Chromium looks at.

Grafana isn't needed for it, nor is it what is drawn: the same panels in the same places, with the same data.
"""

import dataclasses
import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import packages, shell
from tests.monitoring import prom

Json = Mapping[str, Any]
CELL_WIDTH, CELL_HEIGHT, GAP = 58, 30, 8
# Okabe and Ito's, which the colour-blind can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442")
_STYLE = """
body { margin: 0; background: #f4f5f5; font: 12px "DejaVu Sans", sans-serif; color: #222 }
h1 { position: absolute; left: 12px; top: 0; font-size: 18px }
section { position: absolute; background: #fff; border: 1px solid #ddd; box-sizing: border-box; padding: 6px;
          overflow: hidden }
section.row { background: none; border: none; font-weight: bold; font-size: 14px; padding: 6px 0 }
h2 { font-size: 12px; margin: 0 0 4px }
.stat { font-size: 30px; text-align: center; margin-top: 14px }
.legend { font-size: 10px } .legend span { margin-right: 10px; white-space: nowrap }
td, th { padding: 2px 12px 2px 0; text-align: left } text { font-size: 9px; fill: #666 }
"""
TOP = 44


@dataclasses.dataclass(frozen=True)
class Span:
    """The time that is shown, Unix seconds, and what `$name` stands for in queries."""

    begin: float
    end: float
    filled: Callable[[str], str]


def take(server: prom.Server, board: Path, span: Span, picture: Path) -> None:
    """Write the picture (PNG) of one board."""
    packages.install({"chromium": "chromium"})
    document = json.loads(board.read_text())
    panels = document["panels"]
    height = TOP + CELL_HEIGHT * max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels)
    parts = [_box(one, _content(server, one, span)) for one in panels]
    page = picture.with_suffix(".html")
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>"
        f"<h1>{html.escape(document['title'])}</h1>{''.join(parts)}"
    )
    shell.run(
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        f"--window-size={24 * CELL_WIDTH + GAP},{height + GAP}",
        f"--screenshot={picture}",
        page.as_uri(),
        timeout=120,
    )
    page.unlink()


def _box(panel: Json, content: str) -> str:
    place = panel["gridPos"]
    left, top = GAP + place["x"] * CELL_WIDTH, TOP + place["y"] * CELL_HEIGHT
    size = f"width:{place['w'] * CELL_WIDTH - GAP}px;height:{place['h'] * CELL_HEIGHT - GAP}px"
    title = html.escape(panel["title"])
    if panel["type"] == "row":
        return f'<section class=row style="left:{left}px;top:{top}px;{size}">{title}</section>'
    return f'<section style="left:{left}px;top:{top}px;{size}"><h2>{title}</h2>{content}</section>'


def _content(server: prom.Server, panel: Json, span: Span) -> str:
    if panel["type"] == "row":
        return ""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    if panel["type"] == "table":
        return _table(server, panel, span)
    if panel["type"] == "stat":
        found = server.now(span.filled(panel["targets"][0]["expr"]))
        return f"<div class=stat>{told(found[0][1], unit) if found else 'no data'}</div>"
    lines = [
        (_named(target["legendFormat"], labels), points)
        for target in panel["targets"]
        for labels, points in server.history(span.filled(target["expr"]), span.begin, span.end)
    ]
    place = panel["gridPos"]
    size = (place["w"] * CELL_WIDTH - 3 * GAP, place["h"] * CELL_HEIGHT - 78)
    return _chart(lines, span, unit, size)


def _table(server: prom.Server, panel: Json, span: Span) -> str:
    organize = next(one for one in panel["transformations"] if one["id"] == "organize")
    names = organize["options"]["renameByName"]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for target in panel["targets"]:
        column = names[f"Value #{target['refId']}"]
        unit = "s" if column.endswith(" age") else "short"
        for labels, value in server.now(span.filled(target["expr"])):
            rows.setdefault((labels["namespace"], labels["job"]), {})[column] = told(value, unit)
    head = ("namespace", "job", *names.values())
    lines = [(*key, *(cells.get(column, "") for column in names.values())) for key, cells in rows.items()]
    body = "".join(f"<tr>{_cells(line, 'td')}</tr>" for line in sorted(lines))
    return f"<table><tr>{_cells(head, 'th')}</tr>{body}</table>"


def _cells(words: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{html.escape(word)}</{tag}>" for word in words)


def _named(legend: str, labels: Mapping[str, str]) -> str:
    for name, value in labels.items():
        legend = legend.replace("{{" + name + "}}", value)
    return legend


def _chart(
    lines: Sequence[tuple[str, Sequence[prom.Point]]], span: Span, unit: str, size: tuple[int, int]
) -> str:
    width, height = size
    values = [0.0, *(value for _, points in lines for _, value in points)]
    least, reach = min(values), (max(values) - min(values)) or 1.0
    left, room = 52, width - 60

    def spot(point: prom.Point) -> str:
        x = left + room * (point[0] - span.begin) / (span.end - span.begin)
        return f"{x:.1f},{height - (height - 8) * (point[1] - least) / reach:.1f}"

    drawn = "".join(
        f'<polyline fill=none stroke="{COLOURS[index % len(COLOURS)]}" stroke-width=1.5 '
        f'points="{" ".join(spot(one) for one in points)}"/>'
        for index, (_, points) in enumerate(lines)
    )
    scale = "".join(
        f'<line x1={left} x2={left + room} y1={y} y2={y} stroke="#e5e5e5"/>'
        f"<text x={left - 4} y={y + 3} text-anchor=end>{told(least + reach * share, unit)}</text>"
        for share in (0.0, 0.5, 1.0)
        for y in [round(height - (height - 8) * share)]
    )
    legend = " ".join(
        f'<span><b style="color:{COLOURS[index % len(COLOURS)]}">&#9644;</b> {html.escape(name)}</span>'
        for index, (name, _) in enumerate(lines)
    )
    return f"<svg width={width} height={height + 6}>{scale}{drawn}</svg><div class=legend>{legend}</div>"


def told(value: float, unit: str) -> str:
    """A number as a board shows it."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "bytes":
        return f"{value / 2**20:.3g} MiB"
    if unit == "s":
        steps = ((86400, "d"), (3600, "h"), (60, "min"))
        size, name = next((one for one in steps if value >= 2 * one[0]), (1, "s"))
        return f"{value / size:.3g} {name}"
    return f"{value:.4g}"
