"""The cluster, by the user's own kubectl: with its credentials, contexts and log-in helpers."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spottrain import errors

Object = dict[str, Any]
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Kubectl:
    """`context`: of the kubeconfig; the current one if it is empty."""

    context: str = ""

    def get(self, *what: str) -> Object:
        """An object, or a list of them. Raises ClusterError with kubectl's own words."""
        return dict(json.loads(self.run("get", *what, "--output=json")))

    def run(self, *arguments: str) -> str:
        """What it prints. Raises ClusterError with its own words."""
        command = ["kubectl", *self._chosen(), f"--request-timeout={LIMIT_SECONDS:.0f}s", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        except FileNotFoundError as error:
            raise errors.ClusterError(
                "kubectl is not in PATH: install it, or add its folder to PATH"
            ) from error
        if done.returncode:
            raise errors.ClusterError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def _chosen(self) -> Sequence[str]:
        return [f"--context={self.context}"] if self.context else []
