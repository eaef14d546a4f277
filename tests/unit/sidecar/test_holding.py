"""A checkpoint stays as it was while it is uploaded, whatever its program does."""

from pathlib import Path

import pytest

from spottrain.sidecar import holding, layouts, notebook
from tests.unit.sidecar import shapes


def held(root: Path) -> holding.Held:
    found = holding.hold(root, layouts.find(root)[0])
    assert found is not None
    return found


def test_what_the_program_removes_is_still_held_and_takes_no_room(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    inode = (folder / "optimizer.pt").stat().st_ino
    one = held(tmp_path)
    for path in folder.iterdir():
        path.unlink()
    kept = one.folder / "checkpoint-5" / "optimizer.pt"
    assert (kept.stat().st_ino, one.problem()) == (inode, None)


def test_what_may_be_written_over_is_copied(tmp_path: Path):
    path = shapes.saved(tmp_path / "ckpt.pt", step=1)
    before = path.read_bytes()
    one = held(tmp_path)
    shapes.saved(path, step=2, more="x")
    assert ((one.folder / "ckpt.pt").read_bytes(), one.problem()) == (before, None)


def test_a_change_in_place_of_what_is_linked_shows(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    one = held(tmp_path)
    with (folder / "optimizer.pt").open("ab") as file:
        file.write(b"x")
    assert one.problem() == "checkpoint-5/optimizer.pt was changed while it was uploaded"


def test_what_has_changed_since_it_was_looked_at_is_not_held(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    (unit,) = layouts.find(tmp_path)
    shapes.tensors(folder / "model.safetensors", 8)
    assert holding.hold(tmp_path, unit) is None
    (folder / "model.safetensors").unlink()
    assert holding.hold(tmp_path, unit) is None
    assert not list(tmp_path.glob(".spottrain-*"))


@pytest.mark.parametrize("name", ["last.ckpt", "checkpoint-5/base.safetensors"])
def test_what_a_link_points_to_is_held(tmp_path: Path, name: str):
    """Lightning's save_last="link", or a folder that shares a file with others."""
    source = shapes.saved(tmp_path / "elsewhere" / "state", global_step=1)
    if "/" in name:
        shapes.hugging_face(tmp_path, 5)
    (tmp_path / name).symlink_to(source)
    kept = held(tmp_path).folder / name
    assert not kept.is_symlink()
    assert kept.read_bytes() == source.read_bytes()


def test_what_is_stored_is_known_also_to_a_new_process_and_while_it_is_removed(tmp_path: Path):
    folder = shapes.hugging_face(tmp_path, 5)
    notebook.Notebook(tmp_path).note(layouts.find(tmp_path))
    (folder / "optimizer.pt").unlink()
    assert notebook.Notebook(tmp_path).knows(layouts.find(tmp_path)[0])
    shapes.saved(folder / "optimizer.pt", step=6)
    assert not notebook.Notebook(tmp_path).knows(layouts.find(tmp_path)[0])


def test_a_notebook_that_is_gone_or_damaged_knows_nothing(tmp_path: Path):
    shapes.hugging_face(tmp_path, 5)
    (tmp_path / notebook.NAME).write_text('{"checkpoint-5": 1}')
    assert not notebook.Notebook(tmp_path).knows(layouts.find(tmp_path)[0])
