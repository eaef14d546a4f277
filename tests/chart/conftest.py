"""A cluster of its own for the chart: no other test's operator or release is in the way of its own ones."""

import os
from collections.abc import Iterator

import pytest

from lab import config
from lab.cluster import Lab

NODES = ("od-1=on-demand/zone-a", "spot-1=spot/zone-b")


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Two machines; taken down afterwards, half a cluster too."""
    own = Lab(os.environ.get("SPOTTRAIN_TEST_LAB", "") + "chart")
    try:
        own.up(config.Config(nodes=tuple(config.parse_node(text) for text in NODES)))
        yield own
    finally:
        own.down()
