"""Fixtures that more than one folder of tests uses."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Lab

HERE = Path(__file__).parent
ON_A_LAB = {"chart": "machines", "cluster": "planes", "lab": "machines", "node": "machines"}
"""By folder: what runs one after another, since it shares a lab or makes and ends machines."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What pytest-xdist may run side by side: a lab's tests with those of others, and files without one."""
    for item in items:
        path = item.path.relative_to(HERE)
        alone = path.stem == "test_outages"  # on a lab of its own, and waits most of the time
        group = str(path) if alone else ON_A_LAB.get(path.parts[0], str(path))
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The shared cluster: started when it is down, healed when nodes are dead, left running.

    It is the lab `main`, unless SPOTTRAIN_LAB names another.
    """
    shared = Lab(os.environ.get("SPOTTRAIN_LAB") or "main")
    shared.up()
    return shared


@pytest.fixture
def namespace(lab: Lab, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, ready for pods; its deletion is begun afterwards, not awaited."""
    name = namespace_name(request.node.name)
    lab.kubectl("create", "namespace", name)
    lab.wait_namespace(name)
    yield name
    lab.kubectl("delete", "namespace", name, "--wait=false")


def namespace_name(test: str) -> str:
    """A legal, unique name that shows which test it belongs to."""
    readable = "".join(c if c.isalnum() else "-" for c in test.lower().removeprefix("test_"))
    return f"{readable[:40].strip('-')}-{secrets.token_hex(3)}"
