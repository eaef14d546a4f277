"""Fields of a job and values of the chart that sentences name are those that there are."""

import re
from typing import Any

import pytest

from tests.chart.test_crd import FIELDS
from tests.docs import pages, yamls

OF_OTHERS = {
    "spec.managedBy": "a Job's",
    "spec.providerID": "a Node's",
}
JOB = {path.replace("[]", "").removeprefix(".") for path in FIELDS}
STATUS = {path.split(".")[1] for path in JOB if path.startswith("status.")}
DOTTED = re.compile(r"[a-zA-Z]+(\[\])?(\.[a-zA-Z]+(\[\])?)+")
CODE = "ARCHITECTURE.md"  # names modules and functions
FILES = ("json", "log", "md", "py", "toml", "txt", "yaml")


def dotted(word: str) -> list[str]:
    """The path that a word begins with, without `[]`."""
    found = DOTTED.match(word)
    path = found[0].replace("[]", "").split(".") if found else []
    return [] if path and path[-1] in FILES else path


def in_job(path: list[str]) -> bool:
    """It is written from the top, or from within spec or status. A template has fields of its own."""
    if "template" in path[:2]:
        return True
    return any(".".join((*above, *path)) in JOB for above in ((), ("spec",), ("status",)))


def in_values(path: list[str], values: Any) -> bool:
    """A value, or one below a map that is the user's."""
    if not path or values in ({}, []):
        return True
    return isinstance(values, dict) and path[0] in values and in_values(path[1:], values[path[0]])


@pytest.mark.parametrize("page", sorted({word.page for word in pages.words()} - {CODE}))
def test_a_path_in_a_sentence_is_of_a_field_or_a_value(page: str):
    wrong = []
    for word in pages.words():
        path = dotted(word.text)
        if word.page != page or not path or ".".join(path) in OF_OTHERS:
            continue
        of_job = path[0] in {"spec", "status"} | yamls.SPEC | STATUS
        of_chart = path[0] in yamls.VALUES
        if (of_job or of_chart) and not (in_job(path) or (of_chart and in_values(path, yamls.VALUES))):
            wrong.append(str(word))
    assert wrong == []
