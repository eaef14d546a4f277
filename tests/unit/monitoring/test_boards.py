"""The boards as Grafana provisions them, and the runbooks beside the alerts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manifests.monitoring import alerts, files, grafana, promql

ROOT = Path(__file__).parents[3]
RUNBOOKS = (ROOT / "docs/runbooks.md").read_text()


def sources(part: Any) -> Iterator[Any]:
    """Every data source that is named anywhere in it."""
    if isinstance(part, dict):
        yield from (value for key, value in part.items() if key == "datasource")
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from sources(one)


@pytest.mark.parametrize("board", files.BOARDS, ids=lambda one: one.uid)
def test_d7_a_provisioned_board_asks_for_nothing(board: grafana.Board):
    text = grafana.render(board)
    assert "__inputs" not in text
    assert "${DS_" not in text
    found = list(sources(json.loads(text)))
    assert len(found) >= 2 * len(board.panels)
    assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in found)


@pytest.mark.parametrize("board", files.BOARDS, ids=lambda one: one.uid)
def test_panels_lie_side_by_side_and_none_over_another(board: grafana.Board):
    panels = json.loads(grafana.render(board))["panels"]
    places = [one["gridPos"] for one in panels]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({one["id"] for one in panels}) == len(panels)


def test_a_boards_variables_are_those_that_its_panels_ask_for():
    ours = re.compile(r"\$(?!__)(\w+)")
    for board in files.BOARDS:
        asked = {
            name
            for panel in board.panels
            for query in panel.queries
            for name in ours.findall(query.expression)
        }
        assert asked == {one.name for one in board.variables}, board.uid


def test_a_line_is_named_by_labels_that_its_query_leaves():
    for board in files.BOARDS:
        for panel in board.panels:
            for query in panel.queries:
                for label in re.findall(r"\{\{(\w+)\}\}", query.legend):
                    assert label in query.expression or label in promql.SCRAPED, (panel.title, label)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    assert re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE) == [one.name for one in alerts.ALERTS]


def test_runbooks_name_panels_and_metrics_that_are_there():
    titles = {panel.title for board in files.BOARDS for panel in board.panels}
    for title in (
        "A stop takes",
        "A save takes",
        "Saves an hour",
        "Time that a notice gave",
        "Failed looks per second",
        "Jobs that ended in an hour",
    ):
        assert title in titles
        assert f"`{title}`" in RUNBOOKS
    for board in re.findall(r"`(spottrain: [a-z ]+)`", RUNBOOKS):
        assert board in {one.title for one in files.BOARDS}
    assert promql.metrics(RUNBOOKS) <= promql.known().keys()
