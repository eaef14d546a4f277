"""From a checkpoint URI to a store."""

import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import files, s3
from spottrain.checkpoint.store import Store

_LATER = {"gs": "Google Cloud Storage", "az": "Azure Blob Storage"}


@dataclass(frozen=True)
class Location:
    """Where checkpoints go. `endpoint` and `region` matter for s3:// only; "" means the default.

    `folders`: how many of the last parts of a path are made where they are missing; the rest is the volume.
    """

    uri: str
    endpoint: str = ""
    region: str = ""
    limits: s3.Limits = field(default_factory=s3.Limits)
    folders: int = 1


def open_store(location: Location) -> Store:
    """The store at `location`, not yet asked anything; ConfigError when this version can't use the URI."""
    if location.uri.startswith("/"):
        return files.FilesStore(Path(location.uri), location.folders)
    parts = urllib.parse.urlsplit(location.uri)
    if parts.scheme == "s3":
        return _s3(location, parts)
    if parts.scheme == "file":
        return _files(location, parts)
    if parts.scheme in _LATER:
        raise errors.ConfigError(
            f"{location.uri}: {_LATER[parts.scheme]} is not in this version; "
            "use s3://, or file:// on a shared volume"
        )
    raise errors.ConfigError(
        f"{location.uri!r} is no checkpoint URI: write s3://bucket/prefix or file:///directory"
    )


def _s3(location: Location, parts: urllib.parse.SplitResult) -> Store:
    if not parts.netloc:
        raise errors.ConfigError(f"{location.uri}: the bucket is missing: write s3://bucket/prefix")
    return s3.S3Store(
        parts.netloc,
        parts.path.strip("/"),
        endpoint=location.endpoint,
        region=location.region,
        limits=location.limits,
    )


def _files(location: Location, parts: urllib.parse.SplitResult) -> Store:
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise errors.ConfigError(f"{location.uri}: write file:///directory, with three slashes")
    return files.FilesStore(Path(urllib.parse.unquote(parts.path)), location.folders)
