"""docs/promises.md names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/promises.md"
ROWS = [row for row in PAGE.read_text().splitlines() if row.startswith("|") and "`" in row]


def named(row: str) -> list[Path]:
    return [ROOT / one for one in re.findall(r"`((?:tests|bench|chaos)/[\w/]+\.py)`", row)]


@pytest.mark.parametrize("row", ROWS)
def test_the_tests_of_a_promise_exist(row: str):
    files = named(row)
    assert [path for path in files if not path.exists()] == []
    code = "".join(path.read_text() for path in files)
    assert [one for one in re.findall(r"`(test_\w+)`", row) if f"def {one}(" not in code] == []


@pytest.mark.parametrize("promise", re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:])
def test_each_promise_has_tests(promise: str):
    assert named(promise)
