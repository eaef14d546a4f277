"""Checkpoints in an S3 bucket, or in any store that speaks S3 with conditional writes (`If-None-Match: *`).

boto3 is imported when the first store is opened, so that a laptop run on files needs nothing installed.
Credentials come from boto3's usual places: environment, profile, the pod's own identity.
"""

import hashlib
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.checkpoint.store import Entry, Limits, Put

_RIGHTS = (
    "the credentials need s3:ListBucket on the bucket, "
    "and s3:GetObject, s3:PutObject and s3:DeleteObject below it"
)
_EXPIRED = "the credentials have expired: renew them, or give the pod an identity, which renews its own"
_CLOCK = "the clock of this machine is wrong by more than 15 minutes: see that it is set (NTP)"
# Refusals, and what to do: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_DENIED = {
    "403": _RIGHTS,
    "AccessDenied": _RIGHTS,
    "AllAccessDisabled": "the bucket is closed to everyone",
    "ExpiredToken": _EXPIRED,
    "Forbidden": _RIGHTS,
    "InvalidAccessKeyId": "the store does not know AWS_ACCESS_KEY_ID: correct it",
    "InvalidToken": "AWS_SESSION_TOKEN does not go with the key: renew all three together",
    "RequestExpired": _CLOCK,
    "RequestTimeTooSkewed": _CLOCK,
    "SignatureDoesNotMatch": "AWS_SECRET_ACCESS_KEY does not go with AWS_ACCESS_KEY_ID: correct it",
    "TokenRefreshRequired": _EXPIRED,
    "XAdminUserNotFound": "the store does not know AWS_ACCESS_KEY_ID: correct it",  # versitygw's word
}
_OTHER_REGION = {
    "301",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
}
_NOT_FOUND = {"404", "NoSuchKey", "NotFound"}
_EXISTS = {"412", "PreconditionFailed"}
# Two conditional PUTs of one key at the same moment: S3 asks the loser to try again, and then it sees a 412.
_CONFLICT = {"409", "ConditionalRequestConflict"}
_CONFLICT_TRIES = 8
_DELETE_BATCH = 1000
# As boto3's transfers have it; and how many parts may be ahead of the one whose turn it is.
_PART, _CONNECTIONS, _AHEAD = 8 << 20, 10, 20
_PIECE = 256 << 10
"""Bytes that are read and written at once. The kernel clears the pages of each larger buffer anew: 2 GiB in
reads of 8 MiB took 8.4 CPU seconds and 7 s, in such pieces 5.4 and 4.3 (boto3's transfer: 6.4 and 5.6)."""


