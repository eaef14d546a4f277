"""Checkpoints in a directory, which must be on a volume that all workers share.

`link(2)` is the conditional create: of any number of processes, on any number of machines, one gets the name.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import checksum
from spottrain.checkpoint.store import Entry, Put

_TEMPORARY = ".spottrain-"
_CHUNK = 1 << 20
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
# What link(2) says where the file system has no hard links: vfat and exFAT; FUSE; others.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}


class FilesStore:
    """A Store below the directory `root`.

    `root` is made when first written to, `ours` folders of its path in all; what is above them must exist, or
    a volume that was not mounted would look like an empty store.
    """

    def __init__(self, root: Path, ours: int = 1) -> None:
        if not root.is_absolute():
            raise errors.ConfigError(f"checkpoint directory {str(root)!r} must be an absolute path")
        self._root = root
        above = [root, *root.parents]
        self._volume = above[min(ours, len(above) - 1)]

    @property
    def uri(self) -> str:
        """The directory as a file:// URI."""
        return self._root.as_uri()

    def list(self, prefix: str) -> list[Entry]:
        """See Store."""
        with self._translated("list"):
            self._require_volume()
            folder = self._root / prefix.rpartition("/")[0]
            found = [(self._key(path), path) for path in _walk(folder)]
            sizes = ((key, _size(path)) for key, path in found if key.startswith(prefix))
            return sorted((Entry(key, size) for key, size in sizes if size is not None), key=lambda e: e.key)

    def get(self, key: str) -> bytes | None:
        """See Store."""
        with self._translated(f"read {key}"):
            self._require_volume()
            try:
                return self._path(key).read_bytes()
            except FileNotFoundError:
                return None

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store."""
        with self._translated(f"read {key}"):
            self._require_volume()
            try:
                source = self._path(key).open("rb")
            except FileNotFoundError:
                return None
            with source, target.open("wb") as out:
                summing = checksum.Summing(out)
                shutil.copyfileobj(source, summing, _CHUNK)
            return summing.value()

    def head(self, key: str) -> int | None:
        """See Store."""
        with self._translated(f"look at {key}"):
            self._require_volume()
            return _size(self._path(key))

    def put_file(self, key: str, source: Path) -> None:
        """See Store."""

        def publish(temporary: Path, target: Path) -> Put:
            temporary.replace(target)
            return Put.CREATED

        with self._translated(f"write {key}"), source.open("rb") as data:
            self._write(key, lambda out: shutil.copyfileobj(data, out), publish)

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        with self._translated(f"write {key}"):
            return self._write(key, lambda out: out.write(data), link)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store. Directories that this leaves empty go too."""
        with self._translated("delete"):
            self._require_volume()
            for key in keys:
                path = self._path(key)
                path.unlink(missing_ok=True)
                self._remove_empty(path.parent)

    def _write(self, key: str, fill: Callable, publish: Callable[[Path, Path], Put]) -> Put:  # type: ignore[type-arg]
        self._require_volume()
        target = self._path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as out:
                fill(out)
                out.flush()
                os.fsync(out.fileno())
            outcome = publish(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
        return outcome

    def _require_volume(self) -> None:
        if not self._volume.is_dir():
            raise errors.StoreMissing(
                f"{self._volume} does not exist; mount the shared volume there, or create it"
            )

    def _path(self, key: str) -> Path:
        return self._root / key

    def _key(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root and folder.is_relative_to(self._root):
            try:
                folder.rmdir()
            except OSError:
                return  # Not empty, or another process was faster: both are fine.
            folder = folder.parent

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text = f"{self.uri}: cannot {what}: {error.strerror or error}"
            if error.errno in _DENIED:
                raise errors.StoreDenied(text) from error
            raise errors.StoreUnavailable(text) from error


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files below `folder`; none when it isn't there. It raises when it can't look."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for parent, _, names in os.walk(folder, onerror=fail):
        yield from (Path(parent) / name for name in names if not name.startswith(_TEMPORARY))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def link(temporary: Path, target: Path) -> Put:
    """Give the file the name `target` too, unless that is taken.

    An attempt's claim is the first thing that is written, and so the probe: where there are no hard links,
    it ends with a ConfigError before the first step.
    """
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        # NFS may repeat a request whose answer was lost and then report our own link as in the way: two names
        # for our file mean that it worked.
        return Put.CREATED if temporary.stat().st_nlink > 1 else Put.EXISTS
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise errors.ConfigError(
            f"{target.parent} is on a file system without hard links ({error.strerror}), and checkpoints "
            "need them to keep two writers apart: use a volume that has them (NFS, CephFS, Lustre), or for a "
            "bucket that is mounted there its own URI (s3://, gs://, az://)"
        ) from error
    return Put.CREATED


def _sync_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
