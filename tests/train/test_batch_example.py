"""examples/batch: what it differs in from the plain program, and the same results through kills."""

import difflib
import json
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml

from spottrain import batch
from spottrain.api import spec
from tests.train import processes

FOLDER = processes.ROOT / "examples" / "batch"


def code(name: str) -> list[str]:
    """From the imports on; the text above them speaks of different things."""
    text = (FOLDER / name).read_text()
    return text[text.index("import json") :].splitlines()


def test_the_example_differs_from_the_plain_program_by_the_lines_that_the_docs_show():
    changes = [
        line
        for line in difflib.unified_diff(code("plain.py"), code("infer.py"), n=0, lineterm="")
        if line[0] in "+-" and line[:3] not in {"+++", "---"} and line.strip("+-")
    ]
    assert sum(line.startswith("+") for line in changes) <= 6
    docs = (processes.ROOT / "docs" / "batch.md").read_text()
    shown = docs[docs.index("```diff\n") :].split("```")[1].splitlines()[1:]
    assert [line for line in shown if line[:1] in {"+", "-"}] == changes


@pytest.mark.parametrize("name", ["batch", "batch-sqs"])
def test_the_jobs_of_the_examples_are_jobs(name: str):
    (job,) = yaml.safe_load_all((FOLDER.parent / name / "job.yaml").read_text())
    assert spec.parse(job["spec"]).independent


def run(bench: processes.Bench, name: str, **env: object) -> processes.Program:
    told = {"BATCH_INPUTS": FOLDER / "inputs.jsonl", "BATCH_LONGEST": 50, **env}
    return bench.run([sys.executable, str(FOLDER / name)], **told)


def test_it_has_the_plain_programs_results_after_a_kill_and_a_stop(bench: processes.Bench, tmp_path: Path):
    assert run(bench, "plain.py", BATCH_OUTPUTS=tmp_path / "plain.jsonl").wait() == 0
    wanted = {one["id"]: one for one in map(json.loads, (tmp_path / "plain.jsonl").read_text().splitlines())}
    assert 0 < len(wanted) < 120

    uri = (tmp_path / "out").as_uri()
    for number in (signal.SIGKILL, signal.SIGTERM):
        program = run(bench, "infer.py", SPOTTRAIN_CHECKPOINT_URI=uri, BATCH_ITEM_SECONDS=0.05)
        program.wait_for("event=begun")
        time.sleep(0.5)  # some items later
        program.send(number)
        program.wait()
    assert run(bench, "infer.py", SPOTTRAIN_CHECKPOINT_URI=uri).wait() == 0
    found = list(batch.results(uri, model="words@1", parameters={"longest": 50}))
    assert len(found) == len(wanted)
    assert {one["id"]: one for one in found} == wanted
