"""A Google Cloud Storage of the test's own: fake-gcs-server on a free port of this machine, in memory."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from lab import build
from tests.contract import gateway, servers


@contextmanager
def serve() -> Iterator[str]:
    """Run the server while the block lasts; its address."""
    port = gateway.free_port()
    address = f"http://127.0.0.1:{port}"
    command = [build.build_one("fake-gcs-server"), "-backend", "memory", "-scheme", "http"]
    # Requests for objects by their path, in which big files come and go, must name this host, at any port.
    command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", "127.0.0.1"]
    with servers.running(command, f"{address}/_internal/healthcheck"):
        yield address


def make_bucket(address: str, name: str) -> None:
    request = urllib.request.Request(
        f"{address}/storage/v1/b",
        data=json.dumps({"name": name}).encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=5).close()
