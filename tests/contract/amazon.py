"""An S3 and an SQS of the test's own: moto on a free port of this machine, in memory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract import gateway, servers


@contextmanager
def serve() -> Iterator[gateway.Server]:
    """Run the server while the block lasts."""
    port = gateway.free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", port]
    with servers.running(command, f"{address}/moto-api/"):
        yield gateway.Server(address)
