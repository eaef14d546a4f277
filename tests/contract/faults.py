"""An HTTP proxy that lets requests through to a real store, or fails them as it is told."""

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a rule decides by. `target` is path and query as sent."""

    method: str
    target: str

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def is_list(self) -> bool:
        """In the words of S3, Azure and Google."""
        words = "list-type=2" in self.target or "comp=list" in self.target or self.path.endswith("/o")
        return self.method == "GET" and words

    @property
    def is_write(self) -> bool:
        """Of an object's bytes: in the words of S3 and Azure, and of Google."""
        return self.method == "PUT" or (self.method == "POST" and self.path.startswith("/upload/"))

    def is_put_of(self, pattern: str) -> bool:
        return self.method == "PUT" and re.search(pattern, self.path) is not None


@dataclass(frozen=True)
class Answer:
    """Answer this instead of asking the server; as S3 says it.

    `more`: further elements of the document. `headers`: beside the type.
    """

    status: int
    code: str
    message: str = "told to fail"
    more: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self) -> dict[str, str]:
        return {"Content-Type": "application/xml", **self.headers}

    def body(self) -> bytes:
        return f"<Error><Code>{self.code}</Code><Message>{self.message}</Message>{self.more}</Error>".encode()


@dataclass(frozen=True)
class GoogleAnswer(Answer):
    """As Google's JSON API says it; `code` is the reason."""

    def all_headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json; charset=UTF-8", **self.headers}

    def body(self) -> bytes:
        one = {"message": self.message, "domain": "global", "reason": self.code}
        return json.dumps({"error": {"code": self.status, "message": self.message, "errors": [one]}}).encode()


@dataclass(frozen=True)
class AzureAnswer(Answer):
    """As Azure's Blob service says it: the code stands in a header too."""

    def all_headers(self) -> dict[str, str]:
        return {**super().all_headers(), "x-ms-error-code": self.code, "x-ms-version": "2021-12-02"}


@dataclass(frozen=True)
class Verbatim(Answer):
    """These bytes of JSON."""

    data: bytes = b""

    def all_headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **self.headers}

    def body(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class Hold:
    """Keep the request until `release` is set (or for ever: the client's patience ends first)."""

    release: threading.Event
    reached: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class LoseAnswer:
    """Let the server carry the request out and close the connection instead of answering."""


@dataclass(frozen=True)
class BreakOff:
    """Pass on the first half of the server's answer and close the connection."""


Fault = Answer | Hold | LoseAnswer | BreakOff
Rule = Callable[[Request], Fault | None]


class Proxy:
    """A running proxy. Set `rule` at any time; None lets everything through."""

    def __init__(self, endpoint: str, server: str) -> None:
        self.endpoint = endpoint
        self.server = server
        self.rule: Rule | None = None

    def fault(self, request: Request) -> Fault | None:
        return self.rule(request) if self.rule else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.proxy.fault(Request(self.command, self.path))
        if isinstance(fault, Hold):
            fault.reached.set()
            if not fault.release.wait(60):
                self.close_connection = True
                return
        if isinstance(fault, Answer):
            self._answer(fault.status, fault.all_headers(), b"" if self.command == "HEAD" else fault.body())
            return
        status, headers, answer = self._ask(body)
        if isinstance(fault, LoseAnswer):
            self.close_connection = True
            return
        self._answer(status, headers, answer, cut=isinstance(fault, BreakOff))

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.proxy.server, timeout=30)
        # The signature covers the headers, the proxy's own Host among them: they go on as they came.
        headers = {k: v for k, v in self.headers.items() if k.lower() not in {"expect", "connection"}}
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        kept = {
            k: v for k, v in response.getheaders() if k.lower() not in {"transfer-encoding", "connection"}
        }
        connection.close()
        return response.status, kept, answer

    def _answer(self, status: int, headers: dict[str, str], body: bytes, *, cut: bool = False) -> None:
        try:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            self.close_connection = self.close_connection or cut
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815 - the base class looks for these

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of a request is part of the tests."""


@contextmanager
def proxied(server_endpoint: str) -> Iterator[Proxy]:
    """Run a proxy in front of the server while the block lasts."""

    class Handler(_Handler):
        pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        proxy = Proxy(f"http://127.0.0.1:{server.server_port}", server_endpoint.removeprefix("http://"))
        Handler.proxy = proxy
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
