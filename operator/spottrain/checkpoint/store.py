"""What a place for checkpoints must be able to do. One primitive is special: `put_if_absent`.

Keys are relative to the checkpoint URI, with `/` between parts. What is expected to happen is a value
(an object that is not there is None); what keeps the store from answering is one of the StoreErrors,
raised by the adapter.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spottrain import errors


class Put(enum.Enum):
    """The outcome of a conditional PUT."""

    CREATED = "created"
    EXISTS = "exists"


@dataclass(frozen=True)
class Entry:
    """One object in a listing. `size` in bytes."""

    key: str
    size: int


@dataclass(frozen=True)
class Limits:
    """How long an answer may take: seconds to connect, seconds of silence; and how often to ask."""

    connect: float = 5.0
    read: float = 30.0
    tries: int = 4


class Store(Protocol):
    """A flat key-value store bound to one checkpoint URI. Methods may be called from several threads."""

    @property
    def uri(self) -> str:
        """Where this is, for messages."""

    def list(self, prefix: str) -> "list[Entry]":
        """Every object whose key starts with `prefix`, in the order of keys; all of them, however many.

        An empty place is an empty list; a bucket that is not there is StoreMissing.
        """

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None when there is no such object."""

    def get_file(self, key: str, target: Path) -> str | None:
        """Write the object's bytes to `target` (whose folder exists), and say their SHA-256, in hex.

        None when there is no such object.
        """

    def head(self, key: str) -> int | None:
        """The object's size in bytes, or None when there is no such object."""

    def put_file(self, key: str, source: Path) -> None:
        """Store the file, over whatever was there."""

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """Store the bytes unless the key exists; of any number of writers at once exactly one gets CREATED.

        EXISTS may also be the answer to our own retried success: see `create_once`.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Remove these objects; those that are not there are no error."""


class Below:
    """What a store holds below `prefix` (which ends with a slash), as a Store of its own."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    @property
    def uri(self) -> str:
        """See Store."""
        return f"{self._store.uri}/{self._prefix}".rstrip("/")

    def list(self, prefix: str) -> "list[Entry]":
        """See Store."""
        found = self._store.list(self._prefix + prefix)
        return [Entry(entry.key.removeprefix(self._prefix), entry.size) for entry in found]

    def get(self, key: str) -> bytes | None:
        """See Store."""
        return self._store.get(self._prefix + key)

    def get_file(self, key: str, target: Path) -> str | None:
        """See Store."""
        return self._store.get_file(self._prefix + key, target)

    def head(self, key: str) -> int | None:
        """See Store."""
        return self._store.head(self._prefix + key)

    def put_file(self, key: str, source: Path) -> None:
        """See Store."""
        self._store.put_file(self._prefix + key, source)

    def put_if_absent(self, key: str, data: bytes) -> Put:
        """See Store."""
        return self._store.put_if_absent(self._prefix + key, data)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        self._store.delete(self._prefix + key for key in keys)


def create_once(store: Store, key: str, data: bytes) -> bytes | None:
    """Store `data` unless the key exists. None: it is ours now. Bytes: another writer's, which won.

    `data` must name its writer. The answer to a PUT can be lost on the way, and then the retry, or the
    caller, meets an object that is our own: it is read back and compared before anyone concludes that
    another won.
    """
    try:
        outcome = store.put_if_absent(key, data)
    except errors.StoreUnavailable:
        found = store.get(key)
        if found is None:
            raise
        return None if found == data else found
    if outcome is Put.CREATED:
        return None
    found = store.get(key)
    if found is None:
        raise errors.StoreUnavailable(f"{store.uri}/{key} was there a moment ago and is gone now")
    return None if found == data else found
