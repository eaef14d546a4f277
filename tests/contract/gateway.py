"""A real S3 server of the test's own: versitygw on a free port of this machine, its objects in a folder."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from lab import build
from spottrain.checkpoint.store import Limits
from tests.contract import servers

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}
QUICK = Limits(connect=2.0, read=5.0, tries=2)


@dataclass(frozen=True)
class Server:
    """A running server that speaks S3."""

    endpoint: str

    def client(self) -> Any:
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=KEYS["AWS_REGION"],
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )

    def make_bucket(self, name: str) -> None:
        self.client().create_bucket(Bucket=name)


@dataclass(frozen=True)
class Gateway(Server):
    """With the folder whose subfolders are the buckets."""

    folder: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(folder: Path) -> Iterator[Gateway]:
    """Run the server while the block lasts."""
    address = f"127.0.0.1:{free_port()}"
    command = [build.build_one("versitygw"), "--port", address, "--quiet", "posix", folder]
    env = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    with servers.running(command, f"http://{address}", env):
        yield Gateway(f"http://{address}", folder)
