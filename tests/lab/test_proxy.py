"""The proxies that tests break: each mode against a real server on the loopback interface."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from lab import clock
from lab.gateway import Fault
from lab.proxy import Mode, Proxy


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(client,), daemon=True).start()

        def answer(client: socket.socket) -> None:
            with client, contextlib.suppress(ConnectionResetError):
                while data := client.recv(1024):
                    client.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: tuple[str, int]) -> Iterator[Proxy]:
    with Proxy(echo) as one:
        yield one


def connect(proxy: Proxy, timeout: float = 5) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout)


def ask(client: socket.socket) -> bytes:
    client.sendall(b"hello")
    return client.recv(100)


def test_forwarding_passes_bytes_on_both_ways(proxy: Proxy) -> None:
    with connect(proxy) as client:
        assert ask(client) == b"hello"


def test_client_that_leaves_is_forgotten(proxy: Proxy) -> None:
    with connect(proxy) as client:
        assert ask(client) == b"hello"
        assert proxy.connections == 1
    assert clock.poll(lambda: proxy.connections == 0, seconds=5)


def test_blackhole_says_nothing_and_closes_nothing(proxy: Proxy) -> None:
    """Connections from before stay dead after it; new ones work again."""
    with connect(proxy) as before:
        assert ask(before) == b"hello"
        before.settimeout(0.3)
        proxy.set(Mode.BLACKHOLE)
        with pytest.raises(TimeoutError):
            ask(before)
        with connect(proxy, timeout=0.3) as during, pytest.raises(TimeoutError):
            ask(during)
        proxy.set(Mode.FORWARD)
        with connect(proxy) as after:
            assert ask(after) == b"hello"
        with pytest.raises(TimeoutError):
            ask(before)


def test_reset_breaks_old_and_new_connections(proxy: Proxy) -> None:
    with connect(proxy) as before:
        assert ask(before) == b"hello"
        proxy.set(Mode.RESET)
        with pytest.raises(ConnectionResetError):
            before.recv(100)
    with pytest.raises(ConnectionResetError), connect(proxy) as during:
        during.recv(100)


def test_refusing_listens_no_more_and_comes_back_on_the_same_port(proxy: Proxy) -> None:
    with connect(proxy) as before:
        assert ask(before) == b"hello"
        proxy.set(Mode.REFUSE)
        with pytest.raises(ConnectionResetError):
            before.recv(100)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.set(Mode.FORWARD)
    with connect(proxy) as after:
        assert ask(after) == b"hello"


def test_server_that_is_down_looks_like_a_reset() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and never listens
        with (
            Proxy(deaf.getsockname()) as proxy,
            pytest.raises(ConnectionResetError),
            connect(proxy) as client,
        ):
            client.recv(100)


@pytest.mark.parametrize(
    ("fault", "method", "path", "watch", "hit"),
    [
        (Fault(503), "GET", "/api/v1/pods", False, True),
        (Fault(503, prefix="/apis"), "GET", "/api/v1/pods", False, False),
        (Fault(429, methods=frozenset({"POST"})), "GET", "/api", False, False),
        (Fault(429, methods=frozenset({"POST"})), "POST", "/api", False, True),
        (Fault(410, watch=True), "GET", "/api/v1/pods", False, False),
        (Fault(410, watch=True), "GET", "/api/v1/pods", True, True),
        (Fault(503, suffix="/pods"), "GET", "/api/v1/namespaces/a/pods", True, True),
        (Fault(503, suffix="/pods"), "GET", "/api/v1/namespaces/a/pods/p", True, False),
    ],
)
def test_fault_hits_what_it_says(fault: Fault, method: str, path: str, watch: bool, hit: bool) -> None:
    assert fault.hits(method, path, watch=watch) is hit
