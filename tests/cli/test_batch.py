"""`spottrain batch`: the results of a batch, by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spottrain import batch
from tests.cli import shelf


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    uri = (tmp_path / "out").as_uri()
    monkeypatch.setenv("SPOTTRAIN_CHECKPOINT_URI", uri)
    return uri


def compute(model: str, outputs: dict[str, Any], **wishes: Any) -> None:
    with batch.session(model=model, parameters={"mark": "!"}, **wishes) as run:
        for row in run.todo([{"id": name} for name in outputs]):
            run.write(row, outputs[row["id"]])


def spottrain(*words: str) -> shelf.Said:
    line = [sys.executable, "-c", "from spottrain.cli.main import main; main()", "batch", *words]
    env = {**os.environ, "PYTHONPATH": str(shelf.ROOT / "operator")}
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return shelf.Said(done.returncode, done.stdout, done.stderr)


def test_cat_prints_each_result_once(where: str) -> None:
    compute("m@1", {"a": 1, "b": [2]})
    compute("m@1", {"a": 7, "c": "ä"})
    lines = [json.loads(line) for line in spottrain("cat", where).out.splitlines()]
    assert lines == [{"id": "a", "output": 1}, {"id": "b", "output": [2]}, {"id": "c", "output": "ä"}]


def test_ls_shows_each_batch_and_how_far_it_is(where: str) -> None:
    compute("m@1", {"a": 1, "b": 2}, every=1)
    compute("m@2", {"a": 1}, shards=3)
    listed = sorted(spottrain("ls", where, "-o", "json").json, key=lambda one: str(one["model"]))
    assert [(one["model"], one["done"], one["parts"], one["shards"]) for one in listed] == [
        ("m@1", 2, 2, 1),
        ("m@2", 1, 1, 3),
    ]
    table = spottrain("ls", where).out.splitlines()
    assert table[0].split() == ["BATCH", "DONE", "PARTS", "SHARDS", "MODEL", "PARAMETERS"]
    assert sorted(line.split(maxsplit=5)[1:] for line in table[1:]) == [
        ["1", "1", "3", "m@2", '{"mark": "!"}'],
        ["2", "2", "1", "m@1", '{"mark": "!"}'],
    ]


def test_of_several_batches_one_is_to_be_named(where: str) -> None:
    compute("m@1", {"a": 1})
    compute("m@2", {"a": 2})
    said = spottrain("cat", where)
    assert said.code == 1
    assert "name one batch, by the beginning of its hash" in said.err
    assert "(m@1)" in said.err
    assert "(m@2)" in said.err
    name = batch.Identity("m@2", {"mark": "!"}).hash[:6]
    assert json.loads(spottrain("cat", where, name).out) == {"id": "a", "output": 2}


def test_a_place_without_batches_says_so(where: str) -> None:
    assert spottrain("ls", where).out.startswith("no batches in ")
    said = spottrain("cat", where)
    assert (said.code, said.err.strip().endswith(": none")) == (1, True)
