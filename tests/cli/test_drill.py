"""`spottrain drill` as a process, between its arguments and kubectl."""

import subprocess
import sys
from pathlib import Path


def drill(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With a PATH that holds `folder` alone."""
    program = "from spottrain.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "drill", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(folder), "PYTHONPATH": ":".join(sys.path)},
    )


def test_without_kubectl_it_says_so(tmp_path: Path):
    done = drill(tmp_path, "n1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "spottrain: kubectl is not in PATH: install it, or add its folder to PATH\n"


def test_kubectls_own_words_are_passed_on_and_it_is_asked_in_the_context_that_was_given(tmp_path: Path):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "asked: $*" >&2\nexit 1\n')
    kubectl.chmod(0o755)
    done = drill(tmp_path, "n1", "--context", "prod")
    words = "asked: --context=prod --request-timeout=60s get node n1 --output=json"
    assert (done.returncode, done.stderr) == (1, f"spottrain: kubectl get: {words}\n")


def test_a_window_is_a_duration(tmp_path: Path):
    done = drill(tmp_path, "n1", "--window", "30")
    assert done.returncode == 2
    assert '"30" is not a duration; write it like 90s, 15m, 1h30m or 2d' in done.stderr
