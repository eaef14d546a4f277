"""Checkpoints in a container of Azure Blob Storage. The conditional create is `If-None-Match: *`.

azure-storage-blob is imported when the first store is opened. The account and the credentials are found as
`account` says.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import checksum
from spottrain.checkpoint.store import Entry, Limits, Put

_MISSING = {"BlobNotFound", "ResourceNotFound"}
_EXISTS = {"BlobAlreadyExists", "ConditionNotMet"}
# As the service names them: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
_HELP = {
    "AuthenticationFailed": "the key or token is wrong or has expired, or this machine's clock is",
    "AuthorizationFailure": "the account's firewall or the token does not allow this",
    "AuthorizationPermissionMismatch": "give the pod's identity the role Storage Blob Data Contributor",
    "AuthorizationProtocolMismatch": "the token allows https only",
    "AuthorizationServiceMismatch": "the token is not for blobs",
    "InsufficientAccountPermissions": "the token does not allow this",
    "InvalidAuthenticationInfo": "the token is wrong or has expired, or this machine's clock is",
    "KeyBasedAuthenticationNotPermitted": "the account refuses keys: give the pod an identity instead",
}
_NO_CONTAINER = {"ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"}
_CONNECTIONS = 8
_BLOCK = 8 << 20
_ONE_REQUEST = 32 << 20


@dataclass(frozen=True)
class Account:
    """A storage account: its URL, and what opens it; neither key nor token: the pod's own identity."""

    url: str
    name: str = ""
    key: str = ""
    token: str = ""


def account(env: Mapping[str, str], endpoint: str) -> Account:
    """The account that the environment (of the Azure command line's names) and the job's endpoint tell of.

    AZURE_STORAGE_CONNECTION_STRING holds all of it; else AZURE_STORAGE_ACCOUNT names the account, and
    AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN opens it. `endpoint`, if there is one, is the account's URL.
    """
    words = (word.partition("=") for word in env.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";"))
    said = {name.strip(): value.strip() for name, _, value in words}
    name = said.get("AccountName") or env.get("AZURE_STORAGE_ACCOUNT", "")
    if not name:
        host = endpoint.partition("://")[2].partition("/")[0]
        name = host.partition(".")[0] if ".blob." in host else ""
    suffix = said.get("EndpointSuffix", "core.windows.net")
    url = endpoint or said.get("BlobEndpoint") or (f"https://{name}.blob.{suffix}" if name else "")
    if not url:
        raise errors.ConfigError(
            "az:// needs an account: set checkpoint.endpoint to https://ACCOUNT.blob.core.windows.net, "
            "or AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING in the container's environment"
        )
    key = said.get("AccountKey") or env.get("AZURE_STORAGE_KEY", "")
    if key and not name:
        raise errors.ConfigError(
            f"AZURE_STORAGE_KEY opens an account at {url}: set AZURE_STORAGE_ACCOUNT too"
        )
    token = said.get("SharedAccessSignature") or env.get("AZURE_STORAGE_SAS_TOKEN", "")
    return Account(url, name, key, token.removeprefix("?"))


