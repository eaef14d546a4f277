"""`/healthz`, `/readyz` and `/metrics`, on a thread of their own."""

import collections.abc as cabc
import http.server
import socket
import sys
import threading
from typing import Any

import prometheus_client as prometheus

from spottrain.agent import engine, metrics


class _Server(http.server.ThreadingHTTPServer):
    """IPv4 and IPv6, where the node has both."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that has given up is nothing to tell."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(
    port: int, one: engine.Engine, counts: metrics.Metrics, alive: cabc.Callable[[], bool]
) -> http.server.ThreadingHTTPServer:
    """Start serving on all addresses; `alive`: every thread still does its work."""

    def answer(path: str) -> tuple[int, bytes, str]:
        if path == "/metrics":
            one.show_metrics()
            return 200, prometheus.generate_latest(counts.registry), prometheus.CONTENT_TYPE_LATEST
        good = {"/readyz": lambda: one.ready, "/healthz": alive}.get(path)
        if good is None:
            return 404, b"only /healthz, /readyz and /metrics are here", "text/plain"
        return (200, b"ok", "text/plain") if good() else (503, one.words().encode(), "text/plain")

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            status, body, kind = answer(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: probes come every few seconds."""

    try:
        server = _Server(("", port), Handler)
    except OSError as error:
        raise SystemExit(f"port {port} of the node: {error}; choose another one (agent.port)") from error
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
