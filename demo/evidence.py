"""What the demo leaves in its output folder, uncut."""

import json
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


def collect(programs: Programs, out: Path) -> list[str]:
    """Write the cluster's own words; a sentence for each thing that could not be had."""
    problems = []
    for name, words in _COMMANDS.items():
        try:
            (out / name).write_text(programs.kubectl(*words, timeout=30))
        except DemoError as error:
            problems.append(f"{name} is missing: {error}")
    return problems


def write_json(path: Path, value: object) -> None:
    """A JSON file for programs."""
    path.write_text(json.dumps(value, indent=1) + "\n")
