"""The part of a kubelet that gives logs, as the API server asks for it: with connections that break off."""

import contextlib
import datetime as dt
import ssl
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab.cluster import Lab

Line = tuple[str, str]
"""A timestamp, and what the program wrote."""


class Logs:
    """The log of every container. `breaks`: after so many characters each next answer's connection is cut."""

    def __init__(self, lines: Sequence[Line], breaks: Sequence[int]) -> None:
        self.asked: list[dict[str, str]] = []
        self._lines, self._breaks = lines, list(breaks)

    def answer(self, query: dict[str, str]) -> tuple[str, bool]:
        """The text, and whether it is broken off."""
        self.asked.append(query)
        since = dt.datetime.fromisoformat(query.get("sinceTime", "1970-01-01T00:00:00Z"))
        text = "".join(f"{when} {said}\n" for when, said in self._lines if _moment(when) >= since)
        return (text[: self._breaks.pop(0)], True) if self._breaks else (text, False)


def _moment(stamp: str) -> dt.datetime:
    return dt.datetime.fromisoformat(stamp)


@contextlib.contextmanager
def running(lab: Lab, logs: Logs) -> Iterator[dict[str, Any]]:
    """It answers; what a Node's status must say so that it is asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

        def do_GET(self) -> None:
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            text, broken = logs.answer(query)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode() if text else b"")
            self.wfile.write(b"" if broken else b"0\r\n\r\n")
            self.close_connection = True

    host = urllib.parse.urlsplit(lab.api.url).hostname or ""
    server = ThreadingHTTPServer((host, 0), Handler)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pki = lab.state.pki
    own.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    server.socket = own.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield {
            "addresses": [{"type": "InternalIP", "address": host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_address[1]}},
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
