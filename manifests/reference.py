"""docs/reference.md: what can be written into the resource, and every word that is said of it.

Fields come from the resource's schema; conditions, reasons, labels and annotations from the modules that
declare them, each with the text that stands below its declaration there.
"""

import ast
import collections.abc as cabc
import inspect
import itertools
import types
from pathlib import Path
from typing import Any

import yaml

from spottrain.api import conditions, names, node_words

Schema = dict[str, Any]
PAGE = Path("docs/reference.md")
_KINDS = {"LABEL": "label", "ANNOTATION": "annotation", "TAINT": "taint", "MARK": "annotation or label"}
_STATUS = {True: "True", False: "False", None: "Unknown"}
_HEAD = """\
# Reference

Made from the resource and the code's declarations by `make manifests`; not to be edited. What follows from
what is in [the life of a job](life.md); metrics are in [metrics.md](metrics.md), the chart's values in its
[README](../charts/spottrain/README.md), the library's settings in [library.md](library.md#settings). In a
cluster `kubectl explain stj.spec --recursive` says the same of the version that is installed there.

A **duration** is a number with a unit, or several: `90s`, `15m`, `1h30m`, `2d`. `[]` stands for each entry of
a list.
"""


def render(resource: str) -> str:
    """The page, from the text of the resource's definition."""
    (version,) = yaml.safe_load(resource)["spec"]["versions"]
    return "\n".join(_parts(version["schema"]["openAPIV3Schema"])) + "\n"


def documented(module: types.ModuleType) -> dict[str, str]:
    """The constants of a module, each with the string that follows its assignment."""
    body = ast.parse(inspect.getsource(module)).body
    found: dict[str, str] = {}
    for one, after in itertools.pairwise(body):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        match targets, after:
            case [ast.Name(name)], ast.Expr(ast.Constant(str(text))):
                found[name] = inspect.cleandoc(text).replace("\n", " ")
    return found


def meanings(module: types.ModuleType) -> dict[str, str]:
    """The words that a module's documented constants are, each with its text."""
    texts = documented(module).items()
    return {value: text for name, text in texts if isinstance(value := getattr(module, name), str)}


def _parts(schema: Schema) -> cabc.Iterator[str]:
    yield _HEAD
    spec = schema["properties"]["spec"]["properties"]
    template = spec["template"]
    yield "## Spec\n"
    yield _fields({"properties": {name: one for name, one in spec.items() if name != "template"}})
    yield "### The template\n"
    yield f"{_cell(template['description'])}\n"
    yield _fields(template, "template.")
    yield "### What the API server refuses\n"
    yield "A job that breaks one of these rules is not stored; the server's answer is the sentence.\n"
    yield _table(("where", "sentence"), dict.fromkeys(_refusals(schema, "")))
    yield "## Status\n"
    yield _fields(schema["properties"]["status"])
    yield from _conditions()
    yield from _events()
    yield from _node_words()
    yield "## Labels, annotations and taints\n"
    yield (
        "Workers also carry what a Job's pods do: `batch.kubernetes.io/job-name`, `…/controller-uid`, "
        "`…/job-completion-index`.\n"
    )
    yield _table(("name", "is a", "meaning"), _marks())


def _fields(node: Schema, below: str = "") -> str:
    rows = (
        (f"`{path}`", "; ".join(_takes(one, required=required)), _cell(one["description"]))
        for path, one, required in _walk(node, below)
    )
    return _table(("field", "takes", "meaning"), rows)


def _walk(node: Schema, path: str) -> cabc.Iterator[tuple[str, Schema, bool]]:
    """Every field below a node, with its path and whether it has to be there."""
    for name, one in node.get("properties", {}).items():
        here = f"{path}{name}"
        inner = one.get("items")
        yield (f"{here}[]" if inner else here), one, name in node.get("required", ())
        yield from _walk(inner or one, f"{here}[]." if inner else f"{here}.")