class AzureStore:
    """A Store below `prefix` (no slash at either end; may be empty) in `container`."""

    def __init__(
        self, container: str, prefix: str, *, opened_by: Account, limits: Limits | None = None
    ) -> None:
        self._name = container
        self._prefix = f"{prefix}/" if prefix else ""
        self._account = opened_by.url
        self._container = _client(container, opened_by, limits or Limits())

    @property
    def uri(self) -> str:
        """Container and prefix as an az:// URI."""
        return f"az://{self._name}/{self._prefix}".rstrip("/")

    def list(self, prefix: str) -> list[Entry]:
        """See Store."""
        with self._translated("list"):
            blobs = self._container.list_blobs(name_starts_with=self._prefix + prefix)
            entries = [Entry(blob.name.removeprefix(self._prefix), int(blob.size)) for blob in blobs]
        return sorted(entries, key=lambda entry: entry.key)

    def get(self, key: str) -> bytes | None:
        """See Store."""
        with self._translated(f"read {key}"):
            stream = self._unless_missing(lambda: self._container.download_blob(self._prefix + key))
            return None if stream is None else bytes(stream.readall())

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store. Large objects come in parallel parts."""
        with self._translated(f"read {key}"):
            stream = self._unless_missing(
                lambda: self._container.download_blob(self._prefix + key, max_concurrency=_CONNECTIONS)
            )
            if stream is None:
                return None
            with target.open("wb") as out:
                stream.readinto(out)
            return checksum.of(target)

    def head(self, key: str) -> int | None:
        """See Store."""
        with self._translated(f"look at {key}"):
            found = self._unless_missing(lambda: self._blob(key).get_blob_properties())
            return None if found is None else int(found.size)

    def put_file(self, key: str, source: Path) -> None:
        """See Store. Large files go in parallel parts."""
        with self._translated(f"write {key}"), source.open("rb") as data:
            self._blob(key).upload_blob(
                data, length=source.stat().st_size, overwrite=True, max_concurrency=_CONNECTIONS
            )

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        from azure.core.exceptions import HttpResponseError

        with self._translated(f"write {key}"):
            try:
                self._blob(key).upload_blob(data, overwrite=False)
            except HttpResponseError as error:
                if _code(error) in _EXISTS:
                    return Put.EXISTS
                raise
            return Put.CREATED

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""

        def remove(key: str) -> None:
            self._unless_missing(lambda: self._blob(key).delete_blob())

        with self._translated("delete"), ThreadPoolExecutor(_CONNECTIONS) as pool:
            for done in [pool.submit(remove, key) for key in keys]:
                done.result()

    def _blob(self, key: str) -> Any:
        return self._container.get_blob_client(self._prefix + key)

    def _unless_missing(self, call: Callable[[], Any]) -> Any:
        """The call's answer; None when there is no such blob (in a container that is there)."""
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return call()
        except ResourceNotFoundError as error:
            if _code(error) in _MISSING:
                return None
            raise

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        from azure.core import exceptions

        text = f"{self.uri}: cannot {what}"
        try:
            yield
        except exceptions.ClientAuthenticationError as error:
            raise self._denied(text, error) from error
        except exceptions.HttpResponseError as error:
            raise self._refused(text, error) from error
        except (exceptions.AzureError, OSError) as error:
            raise errors.StoreUnavailable(f"{text} at {self._account}: {_words(error)}") from error

    def _refused(self, text: str, error: Any) -> errors.StoreError:
        if _code(error) in _NO_CONTAINER:
            return errors.StoreMissing(
                f"{text}: {_words(error)}; create the container {self._name} or correct checkpoint.uri"
            )
        if error.status_code in {401, 403}:
            return self._denied(text, error)
        return errors.StoreUnavailable(f"{text}: {_words(error)}")

    def _denied(self, text: str, error: Any) -> errors.StoreError:
        if error.status_code is None:
            return errors.StoreDenied(
                f"{text}: no credentials: give the pod an identity (workload identity), or set "
                f"AZURE_STORAGE_CONNECTION_STRING ({_words(error)})"
            )
        code = _code(error)
        todo = _HELP.get(code, "the credentials do not allow this")
        return errors.StoreDenied(f"{text}: {_words(error)}; {todo}")


def _client(container: str, opened_by: Account, limits: Limits) -> Any:
    try:
        from azure.storage.blob import ContainerClient, ExponentialRetry
    except ImportError as error:
        raise errors.ConfigError(
            "az:// needs azure-storage-blob: `pip install '.[azure]'` in a checkout of spottrain"
        ) from error
    return ContainerClient(
        opened_by.url,
        container,
        credential=_credential(opened_by),
        connection_timeout=limits.connect,
        read_timeout=limits.read,
        # The library's own begins with 15 s, which is most of a short notice.
        retry_policy=ExponentialRetry(
            initial_backoff=1, increment_base=2, retry_total=limits.tries - 1, random_jitter_range=1
        ),
        max_block_size=_BLOCK,
        max_chunk_get_size=_BLOCK,
        max_single_put_size=_ONE_REQUEST,
        max_single_get_size=_ONE_REQUEST,
    )


def _credential(opened_by: Account) -> Any:
    if opened_by.key:
        return {"account_name": opened_by.name, "account_key": opened_by.key}
    if opened_by.token:
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(opened_by.token)
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def _code(error: Any) -> str:
    """The service's name for what went wrong; "" when it gave none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _words(error: Any) -> str:
    """The first line of an error's text (request ids follow), and the detail that says what to look for."""
    first, *_ = str(error).splitlines() or [type(error).__name__]
    detail = (getattr(error, "additional_info", None) or {}).get("authenticationerrordetail") or ""
    return " ".join([_code(error), first, detail]).strip()
