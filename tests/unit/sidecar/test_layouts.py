"""What is a checkpoint, by who writes so, and which one is complete."""

import json
import os
from pathlib import Path

import pytest

from spottrain.sidecar import completeness, layouts
from tests.unit.sidecar import shapes


def names(root: Path) -> list[str]:
    return [unit.name for unit in layouts.find(root)]


def newest(root: Path) -> layouts.Unit:
    return layouts.find(root)[0]


def problem(root: Path) -> str | None:
    return completeness.unfinished(root, newest(root))


def at(path: Path, second: int) -> Path:
    """The moment when it was last written."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        os.utime(file, (second, second))
    return path


def test_hugging_face_folders_are_numbered_and_the_newest_is_first(tmp_path: Path):
    at(shapes.hugging_face(tmp_path, 900), 1)
    at(shapes.hugging_face(tmp_path, 1000), 2)
    assert names(tmp_path) == ["checkpoint-1000", "checkpoint-900"]
    unit = newest(tmp_path)
    assert (unit.layout, layouts.step(tmp_path, unit)) == (layouts.Layout.HUGGING_FACE, 1000)
    assert sorted(unit.files) == [
        "checkpoint-1000/model.safetensors",
        "checkpoint-1000/optimizer.pt",
        "checkpoint-1000/trainer_state.json",
    ]
    assert problem(tmp_path) is None


def test_a_run_folder_around_it_is_part_of_its_name(tmp_path: Path):
    shapes.hugging_face(tmp_path / "run-1", 5)
    assert names(tmp_path) == ["run-1/checkpoint-5"]


def test_the_final_model_beside_the_trainers_folders_is_no_checkpoint(tmp_path: Path):
    """Whoever restored that alone would begin anew."""
    shapes.hugging_face(tmp_path, 5)
    shapes.tensors(tmp_path / "model.safetensors")
    assert names(tmp_path) == ["checkpoint-5"]


def test_a_folder_without_the_trainers_state_is_not_complete(tmp_path: Path):
    (shapes.hugging_face(tmp_path, 5) / "trainer_state.json").unlink()
    assert problem(tmp_path) == "checkpoint-5 has no trainer_state.json yet"


def test_accelerates_folder_is_complete_with_its_random_states(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    (folder / "trainer_state.json").rename(folder / "random_states_0.pkl")
    assert problem(tmp_path) is None


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "trainer_state.json"])
def test_a_folder_with_a_file_cut_short_is_not_complete(tmp_path: Path, name: str):
    shapes.cut(shapes.hugging_face(tmp_path, 5) / name)
    assert problem(tmp_path) is not None


def test_every_shard_of_a_models_index_must_be_there(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    shards = {"a": "model.safetensors", "b": "model-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert problem(tmp_path) == "checkpoint-5/model-2.safetensors is missing"
    shapes.tensors(folder / "model-2.safetensors")
    assert problem(tmp_path) is None


def test_a_file_on_its_way_makes_its_folder_incomplete(tmp_path: Path):
    (shapes.hugging_face(tmp_path, 5) / "pytorch_model.bin.tmp").touch()
    assert problem(tmp_path) == "checkpoint-5/pytorch_model.bin.tmp is still being written"


@pytest.mark.parametrize("name", ["tmp-checkpoint-5", "checkpoint-5.tmp", "checkpoint-5.part", ".hidden"])
def test_a_folder_with_the_name_of_an_unfinished_one_is_nothing(tmp_path: Path, name: str):
    shapes.hugging_face(tmp_path / "elsewhere", 5).rename(tmp_path / name)
    (tmp_path / "elsewhere").rmdir()
    assert names(tmp_path) == []


def test_a_distributed_folder_is_complete_when_its_metadata_is_newest(tmp_path: Path):
    folder = shapes.distributed(tmp_path / "step-40", shards=2)
    unit = newest(tmp_path)
    assert (unit.name, unit.number, len(unit.files), unit.sharded) == ("step-40", 40, 3, True)
    at(folder, 5)
    assert problem(tmp_path) is None
    at(folder / "__1_0.distcp", 6)
    assert problem(tmp_path) == "step-40/__1_0.distcp is newer than step-40/.metadata"


def test_folders_of_one_step_are_one_checkpoint(tmp_path: Path):
    shapes.distributed(tmp_path / "step-40" / "model")
    shapes.distributed(tmp_path / "step-40" / "optim")
    assert [(unit.name, len(unit.files)) for unit in layouts.find(tmp_path)] == [("step-40", 4)]


def test_a_trainers_folder_with_shards_in_it_is_sharded(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    assert not newest(tmp_path).sharded
    shapes.distributed(folder / "pytorch_model_fsdp_0")
    assert newest(tmp_path).sharded


def test_lightnings_step_is_the_one_inside(tmp_path: Path):
    folder = tmp_path / "lightning_logs" / "version_0" / "checkpoints"
    at(shapes.saved(folder / "epoch=0-step=100.ckpt", epoch=0, global_step=100), 1)
    at(shapes.saved(folder / "epoch=1-step=200-val=0.12.ckpt", epoch=1, global_step=200), 2)
    unit = newest(tmp_path)
    assert unit.name.endswith("epoch=1-step=200-val=0.12.ckpt")
    assert (layouts.step(tmp_path, unit), unit.rewritten, problem(tmp_path)) == (200, False, None)


def test_where_there_is_a_last_ckpt_programs_go_on_from_it(tmp_path: Path):
    shapes.saved(tmp_path / "epoch=1-step=200.ckpt", epoch=1, global_step=200)
    shapes.saved(tmp_path / "last.ckpt", epoch=1, global_step=210)
    assert names(tmp_path) == ["last.ckpt"]
    unit = newest(tmp_path)
    assert (layouts.step(tmp_path, unit), unit.rewritten) == (210, True)


def test_a_ckpt_cut_short_is_not_complete(tmp_path: Path):
    shapes.cut(shapes.saved(tmp_path / "epoch=0-step=100.ckpt", global_step=100))
    assert problem(tmp_path) is not None


def test_a_file_that_is_written_again_and_again_has_no_step(tmp_path: Path):
    shapes.saved(tmp_path / "ckpt.pt")
    unit = newest(tmp_path)
    assert (unit.name, layouts.step(tmp_path, unit), unit.rewritten) == ("ckpt.pt", None, True)
    assert problem(tmp_path) is None


def test_files_of_one_number_and_those_without_belong_together(tmp_path: Path):
    for second, name in enumerate(("model_1.pt", "opt_1.pt", "model_2.pt", "opt_2.pt", "latest.pt")):
        at(shapes.saved(tmp_path / name), second + 1)
    found = layouts.find(tmp_path)
    assert [(unit.number, sorted(unit.files)) for unit in found] == [
        (2, ["latest.pt", "model_2.pt", "opt_2.pt"]),
        (1, ["latest.pt", "model_1.pt", "opt_1.pt"]),
    ]


def test_a_file_that_cannot_tell_its_end_is_never_taken(tmp_path: Path):
    (tmp_path / "old.pt").write_bytes(b"\x80\x02}q\x00.")
    assert problem(tmp_path) == "old.pt is in a format that doesn't tell where it ends"


def test_other_files_are_no_checkpoints(tmp_path: Path):
    (tmp_path / "events.log").write_text("x")
    shapes.saved(tmp_path / "cache" / "part.pt")
    assert names(tmp_path) == []
