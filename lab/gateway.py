"""An HTTPS proxy in front of the API server that reads requests, and can answer some of them itself.

It ends TLS with a certificate of the lab's authority. A request with an Authorization header is passed on
with it; one without is passed on as the administrator's.
"""

import http.client
import http.server
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from lab import controlplane, pki
from lab.state import State

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade"}
_REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass(frozen=True)
class Fault:
    """Requests of these methods whose path begins so are answered with `status` and not passed on."""

    status: int
    prefix: str = "/"
    methods: frozenset[str] = frozenset()
    """Empty: all of them."""
    watch: bool | None = None
    """True: watches only; False: all but watches; None: both."""
    suffix: str = ""
    """What the path ends with, such as the name of a kind."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def hits(self, method: str, path: str, *, watch: bool) -> bool:
        """Whether it is this fault that answers."""
        return (
            path.startswith(self.prefix)
            and path.endswith(self.suffix)
            and (not self.methods or method in self.methods)
            and self.watch in {None, watch}
        )

    def body(self) -> bytes:
        """A metav1.Status, as the API server would say it."""
        reason = _REASONS.get(self.status, "Unknown")
        return json.dumps(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "message": f"the lab's gateway says {self.status}",
                "reason": reason,
                "code": self.status,
            }
        ).encode()


class Gateway:
    """Serves on 127.0.0.1 until `close`. A context manager."""

    def __init__(self, state: State) -> None:
        self._api = controlplane.api(state)
        self._faults: list[Fault] = []
        self._watches: dict[int, tuple[str, http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self.answered = 0
        """How many requests a fault has answered."""
        pair = pki.certificate(state.pki, "gateway", "/CN=gateway", "IP:127.0.0.1")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        # The handshake is left to the thread of each connection.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, daemon=True, name="gateway").start()

    @property
    def url(self) -> str:
        """Where it serves, for a kubeconfig."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """Answer with these faults, for a while."""
        with self._lock:
            self._faults += faults
        try:
            yield
        finally:
            with self._lock:
                self._faults = [one for one in self._faults if one not in faults]

    def cut_watches(self, part: str = "") -> int:
        """Break the watches that run and whose path holds `part`; returns how many."""
        with self._lock:
            hit = [(key, upstream) for key, (path, upstream) in self._watches.items() if part in path]
            for key, _ in hit:
                del self._watches[key]
        for _, upstream in hit:
            if upstream.sock is not None:
                upstream.sock.shutdown(2)
        return len(hit)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self.cut_watches()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the handler's threads ask for.

    def fault(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """The fault that answers this request, if any."""
        with self._lock:
            found = next((one for one in self._faults if one.hits(method, path, watch=watch)), None)
            self.answered += found is not None
        return found

    def upstream(self, *, anonymous: bool) -> http.client.HTTPSConnection:
        """A connection to the API server: as nobody (the request brings its own token) or administrator."""
        context = ssl.create_default_context(cafile=str(self._api.ca)) if anonymous else self._api.tls
        host = urllib.parse.urlsplit(self._api.url).netloc
        return http.client.HTTPSConnection(host, context=context)

    def watching(self, path: str, upstream: http.client.HTTPConnection) -> None:
        """A watch has begun."""
        with self._lock:
            self._watches[id(upstream)] = (path, upstream)

    def watched(self, upstream: http.client.HTTPConnection) -> bool:
        """It has ended; False when it was cut."""
        with self._lock:
            return self._watches.pop(id(upstream), None) is not None


def _handler(gateway: Gateway) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(_Handler):
        served_by = gateway

    return Handler


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a client; requests on it come one after the other."""

    protocol_version = "HTTP/1.1"
    served_by: Gateway
    timeout = 600

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Silence."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        watch = "watch=true" in url.query or "watch=1" in url.query
        fault = self.served_by.fault(self.command, url.path, watch=watch)
        if fault is not None:
            self._answer(fault.status, {"Content-Type": "application/json", **fault.headers}, fault.body())
            return
        try:
            self._pass_on(body, watch=watch)
        except (OSError, http.client.HTTPException):
            # Either side broke off, or the watch was cut: the client sees its connection end.
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the base class's names

    def _pass_on(self, body: bytes, *, watch: bool) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        upstream = self.served_by.upstream(anonymous="Authorization" in self.headers)
        try:
            upstream.request(self.command, self.path, body=body or None, headers=headers)
            if watch:
                self.served_by.watching(self.path, upstream)
            answer = upstream.getresponse()
            kept = {k: v for k, v in answer.getheaders() if k.lower() not in _HOP_BY_HOP}
            if watch and answer.status == 200:
                self._stream(answer, kept)
            else:
                self._answer(answer.status, kept, answer.read())
        finally:
            if watch and not self.served_by.watched(upstream):
                self.close_connection = True
            upstream.close()

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse, headers: Mapping[str, str]) -> None:
        """As it comes, in chunks, to its end."""
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")
