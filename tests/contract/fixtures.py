"""Fixtures for whoever needs a real S3 server."""

import secrets
from collections.abc import Iterator

import pytest

from tests.contract import faults, gateway


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gateway.Gateway]:
    """A versitygw for the whole test run; each test makes its own bucket."""
    with gateway.serve(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def bucket(s3_server: gateway.Gateway) -> str:
    """A fresh bucket."""
    name = f"b-{secrets.token_hex(6)}"
    s3_server.make_bucket(name)
    return name


@pytest.fixture
def proxy(s3_server: gateway.Gateway) -> Iterator[faults.Proxy]:
    """A proxy in front of the server that fails requests when told."""
    with faults.proxied(s3_server.endpoint) as running:
        yield running


@pytest.fixture(autouse=True)
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's keys, where boto3 looks for them."""
    for name, value in gateway.KEYS.items():
        monkeypatch.setenv(name, value)
