"""Sharded models: each rank's own file, read again on as many ranks as there are then."""

import re
from pathlib import Path

import pytest

from tests.train import broken, processes

PROGRAM = processes.PROGRAMS / "sharded.py"


def told(program: processes.Program, when: str) -> str:
    assert program.wait(120) == 0, program.output
    found = re.search(rf"^{when} (.*)$", program.output, re.MULTILINE)
    assert found, program.output
    return found[1]


def test_one_commit_names_the_shards_of_all_ranks(torch_bench: processes.Bench, tmp_path: Path):
    program = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 3)
    assert program.wait(120) == 0, program.output
    assert {file.name for file in processes.commits(tmp_path / "ck")[-1].files} == {
        "state.pt",
        "rank.pt",
        "shards/.metadata",
        "shards/__0_0.distcp",
        "rank-00001/rank.pt",
        "rank-00001/shards/__1_0.distcp",
    }


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_sharded_model_is_laid_out_anew_on_another_number_of_ranks(
    torch_bench: processes.Bench, tmp_path: Path, ranks: int
):
    ended = told(broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 5), "ended")
    again = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 6, ranks=ranks)
    assert told(again, "restored") == ended


@pytest.mark.parametrize("first", ["", "1"], ids=["sharded", "whole"])
def test_a_model_that_was_saved_the_other_way_is_refused_with_what_to_do(
    torch_bench: processes.Bench, tmp_path: Path, first: str
):
    program = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 3, WHOLE=first)
    assert program.wait(120) == 0, program.output
    again = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 6, WHOLE="" if first else "1")
    assert again.wait(120) == 1
    assert ("holds whole models" if first else "holds a sharded model") in again.output


def test_a_damaged_shard_of_another_rank_is_passed_over_by_all(torch_bench: processes.Bench, tmp_path: Path):
    """Rank 0 alone would not notice, on two ranks; it takes the same older checkpoint as rank 1."""
    program = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 3, SPOTTRAIN_CHECKPOINT_INTERVAL=0)
    assert program.wait(120) == 0, program.output
    newest = processes.commits(tmp_path / "ck")[-1]
    shard = tmp_path / "ck" / newest.directory.key("rank-00001/shards/__1_0.distcp")
    shard.write_bytes(bytes(shard.stat().st_size))
    again = broken.torchrun(torch_bench, PROGRAM, tmp_path / "ck", 6)
    assert again.wait(120) == 0, again.output
    assert len(re.findall(r"event=restored step=[01] ", again.output)) == 2
