"""Pods of many gangs as a watch shows them, and the moment at which each attempt ran whole."""

import contextlib
import http.client
import socket
import threading
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lab import clock
from lab.api import Api

Object = dict[str, Any]


@dataclass(frozen=True)
class Attempt:
    """One life of a gang."""

    namespace: str
    gang: str
    number: int


@dataclass(frozen=True)
class Labels:
    """Under which labels a system's pods carry the name of their gang and the number of their attempt."""

    gang: str
    attempt: str


@dataclass(frozen=True)
class Worker:
    """One pod, as last seen."""

    name: str
    attempt: Attempt
    index: int
    runs: bool


class Gangs:
    """The pods of some namespaces, kept by a thread until `close`. Names of gangs are unique among them."""

    def __init__(self, api: Api, namespaces: Sequence[str], labels: Labels, workers: int) -> None:
        self._api, self._labels = api, labels
        self.namespaces = tuple(namespaces)
        self.workers = workers
        alone = len(namespaces) == 1
        self._path = f"/api/v1/namespaces/{namespaces[0]}/pods" if alone else "/api/v1/pods"
        self._pods: dict[str, Worker] = {}
        self._running: dict[Attempt, set[str]] = {}
        self._whole: dict[Attempt, float] = {}
        self._created: dict[Attempt, float] = {}
        self._made: dict[Attempt, set[str]] = {}
        self._all_made: dict[Attempt, float] = {}
        self._unready: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._connection = self._open(self._list())
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        # Not `close`: that waits for the thread, which waits for the server.
        with contextlib.suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def pods(self) -> dict[str, Worker]:
        """All pods by UID."""
        with self._lock:
            return dict(self._pods)

    def newest(self) -> dict[str, int]:
        """The highest attempt of each gang."""
        found: dict[str, int] = {}
        for worker in self.pods().values():
            found[worker.attempt.gang] = max(found.get(worker.attempt.gang, 0), worker.attempt.number)
        return found

    def wait_whole(self, after: Mapping[str, int], seconds: float) -> dict[str, float]:
        """When each gang first had an attempt later than `after` with all of its pods Running."""
        return self._wait("all new pods running", lambda: self._first(self._whole, after), after, seconds)

    def wait_created(self, after: Mapping[str, int], seconds: float) -> dict[str, float]:
        """When each gang's first pod of an attempt later than `after` was seen."""
        return self._wait("a replacement", lambda: self._first(self._created, after), after, seconds)

    def wait_made(self, after: Mapping[str, int], seconds: float) -> dict[str, float]:
        """When each gang's last pod of an attempt later than `after` was first seen."""
        return self._wait("all pods made", lambda: self._first(self._all_made, after), after, seconds)

    def wait_quiet(self, gangs: int, seconds: float) -> None:
        """Until every one of `gangs` gangs runs whole and no other pod is left."""

        def quiet() -> bool:
            return len(self._pods) == gangs * self.workers and not self._unready

        self._until(quiet, seconds, f"{gangs} gangs of {self.workers} in {self.namespaces[0]} quiet")

    def _wait(
        self, what: str, found: Callable[[], dict[str, float]], gangs: Mapping[str, int], seconds: float
    ) -> dict[str, float]:
        self._until(lambda: len(found()) == len(gangs), seconds, f"{what} for {len(gangs)} gangs")
        with self._lock:
            return found()

    def _until(self, probe: Callable[[], bool], seconds: float, what: str) -> None:
        """Looked at ten times a second: the moments are the watch's, and looking costs what is measured."""

        def found() -> bool:
            with self._lock:
                return probe()

        clock.wait_for(what, found, seconds=seconds, every=0.1)

    @staticmethod
    def _first(moments: Mapping[Attempt, float], after: Mapping[str, int]) -> dict[str, float]:
        found: dict[str, float] = {}
        for attempt, moment in moments.items():
            if attempt.number > after.get(attempt.gang, attempt.number):
                found[attempt.gang] = min(moment, found.get(attempt.gang, moment))
        return found

    def _list(self) -> str:
        listed = self._api.get(self._path).expect("listing pods")
        for pod in listed["items"]:
            self._take("ADDED", pod, clock.now())
        return str(listed["metadata"]["resourceVersion"])

    def _open(self, version: str) -> http.client.HTTPSConnection:
        host = urllib.parse.urlsplit(self._api.url).netloc
        connection = http.client.HTTPSConnection(host, context=self._api.tls)
        query = urllib.parse.urlencode({"watch": "true", "resourceVersion": version})
        connection.request("GET", f"{self._path}?{query}")
        return connection

    def _follow(self) -> None:
        """Watch after watch: the server may end one at any time."""
        version = ""
        while True:
            answer = self._connection.getresponse()
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                while line := answer.readline():
                    now = clock.now()
                    event = orjson.loads(line)
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._take(event["type"], event["object"], now)
            if self._closed:
                return
            self._connection = self._open(version or self._list())

    def _take(self, kind: str, pod: Object, now: float) -> None:
        metadata = pod["metadata"]
        labels = metadata.get("labels", {})
        if self._labels.gang not in labels or metadata["namespace"] not in self.namespaces:
            return
        attempt = Attempt(
            metadata["namespace"], labels[self._labels.gang], int(labels.get(self._labels.attempt, 0))
        )
        runs = pod["status"].get("phase") == "Running" and "deletionTimestamp" not in metadata
        index = int(labels.get("batch.kubernetes.io/job-completion-index", 0))
        with self._lock:
            if kind == "DELETED":
                self._pods.pop(metadata["uid"], None)
                self._unready.discard(metadata["uid"])
            else:
                self._pods[metadata["uid"]] = Worker(metadata["name"], attempt, index, runs)
                (self._unready.discard if runs else self._unready.add)(metadata["uid"])
                self._created.setdefault(attempt, now)
                made = self._made.setdefault(attempt, set())
                made.add(metadata["uid"])
                if len(made) == self.workers:
                    self._all_made.setdefault(attempt, now)
            self._count(attempt, metadata["uid"], now, runs=runs and kind != "DELETED")

    def _count(self, attempt: Attempt, uid: str, now: float, *, runs: bool) -> None:
        running = self._running.setdefault(attempt, set())
        (running.add if runs else running.discard)(uid)
        if len(running) == self.workers:
            self._whole.setdefault(attempt, now)
