"""Which files say of themselves that something is missing."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from spottrain.sidecar import whole
from tests.unit.sidecar import shapes

WRITERS: dict[str, Callable[[Path], object]] = {
    "state.pt": lambda path: shapes.saved(path, step=3),
    "model.safetensors": shapes.tensors,
    "index.json": lambda path: path.write_text('{"a": [1, 2]}'),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_was_written_to_its_end_has_no_problem(tmp_path: Path, name: str):
    WRITERS[name](tmp_path / name)
    assert whole.problem(tmp_path / name) is None


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_cut_anywhere_is_noticed(tmp_path: Path, name: str):
    """Wherever its writer was killed."""
    path = tmp_path / name
    WRITERS[name](path)
    for size in range(path.stat().st_size):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 1)
        assert whole.problem(path) is not None, f"{path.stat().st_size} bytes left, {size} taken"


def test_a_file_that_is_gone_is_a_problem_and_no_error(tmp_path: Path):
    assert whole.problem(tmp_path / "x.pt") == "x.pt is gone"


def test_any_other_format_can_tell_nothing(tmp_path: Path):
    path = tmp_path / "old.pt"
    path.write_bytes(pickle.dumps({"a": 1}))
    assert (whole.problem(path), whole.tells_its_end(path)) == (None, False)


def test_the_step_is_read_without_running_what_is_pickled(tmp_path: Path):
    path = shapes.saved(tmp_path / "last.ckpt", epoch=3, global_step=1234, state_dict={"global_step": 9})
    assert whole.global_step(path) == 1234


class Trap:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (Path.touch, ("never",))


def test_what_would_run_when_unpickled_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = shapes.saved(tmp_path / "x.ckpt", trap=Trap(), global_step=7)
    assert whole.global_step(path) == 7
    assert not (tmp_path / "never").exists()


def test_what_has_no_step_tells_none(tmp_path: Path):
    assert whole.global_step(shapes.saved(tmp_path / "x.ckpt", epoch=3)) is None
    assert whole.global_step(shapes.tensors(tmp_path / "y.ckpt")) is None
