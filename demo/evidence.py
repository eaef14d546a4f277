"""What the demo leaves in its output folder, uncut."""

import json
import sys
from pathlib import Path

from demo.errors import DemoError
from demo.kubectl import Programs
from demo.manifests import NAMESPACE, SYSTEM_NAMESPACE

_COMMANDS = {
    "jobs.yaml": ("get", "stj,job", "-n", NAMESPACE, "-o", "yaml"),
    "pods.yaml": ("get", "pods", "-n", NAMESPACE, "-o", "yaml"),
    "events.txt": ("get", "events", "-n", NAMESPACE, "--sort-by=.metadata.creationTimestamp"),
    "nodes.txt": ("get", "nodes", "-o", "wide", "--show-labels"),
    "operator.log": ("logs", "-n", SYSTEM_NAMESPACE, "deployment/spottrain", "--timestamps"),
}


REPORT = "report.html"


def collect(programs: Programs, out: Path, job: str = "") -> list[str]:
    """Write the cluster's own words, and the report on `job`; a sentence for each that could not be had."""
    problems = []
    for name, words in _COMMANDS.items():
        try:
            (out / name).write_text(programs.kubectl(*words, timeout=30))
        except DemoError as error:
            problems.append(f"{name} is missing: {error}")
    if not job:
        return problems
    command = (sys.executable, "-m", "spottrain.cli", "report", job, f"--namespace={NAMESPACE}")
    try:
        programs.run(*command, f"--output={out / REPORT}", timeout=60)
    except DemoError as error:
        problems.append(f"{REPORT} is missing: {error}")
    return problems


def write_json(path: Path, value: object) -> None:
    """A JSON file for programs."""
    path.write_text(json.dumps(value, indent=1) + "\n")
