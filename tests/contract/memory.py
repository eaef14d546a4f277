"""A store in memory: as small as a store can be, and held to the same contract as the real ones."""

import hashlib
import threading
from collections.abc import Iterable
from pathlib import Path

from spottrain.checkpoint.store import Entry, Put


class MemoryStore:
    """A Store that forgets."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        return "memory://"

    def list(self, prefix: str) -> list[Entry]:
        with self._lock:
            return [Entry(k, len(v)) for k, v in sorted(self._objects.items()) if k.startswith(prefix)]

    def get(self, key: str) -> bytes | None:
        with self._lock:
            return self._objects.get(key)

    def get_file(self, key: str, target: Path) -> str | None:
        data = self.get(key)
        if data is None:
            return None
        target.write_bytes(data)
        return hashlib.sha256(data).hexdigest()

    def head(self, key: str) -> int | None:
        data = self.get(key)
        return None if data is None else len(data)

    def put_file(self, key: str, source: Path) -> None:
        with self._lock:
            self._objects[key] = source.read_bytes()

    def put_if_absent(self, key: str, data: bytes) -> Put:
        with self._lock:
            if key in self._objects:
                return Put.EXISTS
            self._objects[key] = data
            return Put.CREATED

    def delete(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)
