"""The agent itself, in threads, between a metadata service and an API server."""

import dataclasses
import datetime as dt
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spottrain.agent import clock as clocks
from spottrain.agent import cluster, main, settings
from tests.agent import mock, plane


class Agent:
    """One life of it after another."""

    def __init__(self, given: settings.Settings) -> None:
        self._given = given
        self._thread: threading.Thread | None = None
        self._clock = clocks.Clock()

    def start(self) -> None:
        self._clock = clocks.Clock()
        self._thread = threading.Thread(target=main.run, args=(self._given, self._clock))
        self._thread.start()

    def stop(self) -> None:
        self._clock.end()
        if self._thread is not None:
            self._thread.join(10)
            assert not self._thread.is_alive(), "the agent does not end"

    def get(self, path: str) -> str:
        """The text at /readyz and the like, whatever its status; empty while nobody answers."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._given.http_port}{path}", timeout=5
            ) as found:
                return str(found.read().decode())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.read().decode()
        except OSError:
            return ""

    def metric(self, name: str, **labels: str) -> float:
        total = 0.0
        for line in self.get("/metrics").splitlines():
            sample, _, value = line.rpartition(" ")
            if sample.partition("{")[0] == name and all(f'{k}="{v}"' in sample for k, v in labels.items()):
                total += float(value)
        return total

    @property
    def ready(self) -> bool:
        return self.get("/readyz") == "ok"


@pytest.fixture
def api() -> Iterator[plane.Plane]:
    with plane.running() as one:
        yield one


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t1\n")
    return tmp_path


StartAgent = Callable[..., Agent]


@pytest.fixture
def start_agent(api: plane.Plane, credentials: Path) -> Iterator[StartAgent]:
    started: list[Agent] = []

    def start(provider: str, url: str, **changes: object) -> Agent:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        given = settings.Settings(
            node=plane.NODE,
            provider=provider,
            metadata_url=url,
            window=None,
            margin=2.0,
            http_port=port,
            log_level="INFO",
            server=cluster.Server(api.url, credentials),
        )
        one = Agent(dataclasses.replace(given, **changes))  # type: ignore[arg-type]
        started.append(one)
        one.start()
        return one

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def ec2() -> Iterator[mock.Ec2Mock]:
    one = mock.Ec2Mock()
    yield one
    one.stop()


def soon(seconds: float) -> dt.datetime:
    """A whole second of the wall clock, as clouds tell it."""
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).replace(microsecond=0)
