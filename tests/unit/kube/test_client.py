"""What is counted of each request, and what its answer may be."""

import pytest
from aiohttp import web
from kubernetes.aio.client import configuration

from spottrain.kube import client as clients
from spottrain.kube import errors
from tests.unit.kube import local


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (clients.PODS.path(), "pods"),
        (clients.PODS.path("t", "tr-0-1"), "pods"),
        (clients.PODS.path("t", "tr-0-1", "log"), "pods/log"),
        (clients.NODES.path(name="n"), "nodes"),
        (clients.SPOT_TRAINING_JOBS.path("t", "tr", "status"), "spottrainingjobs/status"),
        (clients.JOBS.path("t"), "jobs"),
        ("/api/v1/namespaces/t", "namespaces"),
    ],
)
def test_a_request_is_counted_by_kind_and_subresource_and_never_by_name(path: str, what: str) -> None:
    assert clients.what(path) == what


def test_each_request_is_told_of_once_with_the_answers_code() -> None:
    async def body() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                return web.Response(text="")
            return local.refused(404) if request.method == "DELETE" else web.json_response({})

        async with local.server(answer) as client:
            told: list[tuple[str, str, str]] = []
            client.sent = lambda *one: told.append(one)
            await client.request("GET", clients.NODES.path())
            with pytest.raises(errors.NotFoundError):
                await client.request("DELETE", clients.PODS.path("t", "p"))
            assert [event async for event in client.watch(clients.JOBS.path("t"), {}, 5)] == []
        assert told == [
            ("GET", "nodes", "200"),
            ("DELETE", "pods", "404"),
            ("WATCH", "jobs", "200"),
        ]

    local.run(body())


def test_a_request_that_got_no_answer_counts_too() -> None:
    async def body() -> None:
        settings = configuration.Configuration()
        settings.host = "http://127.0.0.1:1"
        client = clients.Client(settings)
        told: list[tuple[str, str, str]] = []
        client.sent = lambda *one: told.append(one)
        with pytest.raises(errors.UnreachableError):
            await client.request("GET", clients.NODES.path())
        await client.close()
        assert told == [("GET", "nodes", "none")]

    local.run(body())


@pytest.mark.parametrize("text", ["<html>sign in</html>", "[1]"])
def test_an_answer_that_is_no_object_is_an_error_that_says_whom_to_suspect(text: str) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{text}\n")

    async def body() -> None:
        async with local.server(answer) as client:
            words = "is no JSON object: see whether a proxy answers in the API server's place"
            with pytest.raises(errors.UnreadableError, match=f"GET .*{words}"):
                await client.request("GET", clients.NODES.path())
            with pytest.raises(errors.UnreadableError, match=f"WATCH .*{words}"):
                await anext(client.watch(clients.NODES.path(), {}, 5))

    local.run(body())
