"""A way to the API server that was dead without a word: watches begin anew with the first answer."""

import asyncio

import pytest
from aiohttp import web

from spottrain.kube import client as clients
from spottrain.kube import errors, reflector
from tests.unit.kube import local
from tests.unit.kube.test_reflector import Seen, pod, running

NEVER = 3600.0


def test_watches_are_opened_anew_with_the_first_answer_after_a_request_without_one() -> None:
    """None of them has broken off by itself, and none would for minutes."""

    async def body() -> None:
        stream = local.Stream()

        async def answer(request: web.Request) -> web.StreamResponse:
            if "nodes" in request.path:
                await asyncio.sleep(NEVER if "watch" in request.query else 0)
                return local.listed(1)
            if "watch" in request.query:
                return await stream.answer(request)
            return local.listed(100, pod("old", 50))

        async with local.server(answer) as client:
            seen = Seen()
            cache = reflector.Reflector(client, clients.PODS, seen.changed)
            async with running(cache):
                await local.until(lambda: stream.watchers == 1)
                with pytest.raises(errors.UnreachableError):
                    await anext(client.watch(clients.NODES.path(), {}, silence=0.05))
                await client.request("GET", clients.NODES.path())
                await local.until(lambda: stream.watchers == 2)
                stream.send("ADDED", pod("new", 101))
                await local.until(lambda: "u-new" in seen.present)

    local.run(body())


def test_watches_stay_open_while_every_request_is_answered() -> None:
    async def body() -> None:
        stream = local.Stream()

        async def answer(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                return await stream.answer(request)
            return local.refused(404) if "nodes" in request.path else local.listed(100)

        async with (
            local.server(answer) as client,
            running(reflector.Reflector(client, clients.PODS, Seen().changed)),
        ):
            await local.until(lambda: stream.watchers == 1)
            async with client.recovery.watching():
                for _ in range(3):
                    with pytest.raises(errors.NotFoundError):
                        await client.request("GET", clients.NODES.path())

    local.run(body())


def test_what_rests_on_a_connection_of_before_ends_and_says_why() -> None:
    async def body() -> None:
        async def answer(_: web.Request) -> web.StreamResponse:
            return local.listed(1)

        async def rest(client: clients.Client) -> None:
            async with client.recovery.watching():
                client.recovery.unanswered()
                await client.request("GET", clients.NODES.path())
                await asyncio.sleep(NEVER)

        async with local.server(answer) as client:
            with pytest.raises(errors.UnreachableError, match="answers had stopped, and come again"):
                await rest(client)

    local.run(body())
