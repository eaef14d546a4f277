"""An API server's side of a conversation, on this machine: a real HTTP server that answers as a test says."""

import asyncio
import collections.abc as cabc
import contextlib
import json
from typing import Any

from aiohttp import web
from kubernetes.aio.client import configuration

from spottrain.kube import client as clients

Object = dict[str, Any]
Answer = cabc.Callable[[web.Request], cabc.Awaitable[web.StreamResponse]]
PATIENCE = 10.0


@contextlib.asynccontextmanager
async def server(answer: Answer) -> cabc.AsyncIterator[clients.Client]:
    """A client of a server that gives these answers."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    settings = configuration.Configuration()
    settings.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client = clients.Client(settings)
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


def run(body: cabc.Coroutine[Any, Any, None]) -> None:
    """A test's body, which must not hang."""
    asyncio.run(asyncio.wait_for(body, PATIENCE))


async def until(condition: cabc.Callable[[], object]) -> None:
    """Until it holds; the test's own deadline ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 - several processes' doings are waited for
        await asyncio.sleep(0.01)


def refused(code: int, message: str = "no", reason: str = "") -> web.Response:
    """An error as the API server words it."""
    return web.json_response({"kind": "Status", "reason": reason, "message": message}, status=code)


def listed(version: int, *items: Object) -> web.Response:
    """The answer to a LIST."""
    return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": list(items)})


class Stream:
    """Watches: everybody who watches gets every event that is sent from then on."""

    def __init__(self) -> None:
        self._watchers: list[asyncio.Queue[bytes | None]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Serve one watch until it is ended."""
        mine: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watchers.append(mine)
        response = web.StreamResponse()
        await response.prepare(request)
        while (line := await mine.get()) is not None:
            await response.write(line)
        return response

    @property
    def watchers(self) -> int:
        """How many watches have been opened."""
        return len(self._watchers)

    def send(self, kind: str, thing: Object) -> None:
        """One event to all."""
        for one in self._watchers:
            one.put_nowait(json.dumps({"type": kind, "object": thing}).encode() + b"\n")

    def end(self) -> None:
        """All streams end, as when the server's time limit is over."""
        for one in self._watchers:
            one.put_nowait(None)
