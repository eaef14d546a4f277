"""The server that tells the step."""

import json
import socket
import urllib.error
import urllib.request

import pytest

from spottrain.train.clock import SystemClock
from spottrain.train.log import Log
from spottrain.train.progress import Progress

LOG = Log(SystemClock())


def ask(port: int | None, path: str = "/progress") -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return json.load(answer)


def test_it_tells_the_attempt_and_the_newest_step() -> None:
    progress = Progress("5e0f", LOG)
    progress.serve(0)
    try:
        assert ask(progress.port) == {"spottrain": 1, "attemptID": "5e0f", "step": None}
        progress.step = 41
        assert ask(progress.port) == {"spottrain": 1, "attemptID": "5e0f", "step": 41}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(progress.port, "/")
    finally:
        progress.close()


def test_the_page_for_prometheus_is_beside_it() -> None:
    progress = Progress("5e0f", LOG, page=lambda: b"spottrain_run_step 41\n")
    progress.serve(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{progress.port}/metrics", timeout=5) as answer:
            assert answer.read() == b"spottrain_run_step 41\n"
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    finally:
        progress.close()


def test_after_the_session_nobody_answers() -> None:
    progress = Progress("5e0f", LOG)
    progress.serve(0)
    port = progress.port
    progress.close()
    with pytest.raises(urllib.error.URLError):
        ask(port)
    progress.close()


def test_a_port_that_is_taken_costs_a_warning_and_no_training(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        progress = Progress("5e0f", LOG)
        progress.serve(other.getsockname()[1])
    assert progress.port is None
    assert "event=no-progress-port" in caplog.text
    progress.close()


def test_a_caller_that_says_nothing_keeps_nobody_waiting_for_long() -> None:
    progress = Progress("5e0f", LOG)
    progress.serve(0)
    try:
        with socket.create_connection(("127.0.0.1", progress.port or 0)):
            assert ask(progress.port) == {"spottrain": 1, "attemptID": "5e0f", "step": None}
    finally:
        progress.close()
