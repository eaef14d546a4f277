"""A control plane with no machines but kwok's, and the operator as a process beside it."""

import os
import secrets
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from lab import clock
from lab.api import Api
from lab.cluster import Lab
from lab.config import Config
from tests.cluster import play, rights

ROOT = Path(__file__).parents[2]
NODE_LOSS = 20


def lab_name(kind: str) -> str:
    """Labs of one's own, beside those of another checkout: SPOTTRAIN_TEST_LAB is put before their names."""
    return os.environ.get("SPOTTRAIN_TEST_LAB", "") + kind


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def plane() -> Lab:
    """A lab of its own, so that no other operator and no real node is in the way."""
    lab = Lab(lab_name("cases"))
    lab.up(Config(nodes=(), audit=True))
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        lab.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    lab.kubectl("wait", "--for=condition=Established", "crd/spottrainingjobs.spottrain.dev")
    for name in play.ready(lab.api):
        lab.remove_fake_nodes([name])
    return lab


@pytest.fixture(scope="session")
def api(plane: Lab) -> Api:
    return plane.api


SETTINGS = {
    "SPOTTRAIN_NODE_LOSS_SECONDS": str(NODE_LOSS),
    "SPOTTRAIN_SETTLEMENT_SECONDS": "5",
    "SPOTTRAIN_PROGRESS_SECONDS": "0",  # nobody answers at the addresses of kwok's pods
}


class Operator:
    """The operator's process, with `environment` on top of the lab's, started by way of the command `by`."""

    def __init__(
        self, lab: Lab, log: Path, environment: Mapping[str, str] | None = None, by: Sequence[str] = ()
    ) -> None:
        self._environment = {**os.environ, **lab.env(), **SETTINGS, **(environment or {})}
        self._by = by
        self.log = log
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        clock.wait_for("the operator ready", self.ready, seconds=30)

    def launch(self) -> None:
        """Start it."""
        program = "from spottrain.controller.main import main; main()"
        command = [*self._by, sys.executable, "-c", program, f"--http-port={self.port}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, cwd=ROOT)

    def ready(self) -> bool:
        """Whether it says so; it is an error that it has ended."""
        assert self._process is not None
        assert self._process.poll() is None, f"the operator ended:\n{self.log.read_text()[-3000:]}"
        return self.get("/readyz") == "ok"

    def get(self, path: str) -> str:
        """The text there, whatever its status; empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels."""
        total = 0.0
        for line in self.get("/metrics").splitlines():
            sample, _, value = line.rpartition(" ")
            if sample.partition("{")[0] == name and all(f'{k}="{v}"' in sample for k, v in labels.items()):
                total += float(value)
        return total

    def kill(self) -> None:
        """As the machine under it would: no goodbye."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; returns its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=15)


@pytest.fixture(scope="session")
def operator(plane: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """It has the rights that the chart gives it, and asks for nothing beyond them in the whole suite."""
    log = ROOT / "build" / "tests" / "operator.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    rights.grant(plane)
    before = len(list(rights.denied(plane)))
    own = rights.kubeconfig(plane, tmp_path_factory.mktemp("operator") / "kubeconfig")
    one = Operator(plane, log, {"KUBECONFIG": str(own)})
    one.start()
    yield one
    assert one.stop() == 0
    assert list(rights.denied(plane))[before:] == []
    assert "Traceback" not in log.read_text(), f"a pass broke: see {log}"


@pytest.fixture
def job(plane: Lab, operator: Operator) -> Iterator[play.Job]:
    """A namespace of the test's own, with a name for one job in it."""
    namespace = f"t-{secrets.token_hex(4)}"
    plane.kubectl("create", "namespace", namespace)
    plane.wait_namespace(namespace)
    yield play.Job(plane.api, namespace)
    for name in play.Job(plane.api, namespace).pods():
        play.Job(plane.api, namespace).vanish(name)
    plane.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
