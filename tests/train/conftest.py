from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import torch_env
from tests.contract.fixtures import (
    aws_keys,
    azure_server,
    bucket,
    gcs_server,
    place,
    proxy,
    s3_server,
    service,
)
from tests.train import processes

__all__ = [
    "aws_keys",
    "azure_server",
    "bench",
    "bucket",
    "frameworks_bench",
    "gcs_server",
    "place",
    "proxy",
    "s3_server",
    "service",
    "torch_bench",
    "torch_path",
]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[processes.Bench]:
    """Programs without torch."""
    with processes.bench(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def torch_path() -> Path:
    """torch and scikit-learn, installed when they aren't yet."""
    return torch_env.ensure()


@pytest.fixture
def torch_bench(tmp_path: Path, torch_path: Path) -> Iterator[processes.Bench]:
    """Programs with torch."""
    with processes.bench(tmp_path, torch_path) as made:
        yield made


@pytest.fixture
def frameworks_bench(tmp_path: Path, torch_path: Path) -> Iterator[processes.Bench]:
    """Programs with torch and what builds on it."""
    with processes.bench(tmp_path, torch_path, torch_env.FRAMEWORKS.ensure()) as made:
        yield made
