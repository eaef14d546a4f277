"""The cache of one kind, against a server that answers late or badly."""

import asyncio
import contextlib
from typing import Any

from aiohttp import web

from spottrain.kube import client as clients
from spottrain.kube import reflector
from tests.unit.kube import local

Object = dict[str, Any]


def pod(name: str, version: int, uid: str = "") -> Object:
    metadata = {"namespace": "t", "name": name, "uid": uid or f"u-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata}


class Seen:
    """What a cache has told."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.calls: list[tuple[str, bool]] = []

    def changed(self, thing: Object, gone: bool) -> None:
        uid = thing["metadata"]["uid"]
        self.calls.append((uid, gone))
        (self.present.discard if gone else self.present.add)(uid)


@contextlib.asynccontextmanager
async def running(cache: reflector.Reflector) -> Any:
    task = asyncio.create_task(cache.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_what_was_made_while_a_list_was_under_way_is_kept() -> None:
    """The list is older than our write: that the new pod isn't in it says nothing."""

    async def body() -> None:
        asked, go_on, stream = asyncio.Event(), asyncio.Event(), local.Stream()

        async def answer(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                return await stream.answer(request)
            asked.set()
            await go_on.wait()
            return local.listed(100, pod("old", 50))

        async with local.server(answer) as client:
            seen = Seen()
            cache = reflector.Reflector(client, clients.PODS, seen.changed)
            async with running(cache):
                await asked.wait()
                cache.learn(pod("made", 101))
                go_on.set()
                await local.until(lambda: stream.watchers)
                assert seen.present == {"u-old", "u-made"}
                stream.send("MODIFIED", pod("made", 102))
                await local.until(lambda: seen.calls.count(("u-made", False)) == 2)

    local.run(body())


def test_what_a_list_no_longer_has_is_gone() -> None:
    async def body() -> None:
        stream, lists = local.Stream(), [local.listed(100, pod("a", 50)), local.listed(200, pod("b", 150))]

        async def answer(request: web.Request) -> web.StreamResponse:
            return await stream.answer(request) if "watch" in request.query else lists.pop(0)

        async with local.server(answer) as client:
            seen = Seen()
            async with running(reflector.Reflector(client, clients.PODS, seen.changed)):
                await local.until(lambda: stream.watchers)
                stream.send("ERROR", {"code": 410, "message": "too old"})
                await local.until(lambda: seen.present == {"u-b"})

    local.run(body())


def test_a_long_list_comes_in_pages_and_is_taken_for_one() -> None:
    """Nothing of an earlier page counts as gone, and the watch goes on from the moment all pages share."""

    async def body() -> None:
        stream, asked = local.Stream(), []

        async def answer(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                asked.append(request.query["resourceVersion"])
                return await stream.answer(request)
            assert request.query["limit"] == str(reflector.PAGE)
            if "continue" not in request.query:
                first = {"resourceVersion": "100", "continue": "second"}
                return web.json_response({"metadata": first, "items": [pod("a", 50)]})
            return local.listed(100, pod("b", 60))

        async with local.server(answer) as client:
            seen = Seen()
            cache = reflector.Reflector(client, clients.PODS, seen.changed)
            cache.learn(pod("old", 40))
            async with running(cache):
                await local.until(lambda: stream.watchers)
                assert (seen.present, asked) == ({"u-a", "u-b"}, ["100"])

    local.run(body())


def test_a_page_that_comes_too_late_begins_the_list_anew() -> None:
    async def body() -> None:
        stream, lists = local.Stream(), []

        async def answer(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                return await stream.answer(request)
            lists.append(request.query.get("continue", ""))
            if lists == ["", "second"]:
                return local.refused(410, reason="Expired")
            if len(lists) == 1:
                first = {"resourceVersion": "100", "continue": "second"}
                return web.json_response({"metadata": first, "items": [pod("a", 50)]})
            return local.listed(200, pod("b", 150))

        async with local.server(answer) as client:
            seen = Seen()
            async with running(reflector.Reflector(client, clients.PODS, seen.changed)):
                await local.until(lambda: stream.watchers)
                assert (seen.present, lists) == ({"u-b"}, ["", "second", ""])

    local.run(body())


def test_what_is_told_is_whole_and_what_is_kept_is_trimmed() -> None:
    async def body() -> None:
        async def answer(_: web.Request) -> web.StreamResponse:
            return local.refused(500)

        async with local.server(answer) as client:
            told: list[Object] = []

            def trim(thing: Object) -> Object:
                return {"metadata": thing["metadata"]}

            cache = reflector.Reflector(client, clients.PODS, lambda thing, _: told.append(thing), trim=trim)
            whole = {**pod("a", 50), "spec": {"nodeName": "n"}}
            cache.learn(whole)
            assert (told, cache.get("t", "a")) == ([whole], pod("a", 50))

    local.run(body())


def test_another_object_of_the_same_name_ends_the_one_before() -> None:
    async def body() -> None:
        async def answer(_: web.Request) -> web.StreamResponse:
            return local.refused(500)

        async with local.server(answer) as client:
            seen = Seen()
            cache = reflector.Reflector(client, clients.PODS, seen.changed)
            cache.learn(pod("a", 50, uid="first"))
            cache.learn(pod("a", 60, uid="second"))
            assert seen.present == {"second"}

    local.run(body())


def test_a_watch_that_never_works_is_tried_ever_more_seldom() -> None:
    """Each try costs a list of everything."""

    async def body() -> None:
        lists = 0

        async def answer(request: web.Request) -> web.StreamResponse:
            nonlocal lists
            if "watch" in request.query:
                return local.refused(500)
            lists += 1
            return local.listed(100)

        async with local.server(answer) as client:
            async with running(reflector.Reflector(client, clients.PODS, Seen().changed)):
                await asyncio.sleep(3.2)
            assert lists <= 3

    local.run(body())


def test_a_watch_that_ends_at_once_is_not_asked_for_again_at_once() -> None:
    async def body() -> None:
        watches = 0

        async def answer(request: web.Request) -> web.StreamResponse:
            nonlocal watches
            if "watch" not in request.query:
                return local.listed(100)
            watches += 1
            return web.Response(text="")

        async with local.server(answer) as client:
            async with running(reflector.Reflector(client, clients.PODS, Seen().changed)):
                await asyncio.sleep(0.7)
            assert watches == 1

    local.run(body())
