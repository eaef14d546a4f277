"""The real Prometheus and its promtool."""

import contextlib
import json
import math
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab import clock, packages
from tests.contract import gateway


def program(name: str) -> Path:
    """`prometheus` or `promtool`."""
    return packages.unpacked("prometheus") / "usr/bin" / name


def promtool(*words: str | Path, stdin: str | None = None) -> str:
    """What it printed; it must agree."""
    line = [str(word) for word in (program("promtool"), *words)]
    done = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def try_rules(rules: Path, test: dict[str, Any], folder: Path) -> None:
    """`promtool test rules` of one group, evaluated each minute. JSON is YAML."""
    whole = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [{"interval": "1m", **test}]}
    (folder / "test.yaml").write_text(json.dumps(whole))
    promtool("test", "rules", folder / "test.yaml")


Labels = Mapping[str, str]
Point = tuple[float, float]
"""A moment in Unix seconds, and a value."""


class Server:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **query: str) -> Any:
        """`data` of an answer of its API; AssertionError with its words when it refuses."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            with refused:
                raise AssertionError(f"{query}: {refused.read().decode()}") from None

    def now(self, expression: str) -> list[tuple[Labels, float]]:
        """Each series with its value at this moment."""
        found = self.get("query", query=expression)["result"]
        return [(one["metric"], value) for one in found for _, value in _points([one["value"]])]

    def history(self, expression: str, begin: float, end: float) -> list[tuple[Labels, list[Point]]]:
        """Each series with a point a second between two moments (Unix seconds)."""
        span = {"start": f"{begin}", "end": f"{end}", "step": "1"}
        found = self.get("query_range", query=expression, **span)["result"]
        return [(one["metric"], points) for one in found if (points := _points(one["values"]))]

    def healthy(self) -> bool:
        """It answers."""
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=2):
                return True
        except OSError:
            return False


def _points(values: Iterable[tuple[float, str]]) -> list[Point]:
    """Those that are a number."""
    numbers = ((moment, float(value)) for moment, value in values)
    return [(moment, value) for moment, value in numbers if math.isfinite(value)]


@contextlib.contextmanager
def running(config: Mapping[str, Any], folder: Path) -> Iterator[Server]:
    """A Prometheus of its own, with its data below `folder`. JSON is YAML."""
    file, port = folder / "prometheus.yml", gateway.free_port()
    file.write_text(json.dumps(config))
    line = (
        program("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    )
    with (
        (folder / "prometheus.log").open("wb") as log,
        subprocess.Popen(line, stdout=log, stderr=log) as process,
    ):
        try:
            one = Server(f"http://127.0.0.1:{port}")
            clock.wait_for("Prometheus", one.healthy, seconds=30)
            yield one
        finally:
            process.terminate()
