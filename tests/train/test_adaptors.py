"""Hugging Face, Lightning, sharded models: a broken run ends like an unbroken one, ranks stop together."""

import json
import os
import random
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spottrain.checkpoint import manifest
from tests.train import broken, processes

EXAMPLES = processes.ROOT / "examples"
STEPS = 70
SEED = 20261130


@dataclass(frozen=True)
class Adaptor:
    """An example, and the files of its checkpoints that hold the model and the optimizer."""

    name: str
    weights: tuple[str, ...]

    @property
    def script(self) -> Path:
        return EXAMPLES / self.name / "train.py"


ADAPTORS = (
    Adaptor("huggingface", (f"checkpoint-{STEPS}/model.safetensors", f"checkpoint-{STEPS}/optimizer.pt")),
    Adaptor("lightning", ("lightning.ckpt",)),
    Adaptor("dcp", ("shards/__0_0.distcp", "rank-00001/shards/__1_0.distcp")),
)


@pytest.fixture(params=ADAPTORS, ids=lambda adaptor: adaptor.name)
def adaptor(request: pytest.FixtureRequest) -> Adaptor:
    return request.param  # type: ignore[no-any-return] # pytest knows no types here


def weights(adaptor: Adaptor, commit: manifest.Commit) -> dict[str, str]:
    return {file.name: file.sha256 for file in commit.files if file.name in adaptor.weights}


def final_loss(program: processes.Program) -> str:
    return program.wait_for(r"final_loss=(\S+)", seconds=1)[1]


def test_a_run_that_is_stopped_and_killed_ends_like_one_that_was_not(
    frameworks_bench: processes.Bench, tmp_path: Path, adaptor: Adaptor
):
    """Losses of all steps on both ranks, the final loss, and the last checkpoint's model and optimizer."""
    program = broken.torchrun(frameworks_bench, adaptor.script, tmp_path / "unbroken", STEPS=STEPS)
    assert program.wait(180) == 0, program.output
    unbroken = broken.Told()
    unbroken.hear(program)

    draw = random.Random(f"{SEED} {adaptor.name}")
    first, second = draw.randint(8, 25), draw.randint(40, 55)
    told = broken.through(
        lambda: broken.torchrun(
            frameworks_bench, adaptor.script, tmp_path / "ck", STEPS=STEPS, STEP_SECONDS=0.1
        ),
        {first: signal.SIGTERM, second: signal.SIGKILL},
        draw,
    )
    assert sorted(unbroken.lines) == [(rank, step) for rank in range(2) for step in range(STEPS)]
    assert told.lines == unbroken.lines
    assert final_loss(told.last) == final_loss(unbroken.last)
    expected, found = processes.commits(tmp_path / "unbroken")[-1], processes.commits(tmp_path / "ck")[-1]
    assert set(weights(adaptor, expected)) == set(adaptor.weights)
    assert weights(adaptor, found) == weights(adaptor, expected)


def test_a_stop_asked_of_one_rank_stops_all_at_the_same_step(
    frameworks_bench: processes.Bench, tmp_path: Path, adaptor: Adaptor
):
    """Both exit with 75, having said so; the step is saved, and the next life begins after it."""
    store, log = tmp_path / "ck", tmp_path / "termination-log"
    env: dict[str, Any] = {
        "STEPS": 1000,
        "STEP_SECONDS": 0.1,
        "SPOTTRAIN_JOB": "tr",
        "SPOTTRAIN_ATTEMPT_ID": "0a",
        "SPOTTRAIN_TERMINATION_LOG": log,
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
    }
    program = broken.torchrun(frameworks_bench, adaptor.script, store, **env)
    program.wait_for(r"(?m)^step=8 .*\n", seconds=120)
    os.kill(broken.children(program.pid)[1], signal.SIGTERM)
    assert program.wait(60) == 1
    steps = [(int(rank), int(step)) for step, _, rank in broken.LINE.findall(program.output)]
    last = {rank: max(step for r, step in steps if r == rank) for rank in range(2)}
    assert last[0] == last[1]
    assert [(commit.step, commit.stop) for commit in processes.commits(store)] == [(last[0], True)]
    assert re.findall(r"exitcode *: (-?\d+)", program.output) == ["75", "75"]
    said = json.loads(log.read_text())
    assert (said["state"], said["step"], said["savedStep"]) == ("preempted", last[0], last[0])

    env |= {"STEPS": last[0] + 3, "STEP_SECONDS": 0, "SPOTTRAIN_ATTEMPT_ID": "0b"}
    again = broken.torchrun(frameworks_bench, adaptor.script, store, **env)
    assert again.wait(120) == 0, again.output
    assert sorted({int(step) for step, _, _ in broken.LINE.findall(again.output)}) == [
        last[0] + 1,
        last[0] + 2,
    ]
    said = json.loads(log.read_text())
    assert (said["state"], said["step"], said["resumedFrom"]) == ("finished", last[0] + 2, last[0])


def test_one_that_has_finished_finds_its_work_done(
    frameworks_bench: processes.Bench, tmp_path: Path, adaptor: Adaptor
):
    first = broken.torchrun(frameworks_bench, adaptor.script, tmp_path / "ck", STEPS=5, ranks=1)
    assert first.wait(120) == 0, first.output
    again = broken.torchrun(frameworks_bench, adaptor.script, tmp_path / "ck", STEPS=5, ranks=1)
    assert again.wait(120) == 0, again.output
    assert broken.LINE.findall(again.output) == []
    assert final_loss(again) == final_loss(first)


@pytest.mark.parametrize(
    ("program", "steps"),
    [("trainer.py", (2, 4, 5, 8, 9, 10, 29)), ("lit.py", (2, 4, 5, 8, 10, 29))],
    ids=["huggingface", "lightning"],
)
def test_it_goes_on_exactly_from_any_step_of_an_epoch(
    frameworks_bench: processes.Bench, tmp_path: Path, program: str, steps: tuple[int, ...]
):
    """In the middle, beside a validation, and on both sides of an epoch's end: samples, losses, metrics."""
    running = frameworks_bench.start(
        program,
        *steps,
        SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "ck").as_uri(),
        SPOTTRAIN_CHECKPOINT_INTERVAL=0,
        SPOTTRAIN_CHECKPOINT_KEEP=1000,
    )
    assert running.wait(240) == 0, running.output
    _, unbroken, *resumed = f"\n{running.output}".split("\nfrom ")
    assert len(broken.LINE.findall(unbroken)) == 30
    for step, output in zip(steps, resumed, strict=True):
        assert output.startswith(f"{step}\n")
        assert said(output) == [line for line in said(unbroken) if after(step, line)]


def said(output: str) -> list[str]:
    return re.findall(r"^(?:step=|validated |ended ).*$", output, re.MULTILINE)


def after(step: int, line: str) -> bool:
    """Whether this line is said after the save of that step: a validation of it is said before."""
    number = re.match(r"step=(\d+)|validated (\d+)", line)
    return number is None or int(number[1] or int(number[2]) - 1) > step
