"""The resource's schema as a text: what `kubectl explain` will show, and bounds that rules are priced by."""

import collections.abc as cabc
import dataclasses
import enum
import json
from typing import Any

import pytest
import yaml

from manifests import render
from spottrain.api import status
from tests.chart import examples

Schema = dict[str, Any]


def crd() -> Schema:
    loaded: Schema = yaml.safe_load(render.CRD.read_text())
    return loaded


def schema() -> Schema:
    (version,) = crd()["spec"]["versions"]
    root: Schema = version["schema"]["openAPIV3Schema"]
    return root


def fields(node: Schema, path: str = "") -> cabc.Iterator[tuple[str, Schema]]:
    """Every field below a schema, with its path; list items and map values as `[]`."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield f"{path}[]", node[key]
            yield from fields(node[key], f"{path}[]")


# .metadata is the API server's own; its name is only there because a rule speaks of it.
FIELDS = {path: one for path, one in fields(schema()) if not path.startswith(".metadata")}


def test_every_field_says_what_it_is_in_a_sentence() -> None:
    wordless = [
        path
        for path, one in FIELDS.items()
        if "." not in one.get("description", "") and not path.endswith(("labels[]", "annotations[]"))
    ]
    assert wordless == []


def test_every_choice_and_every_default_is_explained() -> None:
    unexplained = [
        (path, word)
        for path, one in FIELDS.items()
        if path.startswith(".spec")
        for word in (*one.get("enum", ()), one.get("default"))
        if word not in (None, {}) and str(word).lower() not in one["description"].lower()
    ]
    assert unexplained == []


def test_status_refuses_no_word_of_a_newer_operator() -> None:
    choices = [path for path, one in FIELDS.items() if path.startswith(".status.") and "enum" in one]
    assert choices == [".status.conditions[].status"]


def test_strings_and_lists_have_bounds() -> None:
    free = [
        path
        for path, one in FIELDS.items()
        if (one.get("type") == "string" and not {"maxLength", "enum", "format"} & one.keys())
        or (one.get("type") == "array" and "maxItems" not in one)
    ]
    assert [path for path in free if not path.endswith(("labels[]", "annotations[]"))] == [
        ".apiVersion",
        ".kind",
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".spec.template.metadata",
        ".spec.template.spec",
        ".spec.template.spec.containers[]",
        ".spec.template.spec.containers[].resources",
        ".spec.template.spec.containers[].volumeMounts[]",
        ".spec.template.spec.initContainers[]",
        ".spec.template.spec.volumes[]",
        ".spec.template.spec.volumes[].persistentVolumeClaim",
    ],
)
def test_a_pod_keeps_fields_that_the_schema_does_not_know(path: str) -> None:
    assert FIELDS[path]["x-kubernetes-preserve-unknown-fields"] is True


def test_only_pods_keep_unknown_fields() -> None:
    keepers = [path for path, one in FIELDS.items() if one.get("x-kubernetes-preserve-unknown-fields")]
    assert [path for path in keepers if not path.startswith(".spec.template.")] == []


def test_columns_show_fields_that_exist() -> None:
    (version,) = crd()["spec"]["versions"]
    columns = {one["name"]: one["jsonPath"] for one in version["additionalPrinterColumns"]}
    assert list(columns) == [
        *("Phase", "Workers", "Step", "Reclaims", "Checkpoint", "Finished", "Age"),
        *("Attempt", "Spot", "On-demand", "Saved"),
    ]
    assert [path for path in columns.values() if path not in FIELDS] == [".metadata.creationTimestamp"]


def test_jobs_are_not_in_the_category_all() -> None:
    """`kubectl delete all --all` must not take the record of a run with it."""
    assert "categories" not in crd()["spec"]["names"]


def test_d8_the_resource_fits_into_an_annotation_of_client_side_apply() -> None:
    assert len(json.dumps(crd())) < 200_000


def leaves(value: Any, path: str) -> cabc.Iterator[str]:
    """Paths of the values in a document, in the form of FIELDS."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}")
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, f"{path}[]")
    else:
        yield path


@pytest.mark.parametrize("part", list(examples.parts(examples.STATUS)), ids=lambda one: type(one).__name__)
def test_the_example_of_a_status_leaves_nothing_out(part: Any) -> None:
    """So that the next test, and the one against the API server, speak of every field."""
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(part)
        if field.default is not dataclasses.MISSING
    }
    assert [name for name, default in defaults.items() if getattr(part, name) == default] == []


def test_a27_the_schema_knows_every_field_that_the_operator_writes() -> None:
    written = set(leaves(status.render(examples.STATUS), ".status"))
    assert written - FIELDS.keys() == set()


def test_the_schema_says_which_fields_the_operator_leaves_empty() -> None:
    """When one of them is filled in, its description has to say so no longer."""
    written = set(leaves(status.render(examples.STATUS), ".status"))
    scalars = {path for path, one in FIELDS.items() if one.get("type") not in {"object", "array"}}
    empty = {path for path in scalars if path.startswith(".status.")} - written
    marked = tuple(path for path, one in FIELDS.items() if "Not yet filled in" in one.get("description", ""))
    assert [path for path in sorted(empty) if not path.startswith(marked)] == []
    assert [path for path in sorted(written) if path.startswith(marked)] == []


@pytest.mark.parametrize(
    ("path", "words"), [(".status.phase", status.Phase), (".status.attempts[].cause", status.Cause)]
)
def test_every_word_that_the_operator_writes_is_explained(path: str, words: type[enum.StrEnum]) -> None:
    explained = FIELDS[path]["description"]
    assert [str(word) for word in words if f"{word}: " not in explained] == []


def test_the_schema_keeps_as_many_attempts_as_the_operator() -> None:
    assert FIELDS[".status.attempts"]["maxItems"] == status.ATTEMPTS_KEPT
