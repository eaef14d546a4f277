"""The chart's own suites, charts/spottrain/tests; what is packaged; its NetworkPolicy and `helm test`."""

import collections.abc as cabc
import contextlib
import http.server
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import yaml

from lab import build
from manifests import render
from spottrain.api import names


def test_the_suites_pass() -> None:
    line = [str(build.build_one("helm-unittest")), "--strict", str(render.CHART)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    files = len(list(render.CHART.glob("tests/*_test.yaml")))
    assert f"Test Suites: {files} passed, {files} total" in done.stdout


def test_the_package_has_the_test_of_a_release_and_not_the_suites(tmp_path: Path) -> None:
    line = [render.helm(), "package", str(render.CHART), f"--destination={tmp_path}"]
    subprocess.run(line, check=True, capture_output=True)
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        packed = set(archive.getnames())
    assert "spottrain/templates/tests/ready.yaml" in packed
    assert not any(path.startswith("spottrain/tests/") for path in packed)


def test_the_network_policy_leaves_open_the_port_where_workers_tell_their_step() -> None:
    (policy,) = (
        one
        for one in render.documents(render.template("--set=networkPolicy.enabled=true"))
        if one["kind"] == "NetworkPolicy"
    )
    (to_workers,) = (one for one in policy["spec"]["egress"] if "podSelector" in str(one))
    assert to_workers["ports"] == [{"port": names.PROGRESS_PORT}]
    selector = to_workers["to"][0]["podSelector"]
    assert selector == {"matchExpressions": [{"key": names.LABEL_JOB, "operator": "Exists"}]}


def test_the_documented_policy_of_workers_lets_their_gang_and_the_operator_in() -> None:
    text = (render.ROOT / "docs/install.md").read_text().partition("### Network policies")[2]
    policy = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])["spec"]
    workers = {"matchExpressions": [{"key": names.LABEL_JOB, "operator": "Exists"}]}
    gang, readers = policy["ingress"]
    assert policy["podSelector"] == workers
    assert gang == {"from": [{"podSelector": workers}]}
    assert policy["egress"][0] == {"to": [{"podSelector": workers}]}
    assert readers["ports"] == [{"port": names.PROGRESS_PORT}]
    assert render.NAMESPACE in readers["from"][0]["namespaceSelector"]["matchExpressions"][0]["values"]


@contextlib.contextmanager
def answering(status: int, text: str) -> cabc.Iterator[str]:
    """The URL of a server that gives this answer."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/readyz"
        server.shutdown()


def asked(url: str) -> tuple[int, str]:
    """Exit code and words of the program that `helm test` runs, on another URL."""
    line = [render.helm(), "template", "op", str(render.CHART), "--show-only=templates/tests/ready.yaml"]
    pod = yaml.safe_load(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    (container,) = pod["spec"]["containers"]
    *program, service, advice = container["command"]
    assert service == "http://op-spottrain-metrics:8080/readyz"
    done = subprocess.run(
        [sys.executable, *program[1:], url, advice], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_helm_test_ends_well_when_an_operator_is_ready() -> None:
    with answering(200, "ok") as url:
        assert asked(url) == (0, f"{url} ok\n")


def test_helm_test_fails_with_what_to_look_at_when_none_is() -> None:
    advice = "No operator is ready: see what its log says, by kubectl -n default logs deployment/op-spottrain"
    with answering(503, "pods: not listed yet") as url:
        assert asked(url) == (1, f"{url}: HTTP Error 503: Service Unavailable. {advice}\n")
    code, said = asked(url)
    assert (code, "Connection refused" in said, advice in said) == (1, True, True)
