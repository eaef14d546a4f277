"""Fixtures that more than one folder of tests uses."""

import secrets
from collections.abc import Iterator

import pytest

from lab.cluster import Lab


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The shared cluster `main`: started when it is down, healed when nodes are dead, left running."""
    shared = Lab("main")
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
