"""kubectl, as the demo uses it: the user's own kubeconfig, contexts and log-in plugins all count."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from demo.errors import DemoError


@dataclass(frozen=True)
class Programs:
    """kubectl and helm in one environment (PATH, KUBECONFIG, ...)."""

    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, *words: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Run a program to its end and return what it printed; DemoError with its last lines otherwise."""
        try:
            done = subprocess.run(
                words, input=stdin, env=self.env, capture_output=True, text=True, timeout=timeout, check=False
            )
        except FileNotFoundError as error:
            raise DemoError(f"{words[0]} is not installed: put it on the PATH") from error
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"`{' '.join(words)}` has not ended after {timeout:g} s") from error
        if done.returncode != 0:
            tail = " ".join(done.stderr.strip().splitlines()[-5:])
            raise DemoError(f"`{' '.join(words)}` failed: {tail}")
        return done.stdout

    def kubectl(self, *words: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Run kubectl."""
        return self.run("kubectl", *words, stdin=stdin, timeout=timeout)

    def get(self, *words: str) -> dict[str, Any]:
        """`kubectl get ... -o json`."""
        loaded: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json"))
        return loaded

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Make the objects, or make them as the documents say."""
        body = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def stream(self, *words: str, errors: IO[str]) -> "subprocess.Popen[str]":
        """Start kubectl and read its output as it comes."""
        return subprocess.Popen(
            ("kubectl", *words),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def read(path: Path) -> str:
    """A file's text; DemoError when it is not there."""
    try:
        return path.read_text()
    except OSError as error:
        raise DemoError(f"{path} cannot be read: {error.strerror}") from error
