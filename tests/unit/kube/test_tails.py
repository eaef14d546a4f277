"""The ends of failed workers' logs."""

from typing import Any

from aiohttp import web

from spottrain.kube import tails
from tests.unit.kube import local


def failed(part: str = "containerStatuses") -> dict[str, Any]:
    ended = {"name": "setup", "state": {"terminated": {"exitCode": 1}}}
    return {
        "metadata": {"namespace": "t", "name": "tr-0-1", "uid": "p"},
        "spec": {"containers": [{"name": "trainer"}]},
        "status": {"phase": "Failed", part: [ended]},
    }


def tail_of(log: bytes, raw: dict[str, Any]) -> tuple[str, str]:
    """What is kept of that log, and of which container it was asked for."""
    asked: list[str] = []
    kept: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.query["container"])
        return web.Response(body=log[: int(request.query["limitBytes"])], content_type="text/plain")

    async def body() -> None:
        async with local.server(answer) as client:
            done: list[Any] = []
            reader = tails.Tails(client, done.append)
            reader.want(raw)
            await local.until(lambda: done)
            kept.append(reader.get("p"))

    local.run(body())
    return kept[0], asked[0]


def test_of_long_lines_the_end_is_kept() -> None:
    log = b"x" * 5000 + b"\nValueError: the reason"
    text, _ = tail_of(log, failed())
    assert text.endswith("ValueError: the reason")
    assert len(text) == tails.CHARACTERS


def test_a_progress_bar_that_is_cut_in_the_middle_of_a_character_is_text_all_the_same() -> None:
    text, _ = tail_of("█".encode()[:2] + b" 40%", failed())
    assert text == "\N{REPLACEMENT CHARACTER} 40%"


def test_the_log_of_an_init_container_that_failed_is_the_one_to_read() -> None:
    assert tail_of(b"no bucket", failed("initContainerStatuses")) == ("no bucket", "setup")
