"""docs/adaptors.md shows what adopting the library takes, and it is at most six lines."""

import difflib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAMES = ["huggingface", "lightning", "dcp"]
MOST = 6


def changes(name: str) -> list[str]:
    """The difference between the two programs of an example, as a diff without file names."""
    plain, train = (
        (ROOT / "examples" / name / file).read_text().splitlines() for file in ("plain.py", "train.py")
    )
    return [line.rstrip() for line in list(difflib.unified_diff(plain, train, n=1, lineterm=""))[2:]]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_differs_from_its_plain_version_by_at_most_six_lines(name: str):
    added = [line for line in changes(name) if line.startswith("+") and line != "+"]
    removed = [line for line in changes(name) if line.startswith("-") and line != "-"]
    assert 0 < len(added) <= MOST
    assert len(removed) <= len(added)


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_this_difference(name: str):
    text = (ROOT / "docs" / "adaptors.md").read_text()
    shown = re.search(rf"<!-- diff {name} -->\n```diff\n(.*?)\n```\n", text, re.DOTALL)
    assert shown, f"docs/adaptors.md has no diff of {name}"
    assert shown[1].splitlines() == changes(name)
