"""Checkpoints in a Google Cloud Storage bucket. The conditional create is `ifGenerationMatch=0`.

google-cloud-storage is imported when the first store is opened. Credentials are Google's application default
ones: GKE's workload identity, the machine's service account, or the file in GOOGLE_APPLICATION_CREDENTIALS.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint import checksum
from spottrain.checkpoint.store import Entry, Limits, Put

_HELP = {
    401: "the credentials are refused or have expired: renew them, or give the pod an identity",
    403: "give the pod's service account the role Storage Object User (roles/storage.objectUser) there",
}


@dataclass(frozen=True)
class Parts:
    """Files of more than `size` bytes come in parts of that size, `workers` at a time."""

    size: int = 16 << 20
    workers: int = 8


class GCSStore:
    """A Store below `prefix` (no slash at either end; may be empty) in `bucket`.

    `endpoint`: "" is Google's (or STORAGE_EMULATOR_HOST). One that begins with http:// is an emulator's: it
    gets no credentials, which must not travel in the clear.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        endpoint: str = "",
        limits: Limits | None = None,
        parts: Parts | None = None,
    ) -> None:
        limits = limits or Limits()
        self._name = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._endpoint = endpoint
        self._parts = parts or Parts()
        self._calls = {"timeout": (limits.connect, limits.read), "retry": _tries(limits.tries)}
        self._opened: Any = None
        self._opening = threading.Lock()
        _require_library()

    @property
    def uri(self) -> str:
        """Bucket and prefix as a gs:// URI."""
        return f"gs://{self._name}/{self._prefix}".rstrip("/")

    def list(self, prefix: str) -> list[Entry]:
        """See Store."""
        with self._translated("list"):
            blobs = self._bucket.list_blobs(
                prefix=self._prefix + prefix, fields="items(name,size),nextPageToken", **self._calls
            )
            entries = [Entry(blob.name.removeprefix(self._prefix), int(blob.size)) for blob in blobs]
        return sorted(entries, key=lambda entry: entry.key)

    def get(self, key: str) -> bytes | None:
        """See Store."""
        with self._translated(f"read {key}"):
            data = self._unless_missing(lambda: self._blob(key).download_as_bytes(**self._calls))
            return None if data is None else bytes(data)

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store. Large objects come in parallel parts."""

        def fetch() -> str:
            blob = self._blob(key)
            blob.reload(**self._calls)
            if blob.size > self._parts.size:
                self._get_parts(blob, target)
            else:
                blob.download_to_filename(str(target), **self._calls)
            return checksum.of(target)

        with self._translated(f"read {key}"):
            found: str | None = self._unless_missing(fetch)
            return found

    def head(self, key: str) -> int | None:
        """See Store."""

        def look() -> int:
            blob = self._blob(key)
            blob.reload(**self._calls)
            return int(blob.size)

        with self._translated(f"look at {key}"):
            found: int | None = self._unless_missing(look)
            return found

    def put_file(self, key: str, source: Path) -> None:
        """See Store. In one stream: no server for tests takes parts."""
        with self._translated(f"write {key}"):
            self._blob(key).upload_from_filename(str(source), **self._calls)

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        from google.api_core import exceptions

        with self._translated(f"write {key}"):
            try:
                self._blob(key).upload_from_string(
                    data, content_type="application/octet-stream", if_generation_match=0, **self._calls
                )
            except exceptions.PreconditionFailed:
                return Put.EXISTS
            return Put.CREATED

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""

        def remove(key: str) -> None:
            self._unless_missing(lambda: self._blob(key).delete(**self._calls))

        with self._translated("delete"), ThreadPoolExecutor(self._parts.workers) as pool:
            for done in [pool.submit(remove, key) for key in keys]:
                done.result()

    @property
    def _bucket(self) -> Any:
        """The bucket, not yet asked anything; looking for credentials may need the network."""
        with self._opening:
            if self._opened is None:
                self._opened = _client(self._endpoint).bucket(self._name)
            return self._opened

    def _blob(self, key: str) -> Any:
        return self._bucket.blob(self._prefix + key)

    def _get_parts(self, blob: Any, target: Path) -> None:
        from google.cloud.storage import transfer_manager

        transfer_manager.download_chunks_concurrently(
            blob,
            str(target),
            chunk_size=self._parts.size,
            download_kwargs=dict(self._calls),  # the library writes into it
            worker_type=transfer_manager.THREAD,  # a process that trains must not be forked
            max_workers=self._parts.workers,
        )

    def _unless_missing(self, call: Callable[[], Any]) -> Any:
        """The call's answer; None when there is no such object (in a bucket that is there)."""
        from google.api_core import exceptions

        try:
            return call()
        except exceptions.NotFound:
            # The answer doesn't say which of the two is missing. Whoever may use checkpoints may list.
            for _ in self._bucket.list_blobs(max_results=1, **self._calls):
                pass
            return None

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        from google.api_core import exceptions as api
        from google.auth import exceptions as auth
        from google.cloud.storage import exceptions as media

        text = f"{self.uri}: cannot {what}"
        try:
            yield
        except api.GoogleAPICallError as error:
            raise self._refused(text, int(error.code or 0), error) from error
        except media.InvalidResponse as error:
            raise self._refused(text, int(error.response.status_code), error) from error
        except auth.DefaultCredentialsError as error:
            raise errors.StoreDenied(
                f"{text}: no credentials: give the pod an identity (workload identity), or set "
                f"GOOGLE_APPLICATION_CREDENTIALS to a key file ({error})"
            ) from error
        except auth.GoogleAuthError as error:
            raise _no_token(text, error) from error
        except (api.GoogleAPIError, media.DataCorruption, OSError) as error:
            raise errors.StoreUnavailable(f"{text}: {error}") from error

    def _refused(self, text: str, status: int, error: Exception) -> errors.StoreError:
        if status == 404:
            return errors.StoreMissing(
                f"{text}: {error}; create the bucket {self._name} or correct checkpoint.uri"
            )
        if status in _HELP:
            return errors.StoreDenied(f"{text}: {error}; {_HELP[status]}")
        return errors.StoreUnavailable(f"{text}: {error}")