class S3Store:
    """A Store below `prefix` (no slash at either end; may be empty) in `bucket`.

    `endpoint` names a store other than AWS; buckets are then addressed by path, as such stores want it.
    """

    def __init__(
        self, bucket: str, prefix: str, *, endpoint: str = "", region: str = "", limits: Limits | None = None
    ) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._tries = (limits or Limits()).tries
        self._client = _client(endpoint, region, limits or Limits())

    @property
    def uri(self) -> str:
        """Bucket and prefix as an s3:// URI."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def list(self, prefix: str) -> list[Entry]:
        """See Store."""
        with self._translated("list"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            found = [found for page in pages for found in page.get("Contents", ())]
        entries = (Entry(found["Key"].removeprefix(self._prefix), int(found["Size"])) for found in found)
        return sorted(entries, key=lambda entry: entry.key)

    def get(self, key: str) -> bytes | None:
        """See Store."""
        with self._translated(f"read {key}"):
            answer = self._unless(_NOT_FOUND, lambda: self._client.get_object(**self._where(key)))
            return None if answer is None else bytes(answer["Body"].read())

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store. Large objects come in parallel parts, of which a few are in memory at a time."""

        def fetch() -> str:
            size = int(self._client.head_object(**self._where(key))["ContentLength"])
            total = hashlib.sha256()
            with target.open("wb") as out:
                for pieces in self._parts(key, size, out.fileno()):
                    for piece in pieces:
                        total.update(piece)
            return total.hexdigest()

        with self._translated(f"read {key}"):
            found: str | None = self._unless(_NOT_FOUND, fetch)
            return found

    def _parts(self, key: str, size: int, out: int) -> Iterator[tuple[bytes, ...]]:
        """The object's parts in their order, each written to the file already; others are on their way.

        boto3's own transfer gives them in any order, or (1.44, to a stream) hangs beyond ten of them.
        """
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            coming: deque[Future[tuple[bytes, ...]]] = deque()
            try:
                for start in range(0, size, _PART):
                    coming.append(pool.submit(self._part, key, start, min(start + _PART, size), out))
                    if len(coming) == _AHEAD:
                        yield coming.popleft().result()
                while coming:
                    yield coming.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _part(self, key: str, start: int, end: int, out: int) -> tuple[bytes, ...]:
        from botocore.exceptions import BotoCoreError

        for tries_left in reversed(range(self._tries)):
            try:
                return tuple(self._pieces(key, start, end, out))
            except (BotoCoreError, OSError):  # botocore itself asks again only until the body begins
                if not tries_left:
                    raise
        raise AssertionError("a store is asked at least once")

    def _pieces(self, key: str, start: int, end: int, out: int) -> Iterator[bytes]:
        answer = self._client.get_object(**self._where(key), Range=f"bytes={start}-{end - 1}")
        at = start
        for data in answer["Body"].iter_chunks(_PIECE):
            written = 0
            while written < len(data):
                written += os.pwrite(out, memoryview(data)[written:], at + written)
            at += written
            yield data

    def head(self, key: str) -> int | None:
        """See Store."""
        with self._translated(f"look at {key}"):
            answer = self._unless(_NOT_FOUND, lambda: self._client.head_object(**self._where(key)))
            return None if answer is None else int(answer["ContentLength"])

    def put_file(self, key: str, source: Path) -> None:
        """See Store. Large files go in parallel parts."""
        with self._translated(f"write {key}"):
            self._client.upload_file(str(source), self._bucket, self._prefix + key)

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        with self._translated(f"write {key}"):
            for attempt in range(_CONFLICT_TRIES):
                outcome = self._conditional(key, data)
                if outcome is not None:
                    return outcome
                time.sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 - spreads writers, hides nothing
        raise errors.StoreUnavailable(f"{self.uri}/{key}: {_CONFLICT_TRIES} conflicts with other writers")

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        names = [{"Key": self._prefix + key} for key in keys]
        with self._translated("delete"):
            for start in range(0, len(names), _DELETE_BATCH):
                batch = {"Objects": names[start : start + _DELETE_BATCH], "Quiet": True}
                answer = self._client.delete_objects(Bucket=self._bucket, Delete=batch)
                _raise_first(self.uri, answer.get("Errors", ()))

    def _where(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + key}

    def _conditional(self, key: str, data: bytes) -> Put | None:
        """CREATED, EXISTS, or None when another writer was at it in the same moment."""
        from botocore.exceptions import ClientError

        try:
            self._client.put_object(**self._where(key), Body=data, IfNoneMatch="*")
        except ClientError as error:
            code = _code(error)
            if code in _EXISTS:
                return Put.EXISTS
            if code in _CONFLICT:
                return None
            raise
        return Put.CREATED

    def _unless(self, codes: set[str], call: Callable[[], Any]) -> Any:
        """The call's answer; None when the server refuses it with one of these codes."""
        from botocore.exceptions import ClientError

        try:
            return call()
        except ClientError as error:
            if _code(error) in codes:
                return None
            raise

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            yield
        except ClientError as error:
            raise self._client_error(what, error) from error
        except NoCredentialsError as error:
            raise errors.StoreDenied(
                f"{self.uri}: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or give the pod an identity"
            ) from error
        except (BotoCoreError, Boto3Error, OSError) as error:
            cause = error.__context__
            if isinstance(error, Boto3Error) and isinstance(cause, ClientError):
                raise self._client_error(what, cause) from error
            raise errors.StoreUnavailable(f"{self.uri}: cannot {what}: {error}") from error

    def _client_error(self, what: str, error: Any) -> errors.StoreError:
        code, text = _code(error), f"{self.uri}: cannot {what}: {error}"
        if code == "NoSuchBucket":
            return errors.StoreMissing(f"{text}; create the bucket {self._bucket} or correct checkpoint.uri")
        if code in _OTHER_REGION:
            return errors.StoreMissing(f"{text}; set checkpoint.region to {_region(error)}")
        if code in _DENIED:
            return errors.StoreDenied(f"{text}; {_DENIED[code]}")
        return errors.StoreUnavailable(text)


def _client(endpoint: str, region: str, limits: Limits) -> Any:
    try:
        import boto3
        import botocore.config
    except ImportError as error:
        raise errors.ConfigError(
            "s3:// needs boto3: `pip install '.[s3]'` in a checkout of spottrain"
        ) from error
    config = botocore.config.Config(
        connect_timeout=limits.connect,
        read_timeout=limits.read,
        retries={"mode": "standard", "total_max_attempts": limits.tries},
        s3={"addressing_style": "path" if endpoint else "auto"},
        # Checksums of our own stand in COMMIT.json; the newer default is refused by some stores that
        # speak S3.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    # A session of its own: boto3's default session may not be used from several threads.
    session = boto3.session.Session()
    return session.client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=region or session.region_name or "us-east-1",
        config=config,
    )


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _region(error: Any) -> str:
    """The bucket's region, where the answer names it."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    named = error.response.get("Error", {}).get("Region") or headers.get("x-amz-bucket-region")
    return str(named or "that of the bucket")


def _raise_first(uri: str, refused: Sequence[Any]) -> None:
    for item in refused:
        kind = errors.StoreDenied if item.get("Code") in _DENIED else errors.StoreUnavailable
        raise kind(f"{uri}: cannot delete {item.get('Key')}: {item.get('Code')} {item.get('Message', '')}")
