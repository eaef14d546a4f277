"""From a checkpoint URI to a store."""

import os
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import azure, files, gcs, s3
from spottrain.checkpoint.store import Limits, Store

_FORMS = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///directory"


@dataclass(frozen=True)
class Location:
    """Where checkpoints go. `endpoint` and `region` ("" means the default) are not for file://.

    `folders`: how many of the last parts of a path are made where they are missing; the rest is the volume.
    """

    uri: str
    endpoint: str = ""
    region: str = ""
    limits: Limits = field(default_factory=Limits)
    folders: int = 1


def open_store(location: Location) -> Store:
    """The store at `location`, not yet asked anything; ConfigError when URI or settings are no good."""
    if location.uri.startswith("/"):
        return files.FilesStore(Path(location.uri), location.folders)
    parts = urllib.parse.urlsplit(location.uri)
    opener = _OPENERS.get(parts.scheme)
    if opener is None:
        raise errors.ConfigError(f"{location.uri!r} is no checkpoint URI: write {_FORMS}")
    return opener(location, parts)


def _place(location: Location, parts: urllib.parse.SplitResult, what: str) -> tuple[str, str]:
    """Bucket (or container) and prefix."""
    if not parts.netloc:
        raise errors.ConfigError(
            f"{location.uri}: the {what} is missing: write {parts.scheme}://{what}/prefix"
        )
    return parts.netloc, parts.path.strip("/")


def _s3(location: Location, parts: urllib.parse.SplitResult) -> Store:
    bucket, prefix = _place(location, parts, "bucket")
    return s3.S3Store(
        bucket, prefix, endpoint=location.endpoint, region=location.region, limits=location.limits
    )


def _gcs(location: Location, parts: urllib.parse.SplitResult) -> Store:
    bucket, prefix = _place(location, parts, "bucket")
    return gcs.GCSStore(bucket, prefix, endpoint=location.endpoint, limits=location.limits)


def _azure(location: Location, parts: urllib.parse.SplitResult) -> Store:
    container, prefix = _place(location, parts, "container")
    account = azure.account(os.environ, location.endpoint)
    return azure.AzureStore(container, prefix, opened_by=account, limits=location.limits)


def _files(location: Location, parts: urllib.parse.SplitResult) -> Store:
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise errors.ConfigError(f"{location.uri}: write file:///directory, with three slashes")
    return files.FilesStore(Path(urllib.parse.unquote(parts.path)), location.folders)


_OPENERS: dict[str, Callable[[Location, urllib.parse.SplitResult], Store]] = {
    "s3": _s3,
    "gs": _gcs,
    "az": _azure,
    "file": _files,
}
