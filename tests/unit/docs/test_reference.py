"""docs/reference.md is made from what is declared, and nothing else is ever said."""

import ast
import types
from pathlib import Path

import pytest

from manifests import reference, render
from spottrain.api import conditions, names, node_words

SOURCES = Path(conditions.__file__).parents[1]
SAYING = {"condition": 2, "fault": 1, "mended": 1, "say": 0}
"""A plan's ways to say something → the place of the reason among the arguments."""


def declared(module: types.ModuleType) -> set[str]:
    return {name for name, one in vars(module).items() if name.isupper() and isinstance(one, str)}


def test_the_page_is_current():
    assert (render.ROOT / reference.PAGE).read_text() == reference.render(render.CRD.read_text())


@pytest.mark.parametrize("module", [conditions, node_words])
def test_every_word_has_a_text(module: types.ModuleType):
    assert declared(module) == reference.documented(module).keys() & declared(module)


def test_every_reason_and_every_condition_is_on_the_page():
    of_conditions = {one for some in conditions.REASONS.values() for each in some.values() for one in each}
    of_events = {one for some in conditions.EVENTS.values() for one in some}
    listed = of_conditions | of_events | conditions.REASONS.keys()
    assert {getattr(conditions, name) for name in declared(conditions)} == listed


def test_every_word_of_the_agent_is_on_the_page():
    listed = {one for some in node_words.CONDITION.values() for one in some} | set(node_words.EVENTS)
    assert {getattr(node_words, name) for name in declared(node_words)} == listed


def test_every_label_annotation_and_taint_has_a_text():
    ours = {name for name in declared(names) if name.startswith(("LABEL_", "ANNOTATION_", "TAINT_", "MARK_"))}
    assert ours == reference.documented(names).keys() & ours


def test_every_word_is_said_somewhere():
    """A word that nobody says any more would stay on the page for ever."""
    code = "".join(one.read_text() for one in SOURCES.rglob("*.py"))
    for module, name in ((conditions, "conditions"), (node_words, "node_words")):
        assert [word for word in sorted(declared(module)) if f"{name}.{word}" not in code] == []


def test_no_reason_is_said_that_is_not_declared():
    said = [
        f"{path.name}:{call.lineno}"
        for path in sorted((SOURCES / "plan").glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if (place := SAYING.get(call.func.attr)) is not None
        if isinstance(call.args[place], ast.Constant)
    ]
    assert said == []
