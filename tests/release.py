"""The operator as users install it: its image and chart, on a lab, for one namespace."""

import json

from lab import cluster, shell
from manifests import render

IMAGE = "docker.io/spottrain/operator:0.1.0"
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}


class Release:
    """A release of the chart."""

    def __init__(self, lab: cluster.Lab, namespace: str) -> None:
        self._lab = lab
        self._namespace = namespace
        self.installed = False

    def install(self, image: str, *options: str) -> None:
        """Install or upgrade, and wait until the operator is ready."""
        self.installed = True
        self._helm(
            *("upgrade", "--install", "op", render.CHART, "--take-ownership", "--wait", "--timeout=90s"),
            *options,
            f"--set=namespaces={{{self._namespace}}},fullnameOverride={self._namespace}-op",
            f"--set=image.repository={image.rpartition(':')[0]},image.tag={image.rpartition(':')[2]}",
            f"--set-json=tolerations=[{json.dumps(GPU_TAINT)}]",
        )

    def test(self) -> str:
        """What `helm test` says of it; LabError when the test fails."""
        return self._helm("test", "op", "--timeout=90s")

    def uninstall(self) -> None:
        """Remove it, if that was not done yet."""
        if self.installed:
            self._helm("uninstall", "op", "--wait", "--timeout=60s")
            self.installed = False

    def _helm(self, *line: shell.Word) -> str:
        return shell.run(render.helm(), *line, "--namespace", self._namespace, env=self._lab.env())
