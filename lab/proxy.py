"""A TCP proxy in front of the API server that tests can break in every way a network breaks.

TLS passes through it untouched; what needs a look inside is in lab/gateway.py.
"""

import contextlib
import enum
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from lab.errors import LabError

_CHUNK = 65536


class Mode(enum.Enum):
    """What the proxy does with connections."""

    FORWARD = "forward"
    BLACKHOLE = "blackhole"
    """Nothing comes through and nothing is closed. Connections from before stay dead for good, as behind a
    NAT that has forgotten them; new ones are taken and hear nothing."""
    RESET = "reset"
    """All connections break with RST, new ones as soon as they are made."""
    REFUSE = "refuse"
    """Nobody listens; connections from before break with RST."""


class Proxy:
    """Forwards connections to `target` (host, port) until `close`. A context manager.

    It listens at `listen`, an address of the loopback interface; port 0 is a free one.
    """

    def __init__(self, target: tuple[str, int], listen: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self._target = target
        self._host = listen[0]
        self._mode = Mode.FORWARD
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._closed = False
        self._listener = _listen(*listen)
        self.port: int = self._listener.getsockname()[1]
        self._accept_from(self._listener)

    @property
    def url(self) -> str:
        """Where it listens, for a kubeconfig."""
        return f"https://{self._host}:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open through it."""
        with self._lock:
            return len(self._pairs)

    def set(self, mode: Mode) -> None:
        """Behave so from now on."""
        with self._lock:
            if self._closed:
                raise LabError("the proxy is closed")
            before, self._mode = self._mode, mode
            pairs = list(self._pairs)
        if mode is Mode.BLACKHOLE:
            for pair in pairs:
                pair.silence()
        elif mode in {Mode.RESET, Mode.REFUSE}:
            for pair in pairs:
                pair.reset()
        if mode is Mode.REFUSE:
            _stop_listening(self._listener)
        elif before is Mode.REFUSE:
            self._listener = _listen(self._host, self.port)
            self._accept_from(self._listener)

    def close(self) -> None:
        """End it and every connection."""
        with self._lock:
            self._closed = True
            pairs = list(self._pairs)
        _stop_listening(self._listener)
        for pair in pairs:
            pair.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept_from(self, listener: socket.socket) -> None:
        threading.Thread(target=self._accept, args=(listener,), daemon=True, name="proxy").start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # it was closed
            self._take(client)

    def _take(self, client: socket.socket) -> None:
        with self._lock:
            mode, closed = self._mode, self._closed
        if closed or mode in {Mode.RESET, Mode.REFUSE}:
            _reset(client)
            return
        server: socket.socket | None = None
        if mode is Mode.FORWARD:
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                _reset(client)
                return
            server.settimeout(None)
        pair = _Pair(client, server, self._forget)
        with self._lock:
            self._pairs.add(pair)
        pair.start()

    def _forget(self, pair: "_Pair") -> None:
        with self._lock:
            self._pairs.discard(pair)


class _Pair:
    """One connection: a client and, unless it fell into the blackhole, the server."""

    def __init__(
        self, client: socket.socket, server: socket.socket | None, ended: "Callable[[_Pair], None]"
    ) -> None:
        self._client, self._server, self._ended = client, server, ended
        self._silent = threading.Event()
        self._done = threading.Event()
        if server is None:
            self._silent.set()

    def start(self) -> None:
        """Pass bytes on from now on."""
        threading.Thread(target=self._run, daemon=True, name="proxy-pair").start()

    def silence(self) -> None:
        """Pass on nothing any more, for good."""
        self._silent.set()

    def reset(self) -> None:
        """Break it on both sides."""
        self._done.set()
        for end in (self._client, self._server):
            if end is not None:
                _reset(end)
        self._ended(self)

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._pump()
        if not self._silent.is_set():
            self.reset()

    def _pump(self) -> None:
        if self._server is None:
            return
        with selectors.DefaultSelector() as ready:
            ready.register(self._client, selectors.EVENT_READ, self._server)
            ready.register(self._server, selectors.EVENT_READ, self._client)
            while not self._done.is_set():
                for key, _ in ready.select(timeout=1.0):
                    data = key.fileobj.recv(_CHUNK)  # type: ignore[union-attr]
                    if self._silent.is_set():
                        return
                    if not data:
                        return
                    key.data.sendall(data)


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(128)
    return listener


def _stop_listening(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
    listener.close()


def _reset(end: socket.socket) -> None:
    """Close with RST instead of FIN."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
