"""The pages' Python, run by itself: what a page leaves to the reader's program is said here.

What is about the lab is not run, which would build clusters; mypy holds it to what there is.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lab import torch_env
from tests.docs import pages, test_offline, yamls

TRAINING = """
import os
from pathlib import Path

import spottrain
import torch

def build():
    made = torch.nn.Linear(4, 1)
    return made, torch.optim.SGD(made.parameters(), lr=0.1)

def train_step(*of_this_step):
    optimizer.zero_grad()
    model(torch.ones(4)).sum().backward()
    optimizer.step()

def load(folder):
    assert Path(folder, "weights").read_text() == "w"

def write(folder):
    Path(folder, "weights").write_text("w")

def load_mine(model, optimizer):
    return 3

class dist:
    @staticmethod
    def init_process_group(backend):
        alone = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=alone, rank=0, world_size=1)

model, optimizer = build()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
files, total = list("abc"), 5
"""
DATA = """
from torchdata.stateful_dataloader import StatefulDataLoader

dataset = list(range(64))
loader = StatefulDataLoader(dataset)
"""
BATCH = """
import itertools

from spottrain import batch

class BadAudio(Exception):
    pass

def transcribe(row):
    return "words"

def model(given):
    return "words" if isinstance(given, dict) else ["words" for _ in given]

def batched(rows, size):
    while some := list(itertools.islice(rows, size)):
        yield some

itertools.batched = batched  # Python 3.12 has it
rows = inputs = [{"id": "c"}, {"id": "d"}]
"""
SESSION = "with spottrain.session() as run:"
BATCH_SESSION = 'with batch.session(model="m@1", parameters={}) as run:'
LAB = """
from pathlib import Path
from lab.cluster import Lab
lab, path = Lab(), Path()
"""
SHORT = {"600": "4", "599": "3"}
"""The counting program of docs/start.md has as many steps; a smaller number will do here."""
OF_THE_LAB = [block for block in pages.blocks("python") if block.page == "docs/lab.md"]
PYTHON = [block for block in pages.blocks("python") if block not in OF_THE_LAB]


def within(head: str, text: str) -> str:
    return f"{head}\n{textwrap.indent(text, '    ')}"


def whole(block: pages.Block) -> str:
    """The program that the block is a part of."""
    text = textwrap.dedent(block.text)
    uses_run = re.search(r"\brun\.", text) and "as run" not in text
    if re.search(r"\bbatch\.|run\.(todo|write|fail)", text):
        if uses_run and "todo(" not in text:
            text = within("for row in run.todo(rows):", text)
        return BATCH + (within(BATCH_SESSION, text) if uses_run else text)
    data = DATA if "loader" in text else ""
    return TRAINING + data + (within(SESSION, text) if uses_run else text)


def run(text: str, folder: Path, store: Path, **env: str) -> None:
    """It must end well, with its checkpoints below `store`."""
    file = folder / "program.py"
    file.write_text(text)
    path = (torch_env.ensure(), torch_env.FRAMEWORKS.ensure(), pages.ROOT / "operator")
    known = {**os.environ, "PYTHONPATH": ":".join(map(str, path)), "SPOTTRAIN_CHECKPOINT_URI": store.as_uri()}
    line = [sys.executable, str(file)]
    done = subprocess.run(
        line, env={**known, **env}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (
        f"{text}\n{done.stdout}{done.stderr}\na name that the page leaves to the reader is set in {__file__}"
    )


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_a_program_or_a_part_of_one_runs(block: pages.Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = tmp_path / "store"
    if "results(" in block.text:
        test_offline.fill_with_results(store, monkeypatch)
    text = whole(block).replace(test_offline.BUCKET, store.as_uri())
    index = {"SPOTTRAIN_INDEX": "0", "SPOTTRAIN_WORKERS": "1"} if "SPOTTRAIN_INDEX" in block.text else {}
    run(text, tmp_path, store, **index)


INLINE = [
    pytest.param(container["command"][2], id=str(document))
    for document in yamls.every(yamls.Kind.JOB)
    for container in document.content["spec"]["template"]["spec"]["containers"]
    if container.get("command", [])[:2] == ["python3", "-c"]
]


@pytest.mark.parametrize("text", INLINE)
def test_a_program_within_a_job_runs(text: str, tmp_path: Path):
    for steps, fewer in SHORT.items():
        text = text.replace(steps, fewer)
    run(text, tmp_path, tmp_path / "store")


@pytest.mark.parametrize("block", OF_THE_LAB, ids=str)
def test_what_a_page_calls_of_the_lab_is_there(block: pages.Block, tmp_path: Path):
    text = re.sub(r"(?<=[\[{(])\.\.\.,?(?=[\]})])", "", block.text)
    file = tmp_path / "program.py"
    file.write_text(LAB + text)
    line = [sys.executable, "-m", "mypy", "--config-file=pyproject.toml", str(file)]
    done = subprocess.run(line, cwd=pages.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
