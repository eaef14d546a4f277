"""Fixtures that more than one folder of tests uses."""

import os
import secrets
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from lab.cluster import Lab

# These machines are shared: how long one example takes says nothing of the code.
hypothesis.settings.register_profile(
    "shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared")

ON_A_LAB = {"chart": "machines", "cluster": "planes", "lab": "machines", "node": "machines"}
"""By folder: what runs one after another, since it shares a lab or makes and ends machines."""


class ByLab(LoadScopeScheduling):  # type: ignore[misc]
    """What pytest-xdist runs side by side: tests on one lab and those on another, and files without a lab.

    Its own `loadgroup` knows no groups under pytest 9.2, which keeps node ids elsewhere than it changes them.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.endswith("/test_outages.py"):
            return file  # on a lab of its own, and it waits most of the time
        return ON_A_LAB.get(file.split("/")[1], file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first."""
    items.sort(key=lambda item: item.nodeid.split("/")[1] not in ON_A_LAB)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByLab:
    """See xdist's hooks."""
    return ByLab(config, log)


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
