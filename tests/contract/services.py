"""The real object stores, all in the same words."""

import secrets
from dataclasses import dataclass
from typing import Protocol

from spottrain.checkpoint import azure, gcs, s3
from spottrain.checkpoint.store import Limits, Store
from tests.contract import azurite, faults, gateway, google


class Service(Protocol):
    """A running server. A place is a bucket or a container."""

    @property
    def endpoint(self) -> str: ...

    @property
    def scheme(self) -> str: ...

    @property
    def word(self) -> str:
        """What it calls a place."""

    def make_place(self) -> str:
        """The name of a fresh one."""

    def open(
        self, place: str, prefix: str = "run", *, endpoint: str = "", limits: Limits = gateway.QUICK
    ) -> Store:
        """A Store there; by way of `endpoint`, a proxy's, if there is one."""

    def env(self, endpoint: str = "") -> dict[str, str]:
        """What a program needs to find the server."""

    def refusal(self, status: int, code: str) -> faults.Answer:
        """An answer in its own form."""


def _fresh_name() -> str:
    return f"b-{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Amazon:
    server: gateway.Server
    scheme: str = "s3"
    word: str = "bucket"

    @property
    def endpoint(self) -> str:
        return self.server.endpoint

    def make_place(self) -> str:
        name = _fresh_name()
        self.server.make_bucket(name)
        return name

    def open(
        self, place: str, prefix: str = "run", *, endpoint: str = "", limits: Limits = gateway.QUICK
    ) -> Store:
        return s3.S3Store(place, prefix, endpoint=endpoint or self.endpoint, limits=limits)

    def env(self, endpoint: str = "") -> dict[str, str]:
        return {**gateway.KEYS, "SPOTTRAIN_CHECKPOINT_ENDPOINT": endpoint or self.endpoint}

    def refusal(self, status: int, code: str) -> faults.Answer:
        return faults.Answer(status, code)


@dataclass(frozen=True)
class Google:
    endpoint: str
    scheme: str = "gs"
    word: str = "bucket"

    def make_place(self) -> str:
        name = _fresh_name()
        google.make_bucket(self.endpoint, name)
        return name

    def open(
        self, place: str, prefix: str = "run", *, endpoint: str = "", limits: Limits = gateway.QUICK
    ) -> Store:
        return gcs.GCSStore(place, prefix, endpoint=endpoint or self.endpoint, limits=limits)

    def env(self, endpoint: str = "") -> dict[str, str]:
        return {"SPOTTRAIN_CHECKPOINT_ENDPOINT": endpoint or self.endpoint}

    def refusal(self, status: int, code: str) -> faults.Answer:
        return faults.GoogleAnswer(status, code)


@dataclass(frozen=True)
class Azure:
    endpoint: str
    scheme: str = "az"
    word: str = "container"

    def make_place(self) -> str:
        name = _fresh_name()
        azurite.make_container(self.endpoint, name)
        return name

    def open(
        self, place: str, prefix: str = "run", *, endpoint: str = "", limits: Limits = gateway.QUICK
    ) -> Store:
        account = azurite.account(endpoint or self.endpoint)
        return azure.AzureStore(place, prefix, opened_by=account, limits=limits)

    def env(self, endpoint: str = "") -> dict[str, str]:
        account = azurite.account(endpoint or self.endpoint)
        words = f"AccountName={account.name};AccountKey={account.key};BlobEndpoint={account.url}"
        return {"AZURE_STORAGE_CONNECTION_STRING": words}

    def refusal(self, status: int, code: str) -> faults.Answer:
        return faults.AzureAnswer(status, code)
