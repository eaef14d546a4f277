"""The S3 server beside the cluster: versitygw, whose objects are plain files.

It survives kill -9 with all it has acknowledged, and its conditional writes hold under races.
"""

import http.client
import urllib.parse

from lab import controlplane, process
from lab.state import State

ACCESS_KEY = "test"
SECRET_KEY = "testtest"  # noqa: S105 - a lab's store on a private bridge
REGION = "us-east-1"
NAME = "versitygw"


def start(state: State) -> None:
    """Start the server on what the store's folder holds; it answers on return."""
    address = urllib.parse.urlsplit(state.addresses.store_url).netloc
    process.spawn(
        [state.bin / NAME, "--port", address, "--region", REGION, "--quiet", "posix", state.store],
        log=state.log / f"{NAME}.log",
        pid_file=state.pids / NAME,
        env={"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
    )
    controlplane.wait_ready(state, NAME, lambda: _answers(address), seconds=20)


def stop(state: State) -> None:
    """End it; objects stay."""
    process.stop(state.pids / NAME, grace=3)


def running(state: State) -> bool:
    """Whether the process lives."""
    return process.find(state.pids / NAME) is not None


def environment(state: State) -> dict[str, str]:
    """What an S3 client needs to know."""
    return {
        "SPOTTRAIN_S3_ENDPOINT": state.addresses.store_url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
    }


def _answers(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=2)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()
