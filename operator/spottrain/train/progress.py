"""`/progress`: which step this attempt is at and how its saves fare, for the operator and for people.

    GET http://<pod>:$SPOTTRAIN_PROGRESS_PORT/progress
    {"spottrain": 1, "attemptID": "5e0f…", "step": 41, …}       null before the first step

The rest of it is `telling.Telling.report`'s. Rank 0 answers, while its session lasts, and only where the
operator sets the port. It is a thread of its own, so it answers while training hangs in a collective. One
answer at a time, each with a time limit: whoever else calls can't use it up, and it is never in the way of
training.
"""

import http.server
import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from spottrain.train import metrics
from spottrain.train.log import Log

PATH = "/progress"
METRICS = "/metrics"
_PATIENCE_SECONDS = 2.0


class Progress:
    """The step, and the server that tells it if there is a port."""

    def __init__(
        self,
        attempt_id: str,
        log: Log,
        more: Callable[[], Mapping[str, Any]] = dict,
        page: Callable[[], bytes] = bytes,
    ) -> None:
        """`more`: what else to tell at that moment (JSON); `page`: the page for Prometheus.

        Both are asked for in the server's thread.
        """
        self._attempt_id = attempt_id
        self._log = log
        self._more = more
        self._metrics = page
        self._server: http.server.HTTPServer | None = None
        self.step: int | None = None

    def serve(self, port: int) -> None:
        """Answer from now on. A port that is taken, as by another pod on the host's network, is logged."""
        try:
            self._server = _listen(port, self._page)
        except OSError as error:
            self._log.warning("no-progress-port", f"progress is not told: port {port}: {error}", port=port)
            return
        run = self._server.serve_forever
        threading.Thread(target=run, name="spottrain-progress", daemon=True).start()

    @property
    def port(self) -> int | None:
        """Where it answers."""
        return None if self._server is None else int(self._server.server_address[1])

    def close(self) -> None:
        """Answer no more: what the program does after its session is not measured in steps."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _page(self, path: str) -> tuple[str, bytes]:
        """Its type and its bytes; none where there is no such page."""
        if path == METRICS:
            return metrics.CONTENT_TYPE, self._metrics()
        if path != PATH:
            return "text/plain", b""
        said = {"spottrain": 1, "attemptID": self._attempt_id, "step": self.step, **self._more()}
        return "application/json", json.dumps(said).encode()


def _listen(port: int, page: Callable[[str], tuple[str, bytes]]) -> http.server.HTTPServer:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS

        def do_GET(self) -> None:
            kind, body = page(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The program's output is its own."""

    return _Server(("::" if _Server.address_family == socket.AF_INET6 else "", port), Handler)


class _Server(http.server.HTTPServer):
    """On IPv6 and IPv4 alike where the machine has both."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, *_: object) -> None:
        """Whoever called has gone away in the middle: nothing to tell anybody."""
