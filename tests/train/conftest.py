from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import torch_env
from spottrain.checkpoint import files, s3
from spottrain.checkpoint.store import Store
from tests.contract import gateway
from tests.contract.fixtures import (
    aws_keys,
    azure_server,
    bucket,
    gcs_server,
    moto_server,
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
    "moto_server",
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


@dataclass(frozen=True)
class Shelf:
    """A store, and the environment that leads a program to it."""

    store: Store
    env: dict[str, object]


@pytest.fixture(params=["files", "s3"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """A directory, and a bucket."""
    if request.param == "files":
        folder = tmp_path / "ck"
        return Shelf(files.FilesStore(folder), {"SPOTTRAIN_CHECKPOINT_URI": folder.as_uri()})
    server: gateway.Gateway = request.getfixturevalue("s3_server")
    bucket = request.getfixturevalue("bucket")
    env = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr", "SPOTTRAIN_CHECKPOINT_ENDPOINT": server.endpoint}
    return Shelf(s3.S3Store(bucket, "tr", endpoint=server.endpoint), dict(env))


@pytest.fixture
def frameworks_bench(tmp_path: Path, torch_path: Path) -> Iterator[processes.Bench]:
    """Programs with torch and what builds on it."""
    with processes.bench(tmp_path, torch_path, torch_env.FRAMEWORKS.ensure()) as made:
        yield made
