"""Hugging Face, Lightning, sharded models: a broken run ends like an unbroken one, ranks stop together."""

import json
import random
import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from spottrain.checkpoint import manifest
from tests.train import broken, processes

EXAMPLES = processes.ROOT / "examples"
STEPS = 40  # of which an epoch has 29
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
    Adaptor("lightning", ()),  # one pickle, whose bytes also tell which strings were the same object
    Adaptor("dcp", ("shards/__0_0.distcp", "rank-00001/shards/__1_0.distcp")),
)


@pytest.fixture(params=ADAPTORS, ids=lambda adaptor: adaptor.name)
def adaptor(request: pytest.FixtureRequest) -> Adaptor:
    return request.param  # type: ignore[no-any-return] # pytest knows no types here


def weights(adaptor: Adaptor, commit: manifest.Commit) -> dict[str, str]:
    return {file.name: file.sha256 for file in commit.files if file.name in adaptor.weights}


def final_loss(program: processes.Program) -> str:
    return program.wait_for(r"final_loss=(\S+)", seconds=1)[1]


@dataclass
class Lives:
    """Starts life after life of one run, under torchrun with two ranks; each leaves its last word."""

    bench: processes.Bench
    script: Path
    folder: Path
    pause: float = 0.0
    count: int = 0

    def __call__(self) -> processes.Program:
        self.count += 1
        self.folder.mkdir(exist_ok=True)
        self.last_word.touch()
        return broken.torchrun(
            self.bench,
            self.script,
            self.store,
            STEPS=STEPS,
            STEP_SECONDS=self.pause,
            SPOTTRAIN_JOB="tr",
            SPOTTRAIN_ATTEMPT_ID=f"a{self.count}",
            SPOTTRAIN_TERMINATION_LOG=self.last_word,
        )

    @property
    def store(self) -> Path:
        return self.folder / "ck"

    @property
    def last_word(self) -> Path:
        return self.folder / f"word-{self.count}"

    def said(self, life: int) -> tuple[str, int, int | None]:
        word = json.loads((self.folder / f"word-{life}").read_text())
        return word["state"], word["step"], word["resumedFrom"]


@pytest.mark.timeout(900)
def test_a_run_that_is_stopped_and_killed_ends_like_one_that_was_not(
    frameworks_bench: processes.Bench, tmp_path: Path, adaptor: Adaptor
):
    """One rank is told to stop, and both stop at the same step; then one is killed; then the run ends.

    Alike are the losses of all steps on both ranks, the final loss, and the last checkpoint's model and
    optimizer.
    """
    quiet = Lives(frameworks_bench, adaptor.script, tmp_path / "unbroken")
    unbroken = broken.through(quiet, {}, random.Random())
    assert sorted(unbroken.lines) == [(rank, step) for rank in range(2) for step in range(STEPS)]

    draw = random.Random(f"{SEED} {adaptor.name}")
    blows = {draw.randint(4, 15): signal.SIGTERM, draw.randint(28, 33): signal.SIGKILL}
    lives = Lives(frameworks_bench, adaptor.script, tmp_path / "broken", pause=0.1)
    told = broken.through(lives, blows, draw)
    stopped_together(told.lives[0], lives)
    assert told.lines == unbroken.lines
    assert final_loss(told.last) == final_loss(unbroken.last)
    expected, found = (processes.commits(one.store)[-1] for one in (quiet, lives))
    assert set(weights(adaptor, expected)) == set(adaptor.weights)
    assert weights(adaptor, found) == weights(adaptor, expected)

    # A worker that is started once more, since nobody saw it end, finds its work done.
    again = lives()
    assert again.wait(180) == 0, again.output
    assert broken.LINE.findall(again.output) == []
    assert final_loss(again) == final_loss(unbroken.last)
    assert lives.said(lives.count) == ("finished", STEPS - 1, STEPS - 1)


def stopped_together(program: processes.Program, lives: Lives) -> None:
    """Both ranks did the same last step, exited with 75 and said so, and the next life begins after it."""
    steps = [(int(rank), int(step)) for step, _, rank in broken.LINE.findall(program.output)]
    last = {rank: max(step for r, step in steps if r == rank) for rank in range(2)}
    assert last[0] == last[1]
    assert re.findall(r"(?m)^ +exitcode *: (-?\d+)", program.output) == ["75", "75"]
    assert lives.said(1) == ("preempted", last[0], None)
    assert lives.said(3)[0] == "finished"
    assert f"event=stopping step={last[0]} " in program.output
    assert f"event=saved step={last[0]} " in program.output


@pytest.mark.timeout(600)
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


def test_what_cannot_outlive_a_machine_is_refused_with_what_to_do(
    frameworks_bench: processes.Bench, tmp_path: Path
):
    program = frameworks_bench.start(
        "refused.py", "best", "jit", "sampler", SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "ck").as_uri()
    )
    assert program.wait(120) == 0, program.output
    assert re.findall(
        r"^(best|jit|sampler): .*: (leave it off|give the loader)", program.output, re.MULTILINE
    ) == [
        ("best", "leave it off"),
        ("jit", "leave it off"),
        ("sampler", "give the loader"),
    ]
