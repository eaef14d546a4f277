"""Boards as Grafana's JSON, of the kind that its provisioning and its sidecar load.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import dataclasses
import itertools
import json
import string
from collections.abc import Iterator
from typing import Any

from manifests.monitoring import promql

Json = dict[str, Any]
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
STAT_HEIGHT, HEIGHT = 4, 8


@dataclasses.dataclass(frozen=True)
class Query:
    """One expression; `legend` names its lines, or its column in a table."""

    expression: str
    legend: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One picture. `kind` is Grafana's word: timeseries, stat, state-timeline or table.

    `signed`: values below 0 are to be seen.
    """

    title: str
    text: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    signed: bool = False

    @property
    def height(self) -> int:
        """In Grafana's rows of 30 pixels."""
        return STAT_HEIGHT if self.kind == "stat" else HEIGHT


@dataclasses.dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclasses.dataclass(frozen=True)
class Variable:
    """A choice at the top of a board: the values of one label of one metric."""

    name: str
    series: str
    several: bool = False


@dataclasses.dataclass(frozen=True)
class Board:
    """One dashboard. `marks`: an expression that is there when something happened; every panel shows it."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    marks: Query | None = None

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All of them, in order."""
        return tuple(panel for row in self.rows for panel in row.panels)


def stat(title: str, text: str, expression: str, unit: str = "short") -> Panel:
    """One number; six fill a line."""
    return Panel(title, text, (Query(expression),), unit, kind="stat", width=4)


def render(board: Board) -> str:
    """The file."""
    document: Json = {
        "uid": board.uid,
        "title": board.title,
        "description": board.text,
        "tags": ["spottrain"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": [_marks(board.marks)] if board.marks else []},
        "templating": {"list": [_datasource(), *(_variable(one) for one in board.variables)]},
        "links": [
            {
                "type": "dashboards",
                "title": "spottrain",
                "tags": ["spottrain"],
                "asDropdown": True,
                "keepTime": True,
            }
        ],
        "panels": list(_placed(board)),
    }
    return json.dumps(document, indent=1) + "\n"


def _placed(board: Board) -> Iterator[Json]:
    """The panels from left to right and down, with numbers that stay while none is put before them."""
    numbers, top = itertools.count(1), 0
    for row in board.rows:
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        yield {
            "id": next(numbers),
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": place,
        }
        top, left, tallest = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            yield {"id": next(numbers), "gridPos": place, **_panel(panel)}
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(panel: Panel) -> Json:
    now = panel.kind in {"stat", "table"}
    targets = [
        {
            "refId": letter,
            "datasource": SOURCE,
            "expr": promql.checked(query.expression),
            "legendFormat": query.legend or "__auto",
            "instant": now,
            "range": not now,
            **({"format": "table"} if panel.kind == "table" else {}),
        }
        for letter, query in zip(string.ascii_uppercase, panel.queries, strict=False)
    ]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "targets": targets,
        **_LOOKS[panel.kind](panel),
    }


def _lines(panel: Panel) -> Json:
    custom = {"fillOpacity": 30 if panel.stacked else 8, "showPoints": "auto", "spanNulls": False}
    stacking = {"stacking": {"mode": "normal"}} if panel.stacked else {}
    least = {} if panel.signed else {"min": 0}
    defaults = {"unit": panel.unit, **least, "custom": {**custom, **stacking}}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    return {
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
    }


def _number(panel: Panel) -> Json:
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "none"},
    }


def _states(panel: Panel) -> Json:
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": {"fillOpacity": 70}}, "overrides": []},
        "options": {"mergeValues": True, "showValue": "auto", "legend": {"showLegend": False}},
    }


def _table(panel: Panel) -> Json:
    """One line for each job, which leads to its board."""
    letters = zip(string.ascii_uppercase, panel.queries, strict=False)
    names = {f"Value #{letter}": query.legend for letter, query in letters}
    link = "/d/spottrain-job?var-namespace=${__data.fields.namespace}&var-job=${__data.fields.job}"
    linked = {
        "matcher": {"id": "byName", "options": "job"},
        "properties": [{"id": "links", "value": [{"title": "this job", "url": link}]}],
    }
    aged = {
        "matcher": {"id": "byRegexp", "options": ".* age"},
        "properties": [{"id": "unit", "value": "s"}],
    }
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": [linked, aged]},
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
        ],
        "options": {"showHeader": True},
    }


_LOOKS = {"timeseries": _lines, "stat": _number, "state-timeline": _states, "table": _table}


def _datasource() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(one: Variable) -> Json:
    query = f"label_values({promql.checked(one.series)}, {one.name})"
    return {
        "name": one.name,
        "label": one.name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "variable"},
        "refresh": 2,
        "sort": 1,
        "multi": one.several,
        "includeAll": one.several,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if one.several else {}),
    }


def _marks(query: Query) -> Json:
    return {
        "name": query.legend,
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": promql.checked(query.expression),
        "titleFormat": query.legend,
        "step": "60s",
    }
