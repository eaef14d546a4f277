"""Each example's job, as it lies there, is reclaimed on real kubelets and ends as it does unbroken."""

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import torch_env
from manifests import render
from tests.cluster import play
from tests.node.conftest import BUCKET, PATIENCE, Site

EXAMPLES = render.ROOT / "examples"


def final_loss(site: Site, job: play.Object) -> object:
    """What the newest life of whichever worker tells it says at its end."""
    attempt = site.job.status()["attempt"]
    logs = [site.log(f"tr-{index}-{attempt}") for index in range(job["spec"].get("workers", 1))]
    found = {match[1] for log in logs for match in re.finditer(r"final_loss=(\S+)", log)}
    assert len(found) == 1, "\n".join(logs)
    return found.pop()


def outputs(site: Site, job: play.Object) -> object:
    """All results of the batch, by id; an id has one."""
    checkpoint = job["spec"]["checkpoint"]
    words = ("batch", "cat", checkpoint["uri"], f"--endpoint={checkpoint['endpoint']}", "--region=us-east-1")
    said = subprocess.run(
        [Path(sys.executable).with_name("spottrain"), *words],
        env=site.lab.env(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    rows = [json.loads(line) for line in said.splitlines()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


@dataclasses.dataclass(frozen=True)
class Example:
    """A folder below examples/, and what its job ends with.

    `length`: environment that makes it short; `slow` makes it last long enough to be interrupted. The first
    match of `begin` in a life's log tells how much was done before it.
    """

    folder: str
    length: Mapping[str, str]
    slow: Mapping[str, str]
    result: Callable[[Site, play.Object], object] = final_loss
    begin: str = r"^(?:step|epoch)=(\d+)"


STEPS = {"STEPS": "100", "STEP_SECONDS": "0"}
SLOW = {"STEP_SECONDS": "0.2"}
TABLE = [
    Example("digits", {"DIGITS_STEPS": "100", "DIGITS_STEP_SECONDS": "0"}, {"DIGITS_STEP_SECONDS": "0.2"}),
    Example("dcp", STEPS, SLOW),
    Example("huggingface", STEPS, SLOW),
    Example("lightning", STEPS, SLOW),
    Example("zero-code", {"DIGITS_EPOCHS": "15", "DIGITS_EPOCH_SECONDS": "0"}, {"DIGITS_EPOCH_SECONDS": "3"}),
    Example("zero-code-huggingface", STEPS, {"STEP_SECONDS": "0.4"}),
    Example(
        "batch",
        {"BATCH_ITEM_SECONDS": "0"},
        {"BATCH_ITEM_SECONDS": "1"},
        outputs,
        r" event=begun .*\bdone=(\d+)",
    ),
]


def volumes(job: play.Object) -> list[Any]:
    return list(job["spec"]["template"]["spec"]["volumes"])


def manifest(site: Site, example: Example, env: Mapping[str, str]) -> play.Object:
    """The example's job with another name, place in the store and length, and nothing else."""
    job: play.Object = yaml.safe_load((EXAMPLES / example.folder / "job.yaml").read_text())
    job["metadata"]["name"] = site.job.name
    job["spec"]["checkpoint"] |= {"uri": f"s3://{BUCKET}/{site.prefix}", "endpoint": site.lab.s3_endpoint}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    known = {one["name"]: one["value"] for one in container["env"]}
    assert set(env) <= set(known), "the test sets what the example has"
    container["env"] = [{"name": name, "value": value} for name, value in {**known, **env}.items()]
    return job


@pytest.fixture(scope="module")
def prepared(place: Site) -> None:
    """What the comments above the jobs ask for: libraries on the nodes, programs, keys."""
    for layer in (torch_env.TORCH, torch_env.FRAMEWORKS):
        layer.ensure()
    for secret in ("digits-store", "batch-store"):
        place.add_keys(secret)
    for example in TABLE:
        folder = EXAMPLES / example.folder
        job = yaml.safe_load((folder / "job.yaml").read_text())
        (program,) = [one["configMap"]["name"] for one in volumes(job) if "configMap" in one]
        files = [
            one
            for one in sorted(folder.iterdir())
            if one.is_file() and one.name not in {"plain.py", "job.yaml"}
        ]
        place.add_programs(program, files)


def committed(site: Site) -> list[str]:
    """Keys of all commits, of checkpoints and of batches alike."""
    found = site.store.list_objects_v2(Bucket=BUCKET, Prefix=f"{site.prefix}/").get("Contents", [])
    return [one["Key"] for one in found if one["Key"].endswith("/COMMIT.json")]


def unbroken(site: Site, example: Example) -> object:
    """What it ends with when nothing happens to it."""
    job = manifest(site, example, example.length)
    site.job.applied(job)
    site.job.wait_phase("Complete", 4 * PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"]) == (0, 0), status
    return example.result(site, job)


def broken(site: Site, example: Example) -> object:
    """What it ends with when the node of its last worker is drained after a commit."""
    job = manifest(site, example, {**example.length, **example.slow})
    site.job.applied(job).wait("a commit", lambda: committed(site), 3 * PATIENCE)
    last = job["spec"].get("workers", 1) - 1
    site.lab.node_drain(site.node_of(f"tr-{last}-1"))
    site.job.wait_phase("Complete", 4 * PATIENCE)
    status = site.job.status()
    assert (status["reclaims"] > 0, status["failures"]) == (True, 0), status
    log = site.log(f"tr-{last}-2")
    begin = re.search(example.begin, log, re.MULTILINE)
    assert begin, log
    assert int(begin[1]) > 0, "it began anew"
    return example.result(site, job)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("example", TABLE, ids=lambda one: one.folder)
def test_an_example_whose_node_is_drained_ends_as_it_does_unbroken(site: Site, example: Example) -> None:
    expected = unbroken(site, example)
    site.start_over()
    assert broken(site, example) == expected