def _type(one: Schema) -> str:
    if one.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if one.get("format") == "date-time":
        return "time"
    for kind in ("duration", "date"):
        if any(f"must be a {kind}" in rule["message"] for rule in one.get("x-kubernetes-validations", ())):
            return kind.replace("date", "time")
    if one["type"] == "array":
        return f"list of {one['items']['type']}s"
    return f"map of {_type(one['additionalProperties'])}s" if _is_map(one) else str(one["type"])


def _is_map(one: Schema) -> bool:
    return "type" in one.get("additionalProperties", {})


def _takes(one: Schema, *, required: bool) -> cabc.Iterator[str]:
    """Type, limits and default."""
    yield ", ".join(_code(value) for value in one["enum"]) if "enum" in one else _type(one)
    match one.get("minimum"), one.get("maximum"):
        case None, None:
            pass
        case least, None:
            yield f"≥ {least}"
        case None, most:
            yield f"≤ {most}"
        case least, most:
            yield f"{least} to {most}"
    if "maxLength" in one and "enum" not in one and _type(one) == "string":
        yield f"≤ {one['maxLength']} characters"
    if "maxItems" in one:
        yield f"≤ {one['maxItems']} entries"
    if one.get("default", {}) != {}:
        yield f"default {_code(one['default'])}"
    if required:
        yield "required"


def _refusals(node: Schema, path: str) -> cabc.Iterator[tuple[str, str]]:
    for rule in node.get("x-kubernetes-validations", ()):
        at = (path + rule.get("fieldPath", "")).removeprefix(".")
        yield f"`{at}`", _cell(rule["message"])
    for name, one in node.get("properties", {}).items():
        yield from _refusals(one, f"{path}.{name}")
    if "items" in node:
        yield from _refusals(node["items"], f"{path}[]")


def _conditions() -> cabc.Iterator[str]:
    said = meanings(conditions)
    yield "## Conditions\n"
    yield "In `status.conditions`, each with a message in words. Programs compare type, status and reason.\n"
    for condition, reasons in conditions.REASONS.items():
        yield f"### {condition}\n"
        yield f"{said[condition]}\n"
        rows = ((_STATUS[of], f"`{one}`", said[one]) for of, some in reasons.items() for one in some)
        yield _table(("status", "reason", "meaning"), rows)


def _events() -> cabc.Iterator[str]:
    said = meanings(conditions)
    yield "## Events\n"
    yield "On the SpotTrainingJob. The cluster forgets Events after an hour, by default.\n"
    kinds = {False: "Normal", True: "Warning"}
    rows = ((f"`{one}`", kinds[of], said[one]) for of, some in conditions.EVENTS.items() for one in some)
    yield _table(("reason", "type", "meaning"), rows)


def _node_words() -> cabc.Iterator[str]:
    said = meanings(node_words)
    yield "## On Nodes\n"
    yield f"The condition `{names.CONDITION_NOTICES}`, by the [notice agent](agent.md#whether-it-hears).\n"
    rows = ((of, f"`{one}`", said[one]) for of, some in node_words.CONDITION.items() for one in some)
    yield _table(("status", "reason", "meaning"), rows)
    yield "Its Events, all of them warnings.\n"
    yield _table(("reason", "meaning"), ((f"`{one}`", said[one]) for one in node_words.EVENTS))


def _marks() -> cabc.Iterator[tuple[str, str, str]]:
    for name, text in documented(names).items():
        if kind := _KINDS.get(name.partition("_")[0]):
            yield f"`{getattr(names, name)}`", kind, _cell(text)


def _code(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    """Paragraphs in one cell of a table."""
    return text.strip().replace("|", "\\|").replace("\n\n", "\n").replace("\n", "<br>")


def _table(head: cabc.Sequence[str], rows: cabc.Iterable[cabc.Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join((*("| " + " | ".join(one) + " |" for one in lines), ""))
