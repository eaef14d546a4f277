"""Each example goes through a reclaim on real kubelets, and ends as it does when nothing happens to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab import torch_env
from manifests import render
from tests.cluster import play
from tests.node.conftest import PATIENCE, Site

EXAMPLES = render.ROOT / "examples"
TORCHRUN = ("python3", "-m", "torch.distributed.run", "--nproc-per-node=1")


@dataclass(frozen=True)
class Example:
    """A program below examples/, and what its last worker says at the end.

    `result`: a pattern whose group is compared between a broken and an unbroken run. `env` sets its length;
    `slow` makes it last long enough to be interrupted.
    """

    folder: str
    result: str
    env: Mapping[str, str]
    slow: Mapping[str, str]
    workers: int = 3
    launcher: tuple[str, ...] = TORCHRUN
    program: str = "train.py"
    spec: Mapping[str, Any] = field(default_factory=dict)


TABLE = [
    Example("digits", r"final_loss=(\S+)", {"DIGITS_STEPS": "120"}, {"DIGITS_STEP_SECONDS": "0.2"}),
]


def manifest(site: Site, example: Example, env: Mapping[str, str]) -> play.Object:
    """The example's job, on the image that was built and with torch from the nodes."""
    spread = {"spread": "zone"}  # each worker on a node of its own, of which one is taken
    document = site.manifest(example.program, workers=example.workers, **{"spot": spread, **example.spec})
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    libraries = str(torch_env.ensure().resolve())
    pod["volumes"] = [
        {"name": "programs", "configMap": {"name": f"example-{example.folder}"}},
        {"name": "torch", "hostPath": {"path": libraries, "type": "Directory"}},
    ]
    container["volumeMounts"].append({"name": "torch", "mountPath": libraries, "readOnly": True})
    container["command"] = [*example.launcher, f"/programs/{example.program}"]
    values = {"PYTHONPATH": libraries, "OMP_NUM_THREADS": "1", **example.env, **env}
    container["env"] += [{"name": name, "value": value} for name, value in values.items()]
    return document


def result(site: Site, example: Example, attempt: int) -> str:
    """What the end looks like, by the log of whichever worker tells it."""
    logs = [site.log(f"tr-{index}-{attempt}") for index in range(example.workers)]
    found = {match[1] for log in logs for match in re.finditer(example.result, log)}
    assert len(found) == 1, "\n".join(logs)
    return found.pop()


def unbroken(site: Site, example: Example) -> str:
    """Its result when nothing happens to it."""
    site.job.applied(manifest(site, example, {}))
    site.job.wait_phase("Complete", 2 * PATIENCE)
    assert site.job.status()["attempt"] == 1
    return result(site, example, 1)


def broken(site: Site, example: Example) -> tuple[str, int]:
    """Its result, and where it went on, when a worker's node is drained after the first commit."""
    site.job.applied(manifest(site, example, example.slow))
    site.job.wait("a commit", site.commits, 2 * PATIENCE)
    site.lab.node_drain(site.node_of(f"tr-{example.workers - 1}-1"))
    site.job.wait_phase("Complete", 3 * PATIENCE)
    status = site.job.status()
    assert (status["attempt"], status["reclaims"], status["failures"]) == (2, 1, 0), status
    resumed = re.search(r"event=restored .*?next_step=(\d+)", site.log("tr-0-2"))
    assert resumed, site.log("tr-0-2")
    return result(site, example, 2), int(resumed[1])


@pytest.mark.slow
@pytest.mark.parametrize("example", TABLE, ids=lambda one: one.folder)
def test_an_example_whose_node_is_drained_ends_as_it_does_unbroken(site: Site, example: Example) -> None:
    site.add_programs(f"example-{example.folder}", sorted(Path(EXAMPLES / example.folder).glob("*.py")))
    expected = unbroken(site, example)
    site.start_over()
    found, resumed_at = broken(site, example)
    assert resumed_at > 0
    assert found == expected
