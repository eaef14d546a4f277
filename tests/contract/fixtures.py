"""Fixtures for whoever needs a real store."""

import secrets
from collections.abc import Iterator

import pytest

from tests.contract import amazon, azurite, faults, gateway, google, services


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gateway.Gateway]:
    """A versitygw for the whole test run; each test makes its own bucket."""
    with gateway.serve(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="session")
def moto_server() -> Iterator[gateway.Server]:
    """A moto for the whole test run; each test makes its own bucket, or queue."""
    with amazon.serve() as running:
        yield running


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[str]:
    """A fake-gcs-server for the whole test run; each test makes its own bucket."""
    with google.serve() as address:
        yield address


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An azurite for the whole test run; each test makes its own container."""
    with azurite.serve(tmp_path_factory.mktemp("azure")) as address:
        yield address


@pytest.fixture(params=["s3", "moto", "gcs", "azure"])
def service(request: pytest.FixtureRequest) -> services.Service:
    """Each of the object stores."""
    return service_of(request, request.param)


def service_of(request: pytest.FixtureRequest, name: str) -> services.Service:
    """An object store by its name."""
    if name == "s3":
        return services.Amazon(request.getfixturevalue("s3_server"))
    if name == "moto":
        return services.Amazon(request.getfixturevalue("moto_server"))
    if name == "gcs":
        return services.Google(request.getfixturevalue("gcs_server"))
    return services.Azure(request.getfixturevalue("azure_server"))


@pytest.fixture
def place(service: services.Service) -> str:
    """A fresh bucket or container of the service."""
    return service.make_place()


@pytest.fixture
def front(service: services.Service) -> Iterator[faults.Proxy]:
    """A proxy in front of the service that fails requests when told."""
    with faults.proxied(service.endpoint) as running:
        yield running


@pytest.fixture
def bucket(s3_server: gateway.Gateway) -> str:
    """A fresh bucket."""
    name = f"b-{secrets.token_hex(6)}"
    s3_server.make_bucket(name)
    return name


@pytest.fixture
def proxy(s3_server: gateway.Gateway) -> Iterator[faults.Proxy]:
    """A proxy in front of the S3 server that fails requests when told."""
    with faults.proxied(s3_server.endpoint) as running:
        yield running


@pytest.fixture(autouse=True)
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's keys, where boto3 looks for them."""
    for name, value in gateway.KEYS.items():
        monkeypatch.setenv(name, value)
