"""The two systems that are compared, each with its objects for a gang and a process that runs them."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final, Protocol

from bench.watching import Labels
from lab import build, clock, controlplane, pki, process, programs, shell
from lab.cluster import Lab

Object = dict[str, Any]
ROOT: Final = Path(__file__).parents[1]
IMAGE: Final = "docker.io/library/python:3.11-slim-bookworm"


class System(Protocol):
    """What brings lost gangs back."""

    name: str
    labels: Labels

    def start(self, lab: Lab, log: Path) -> None:
        """Start it; it is ready on return."""

    def stop(self, lab: Lab) -> None:
        """End it."""

    def collection(self, namespace: str) -> str:
        """Path of its objects."""

    def gang(self, name: str, workers: int) -> Object:
        """An object that keeps `workers` workers running together."""


def busy(lab: Lab) -> dict[str, str]:
    """The environment of a controller that has a token, as it has in its pod."""
    return {**lab.env(), "KUBECONFIG": str(controlplane.busy_kubeconfig(lab.state))}


def template() -> Object:
    """The workers' pod template, the same for both: one GPU each."""
    container = {
        "name": "trainer",
        "image": IMAGE,
        "command": ["sleep", "86400"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


class Spottrain:
    """Our operator from this checkout."""

    name = "spottrain"
    labels = Labels(gang="spottrain.dev/job", attempt="spottrain.dev/attempt")

    def start(self, lab: Lab, log: Path) -> None:
        """The CRD, and the process beside the control plane."""
        for path in sorted((ROOT / "crds").glob("*.yaml")):
            _install(lab, path)
        self.stop(lab)
        port = self._port(lab)
        code = "from spottrain.controller.main import main; main()"
        # Nobody answers at the addresses of kwok's pods.
        flags = ("--http-port", str(port), "--log-level", "WARNING", "--progress-seconds", "0")
        process.spawn(
            [sys.executable, "-c", code, *flags],
            log=log,
            pid_file=self.pid_file(lab),
            env={**busy(lab), "PYTHONPATH": str(ROOT / "operator")},
        )
        url = self.url(lab, "/readyz")
        clock.wait_for(f"spottrain ready ({log})", lambda: shell.succeeds("curl", "-fs", url), seconds=60)

    def stop(self, lab: Lab) -> None:
        """SIGTERM, as a kubelet would."""
        process.stop(self.pid_file(lab), grace=10)

    def pid_file(self, lab: Lab) -> Path:
        """Where its process is found."""
        return lab.state.pids / self.name

    def url(self, lab: Lab, path: str) -> str:
        """Of its own server: probes and metrics."""
        return f"http://127.0.0.1:{self._port(lab)}{path}"

    @staticmethod
    def _port(lab: Lab) -> int:
        return lab.addresses.port(7)

    def collection(self, namespace: str) -> str:
        """SpotTrainingJobs."""
        return f"/apis/spottrain.dev/v1alpha1/namespaces/{namespace}/spottrainingjobs"

    def gang(self, name: str, workers: int) -> Object:
        """A gang with defaults throughout."""
        spec = {
            "mode": "Gang",
            "workers": workers,
            "checkpoint": {"uri": f"s3://bench/{name}"},
            "template": template(),
        }
        return {
            "apiVersion": "spottrain.dev/v1alpha1",
            "kind": "SpotTrainingJob",
            "metadata": {"name": name},
            "spec": spec,
        }


class JobSet:
    """kubernetes-sigs/jobset beside the control plane, at the client limits it ships with (500/s)."""

    name = "jobset"
    labels = Labels(gang="jobset.sigs.k8s.io/jobset-name", attempt="jobset.sigs.k8s.io/restart-attempt")

    def start(self, lab: Lab, log: Path) -> None:
        """Built from its Go module. Without its webhooks: `gang` writes out what they would add."""
        program = build.build_one("jobset")
        _install(lab, _jobset_crd())
        self.stop(lab)
        folder = lab.state.folder / "jobset"
        self._certificate(lab, folder)
        config = folder / "config.json"
        config.write_text(json.dumps(self._settings(lab)))
        process.spawn(
            [program, "--config", config, "--zap-log-level", "error"],
            log=log,
            pid_file=lab.state.pids / self.name,
            env={**busy(lab), "TMPDIR": str(folder)},
        )
        url = f"http://127.0.0.1:{lab.addresses.port(6)}/readyz"
        clock.wait_for(f"jobset ready ({log})", lambda: shell.succeeds("curl", "-fs", url), seconds=60)

    @staticmethod
    def _certificate(lab: Lab, folder: Path) -> None:
        """Its webhook server wants a certificate even where nobody calls it."""
        target = folder / "k8s-webhook-server" / "serving-certs"
        target.mkdir(parents=True, exist_ok=True)
        pair = pki.certificate(lab.state.pki, "jobset", "/CN=jobset", "IP:127.0.0.1")
        shutil.copy(pair.cert, target / "tls.crt")
        shutil.copy(pair.key, target / "tls.key")

    @staticmethod
    def _settings(lab: Lab) -> Object:
        return {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "webhook": {"port": lab.addresses.port(5)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{lab.addresses.port(6)}"},
        }

    def stop(self, lab: Lab) -> None:
        """SIGTERM, as a kubelet would."""
        process.stop(lab.state.pids / self.name, grace=10)

    def collection(self, namespace: str) -> str:
        """JobSets."""
        return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"

    def gang(self, name: str, workers: int) -> Object:
        """A gang as JobSet's documents advise: the first lost pod fails its Job, which restarts all of it."""
        job = {
            "parallelism": workers,
            "completions": workers,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": template(),
        }
        spec = {
            "replicatedJobs": [
                {"name": "w", "replicas": 1, "groupName": "default", "template": {"spec": job}}
            ],
            "failurePolicy": {"maxRestarts": 1000, "restartStrategy": "Recreate"},
            "successPolicy": {"operator": "All"},
            "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        }
        return {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": name},
            "spec": spec,
        }


def _install(lab: Lab, crd: Path) -> None:
    name = lab.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", "-f", crd).strip()

    def established() -> bool:
        found = lab.api.get(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name.partition('/')[2]}"
        )
        conditions = found.expect(name).get("status", {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    clock.wait_for(f"{name} served", established, seconds=30)


def _jobset_crd() -> Path:
    """From the same module as the program."""
    family = programs.GOMOD / "jobset"
    found = shell.run("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset", cwd=family)
    return Path(found.strip()) / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"


def environment_load() -> str:
    """The machine's load averages."""
    return " ".join(f"{one:.1f}" for one in os.getloadavg())
