"""A cache of one kind: list, then watch, then list anew where the watch can't go on.

A list replaces the whole cache, so what vanished while nobody watched is gone here too. kopf's event handlers
can't promise that: a pod deleted in a watch gap would stay a ghost, and its gang would never restart.
"""

import asyncio
import collections.abc as cabc
import logging
import random
from typing import Any

from spottrain.kube import client as clients
from spottrain.kube import errors, recent

Object = dict[str, Any]
Key = tuple[str, str]

WATCH_SECONDS = 300
"""The server ends a watch after this; bookmarks come about once a minute until then."""
SILENCE_SECONDS = 150.0
PAGE = 500
"""Objects asked for at a time in a list: thousands of pods in one answer would need hundreds of megabytes."""
SHORTEST_WATCH = 1.0
TOMBSTONES_KEPT = 16384
LONGEST_PAUSE = 30.0

_log = logging.getLogger(__name__)


def key_of(thing: Object) -> Key:
    """Namespace (empty for cluster-wide kinds) and name."""
    metadata = thing["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Reflector:
    """The objects of one kind in one namespace, or in all.

    `changed(object, gone)` is called with each object that came, changed or went. `heard` is the loop's time
    of the last sign of life from the server. What is kept of an object is what `trim` leaves.
    """

    def __init__(  # noqa: PLR0913 - what is watched, and what is made of it
        self,
        client: clients.Client,
        resource: clients.Resource,
        changed: cabc.Callable[[Object, bool], None],
        *,
        namespace: str = "",
        labels: str = "",
        trim: cabc.Callable[[Object], Object] = lambda thing: thing,
    ) -> None:
        self._client = client
        self._trim = trim
        self._path = resource.path(namespace)
        self._query = {"labelSelector": labels} if labels else {}
        self._changed = changed
        self._objects: dict[Key, Object] = {}
        self._failures = 0
        """In a row: a list alone is no success, since a watch that always fails would list without end."""
        self._tombstones: recent.Recent[None] = recent.Recent(TOMBSTONES_KEPT)
        self.name = resource.plural + (f" in {namespace}" if namespace else "")
        self.synced = asyncio.Event()
        self.heard = 0.0

    def values(self) -> cabc.Iterable[Object]:
        """All objects, in no order."""
        return self._objects.values()

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        return self._objects.get((namespace, name))

    def learn(self, thing: Object) -> None:
        """Take in the server's answer to a write of ours, so that the next look sees it."""
        self._store(thing)

    async def run(self) -> None:
        """Keep the cache until cancelled. Errors are logged and waited out with growing, jittered pauses."""
        while True:
            try:
                await self._watch(await self._list())
            except errors.ExpiredError:
                _log.info("watch of %s expired: listing anew", self.name)
            except errors.KubeError as error:
                self._failures += 1
                pause = min(0.5 * 2.0**self._failures, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
                _log.warning("watch of %s: %s; again in %.1f s", self.name, error, pause)
                await asyncio.sleep(pause)

    async def _list(self) -> str:
        """Page by page, each of the same moment; a page that comes too late for that is an ExpiredError."""
        found: set[Key] = set()
        query = {**self._query, "limit": str(PAGE)}
        while True:
            answer = await self._client.request("GET", self._path, query=query)
            for item in answer["items"]:
                found.add(key_of(item))
                self._store(item)
            self._alive()
            version, more = str(answer["metadata"]["resourceVersion"]), answer["metadata"].get("continue")
            if not more:
                break
            query["continue"] = more
        for key in set(self._objects) - found:
            # One that is newer than the list was made by us while the list was under way.
            if int(self._objects[key]["metadata"]["resourceVersion"]) <= int(version):
                self._drop(self._objects[key])
        self.synced.set()
        return version

    async def _watch(self, version: str) -> None:
        """Watch after watch from where the last one ended, until one says that this can't be done."""
        while True:
            query = {
                **self._query,
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(WATCH_SECONDS),
            }
            begun = asyncio.get_running_loop().time()
            async with self._client.recovery.watching():
                async for event in self._client.watch(self._path, query, SILENCE_SECONDS):
                    self._alive()
                    self._failures = 0
                    version = self._take(event)
            # A server, or a proxy, that ends every watch at once must not be asked in a hot loop.
            await asyncio.sleep(max(0.0, begun + SHORTEST_WATCH - asyncio.get_running_loop().time()))

    def _take(self, event: Object) -> str:
        thing: Object = event["object"]
        if event["type"] == "DELETED":
            self._drop(thing)
        elif event["type"] != "BOOKMARK":
            self._store(thing)
        return str(thing["metadata"]["resourceVersion"])

    def _alive(self) -> None:
        self.heard = asyncio.get_running_loop().time()

    def _store(self, thing: Object) -> None:
        """Keep the newer of two states; a late answer must not bring back what is gone."""
        known = self._objects.get(key_of(thing))
        if thing["metadata"]["uid"] in self._tombstones or (known is not None and not newer(thing, known)):
            return
        if known is not None and known["metadata"]["uid"] != thing["metadata"]["uid"]:
            self._drop(known)
        self._objects[key_of(thing)] = self._trim(thing)
        self._changed(thing, False)

    def _drop(self, thing: Object) -> None:
        known = self._objects.get(key_of(thing))
        if known is not None and known["metadata"]["uid"] == thing["metadata"]["uid"]:
            del self._objects[key_of(thing)]
        self._tombstones.set(thing["metadata"]["uid"], None)
        self._changed(thing, True)


def newer(thing: Object, known: Object) -> bool:
    """Resource versions of one kind are ordered numbers (KEP-5504); another UID is another object."""
    if thing["metadata"]["uid"] != known["metadata"]["uid"]:
        return True
    return int(thing["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