def _no_token(text: str, error: Any) -> errors.StoreError:
    """Google's token service did not answer, or refuses the credentials."""
    from google.auth import exceptions

    if isinstance(error, exceptions.TransportError) or error.retryable:
        return errors.StoreUnavailable(f"{text}: {error}")
    return errors.StoreDenied(
        f"{text}: {error}; the credentials are refused, have expired, or this machine's clock is wrong: "
        "renew them, and see that the clock is set"
    )


def _require_library() -> None:
    try:
        import google.cloud.storage  # noqa: F401
    except ImportError as error:
        raise errors.ConfigError(
            "gs:// needs google-cloud-storage: `pip install '.[gcs]'` in a checkout of spottrain"
        ) from error


def _client(endpoint: str) -> Any:
    from google.auth import credentials
    from google.cloud import storage

    told: Mapping[str, Any] = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
    if endpoint.startswith("http://"):
        told = {**told, "credentials": credentials.AnonymousCredentials()}  # type: ignore[no-untyped-call]
    # No project: objects need none, and looking for one may fail.
    return storage.Client(project=None, **told)


def _tries(limit: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """What the library takes for its Retry: up to `limit` tries of each request.

    Its own counts seconds, and would go on for two minutes at a server that refuses connections.
    """

    def repeated(call: Callable[[], Any]) -> Callable[[], Any]:
        from google.api_core import retry
        from google.cloud.storage.retry import DEFAULT_RETRY

        left = limit

        def again(error: Exception) -> bool:
            nonlocal left
            left -= 1
            return left > 0 and bool(DEFAULT_RETRY._predicate(error))  # noqa: SLF001

        strategy: Callable[[], Any] = retry.Retry(predicate=again, initial=0.2, maximum=20.0, timeout=600.0)(
            call
        )
        return strategy

    return repeated
