"""The chart's own suites, charts/spottrain/tests, and what of the chart is packaged."""

import subprocess
import tarfile
from pathlib import Path

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
