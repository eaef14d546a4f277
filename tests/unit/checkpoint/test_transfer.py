from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint import layout, manifest, transfer
from tests.contract.memory import MemoryStore

DIRECTORY = layout.StepDir(3, "a", "00")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def write(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def saved(store: MemoryStore, tmp_path: Path) -> manifest.Commit:
    zero = transfer.upload(store, write(tmp_path / "0", model="weights", deep__own="zero's"), DIRECTORY, 0)
    one = transfer.upload(store, write(tmp_path / "1", deep__own="one's"), DIRECTORY, 1)
    return manifest.Commit(3, manifest.Writer("a", "00", 1), (*zero, *one), world_size=2)


def fetched(store: MemoryStore, commit: manifest.Commit, rank: int, target: Path) -> dict[str, str]:
    target.mkdir()
    assert transfer.download(store, commit, rank, target) is None
    return {p.relative_to(target).as_posix(): p.read_text() for p in target.rglob("*") if p.is_file()}


def test_each_rank_gets_rank_zeros_files_and_over_them_its_own(store: MemoryStore, tmp_path: Path):
    commit = saved(store, tmp_path)
    assert fetched(store, commit, 0, tmp_path / "to0") == {"model": "weights", "deep/own": "zero's"}
    assert fetched(store, commit, 1, tmp_path / "to1") == {"model": "weights", "deep/own": "one's"}
    assert fetched(store, commit, 2, tmp_path / "to2") == {"model": "weights", "deep/own": "zero's"}


def test_what_another_rank_wrote_is_fetched_by_its_plain_name(store: MemoryStore, tmp_path: Path):
    zero = transfer.upload(store, write(tmp_path / "0", index="all"), DIRECTORY, 0)
    one = transfer.upload(store, write(tmp_path / "1", shards__1="one's"), DIRECTORY, 1)
    commit = manifest.Commit(3, manifest.Writer("a", "00", 1), (*zero, *one), world_size=2)
    target = tmp_path / "to"
    assert fetched(store, commit, 0, target) == {"index": "all"}
    assert transfer.download_more(store, commit, {"shards/1", "index"}, target) is None
    assert (target / "shards" / "1").read_text() == "one's"
    assert transfer.download_more(store, commit, {"shards/2"}, target) == "it has no shards/2"


def test_changed_bytes_of_the_same_size_are_damage(store: MemoryStore, tmp_path: Path):
    commit = saved(store, tmp_path)
    store.delete([DIRECTORY.key("model")])
    store.put_if_absent(DIRECTORY.key("model"), b"Weights")
    (tmp_path / "to").mkdir()
    problem = transfer.download(store, commit, 1, tmp_path / "to")
    assert problem == "model has another checksum than when it was saved"


def test_a_file_that_went_is_damage(store: MemoryStore, tmp_path: Path):
    commit = saved(store, tmp_path)
    store.delete([DIRECTORY.key("rank-00001/deep/own")])
    (tmp_path / "to").mkdir()
    assert transfer.download(store, commit, 1, tmp_path / "to") == "rank-00001/deep/own is missing"


@pytest.mark.parametrize("name", ["COMMIT.json", "rank-00001__x"])
def test_names_that_mean_something_are_refused(store: MemoryStore, tmp_path: Path, name: str):
    with pytest.raises(errors.CheckpointError, match="choose another name"):
        transfer.upload(store, write(tmp_path / "0", **{name: "x"}), DIRECTORY, 0)
