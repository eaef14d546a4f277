"""The last lines of failed workers' logs, read in the background: nothing waits for them."""

import asyncio
import collections.abc as cabc
import logging
from typing import Any

from spottrain.kube import client as clients
from spottrain.kube import errors, recent, views

Object = dict[str, Any]

LINES = 15
READ_BYTES = 65536
"""The server cuts behind these, so they must hold the lines whole: the reason is in the last one."""
CHARACTERS = 1500
KEPT = 512
AT_ONCE = 4

_log = logging.getLogger(__name__)


class Tails:
    """Reads each failed pod's log once. `read` is called with the pod's raw object when its tail is there."""

    def __init__(self, client: clients.Client, read: cabc.Callable[[Object], None]) -> None:
        self._client = client
        self._read = read
        self._known: recent.Recent[str] = recent.Recent(KEPT)
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(AT_ONCE)

    def get(self, uid: str) -> str:
        """The tail of that pod's log; empty while it isn't there."""
        return self._known.get(uid) or ""

    def want(self, raw: Object) -> None:
        """Read the pod's log if it failed by itself and that was not tried yet.

        A whole gang that is told to stop ends as Failed too, and nobody looks for the reason in its logs:
        they would be read just when the API server is busiest.
        """
        uid = raw["metadata"]["uid"]
        if not views.failed(raw) or "deletionTimestamp" in raw["metadata"] or uid in self._known:
            return
        self._known.set(uid, "")
        task = asyncio.get_running_loop().create_task(self._fetch(raw))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, raw: Object) -> None:
        metadata = raw["metadata"]
        path = clients.PODS.path(metadata["namespace"], metadata["name"], "log")
        query = {"tailLines": str(LINES), "limitBytes": str(READ_BYTES), "container": _failed_container(raw)}
        try:
            async with self._room:
                text = await self._client.text(path, query)
        except errors.KubeError as error:
            _log.info("log of %s/%s: %s", metadata["namespace"], metadata["name"], error)
            return
        self._known.set(metadata["uid"], text.strip()[-CHARACTERS:])
        self._read(raw)


def _failed_container(raw: Object) -> str:
    """The main one if it ended badly; else the first that did; else the main one."""
    status, main = raw["status"], views.main_container(raw)
    statuses = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    bad = [one["name"] for one in statuses if (one.get("state") or {}).get("terminated", {}).get("exitCode")]
    return str(main if main in bad or not bad else bad[0])
