"""What every store must do, on each of them."""

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint import files
from spottrain.checkpoint.store import Below, Entry, Put, Store, create_once
from tests.contract import fixtures
from tests.contract.memory import MemoryStore


@pytest.fixture(params=["memory", "files", "below", "s3", "moto", "gcs", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "files":
        return files.FilesStore(tmp_path / "run")
    if request.param == "below":
        whole = MemoryStore()
        put(whole, "batches/00070/steps/1", b"another's")
        return Below(whole, "batches/0007/")
    service = fixtures.service_of(request, request.param)
    return service.open(service.make_place(), "team/run")


def put(store: Store, key: str, data: bytes) -> None:
    assert store.put_if_absent(key, data) is Put.CREATED


def test_an_empty_store_lists_nothing(store: Store):
    assert store.list("") == []
    assert store.list("steps/") == []


def test_what_is_not_there_is_none(store: Store, tmp_path: Path):
    assert store.get("a/b") is None
    assert store.head("a/b") is None
    assert store.get_file("a/b", tmp_path / "got") is None


def test_a_file_comes_back_as_it_went(store: Store, tmp_path: Path):
    data = os.urandom(3_000_000)
    (tmp_path / "sent").write_bytes(data)
    store.put_file("steps/1/model.pt", tmp_path / "sent")
    assert store.get_file("steps/1/model.pt", tmp_path / "got") == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "got").read_bytes() == data
    assert store.head("steps/1/model.pt") == len(data)


def test_a_file_of_many_parts_comes_back_as_it_went(store: Store, tmp_path: Path):
    """It goes and comes in parallel parts, where the store has any; the last is a short one."""
    data = os.urandom(1 << 20) * 36 + b"end"
    (tmp_path / "sent").write_bytes(data)
    store.put_file("steps/1/model.pt", tmp_path / "sent")
    assert store.head("steps/1/model.pt") == len(data)
    assert store.get_file("steps/1/model.pt", tmp_path / "got") == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "got").read_bytes() == data


def test_an_empty_file_comes_back_empty(store: Store, tmp_path: Path):
    (tmp_path / "sent").touch()
    store.put_file("a", tmp_path / "sent")
    assert store.get("a") == b""
    assert store.head("a") == 0
    assert store.get_file("a", tmp_path / "got") == hashlib.sha256().hexdigest()
    assert (tmp_path / "got").read_bytes() == b""


def test_put_file_replaces_what_was_there(store: Store, tmp_path: Path):
    for data in (b"old and long", b"new"):
        (tmp_path / "sent").write_bytes(data)
        store.put_file("a", tmp_path / "sent")
    assert store.get("a") == b"new"


def test_put_if_absent_leaves_what_is_there(store: Store):
    put(store, "lineage/000001.json", b"first")
    assert store.put_if_absent("lineage/000001.json", b"second") is Put.EXISTS
    assert store.get("lineage/000001.json") == b"first"


def test_listing_is_by_prefix_in_order_of_keys_with_sizes(store: Store):
    for key in ("b/2", "b/10", "a/1", "bc"):
        put(store, key, key.encode())
    assert store.list("b/") == [Entry("b/10", 4), Entry("b/2", 3)]
    assert [entry.key for entry in store.list("")] == ["a/1", "b/10", "b/2", "bc"]


def test_listing_goes_past_a_thousand_keys(store: Store):
    keys = [f"steps/{number:05d}" for number in range(1050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: put(store, key, b"x"), keys))
    assert [entry.key for entry in store.list("steps/")] == keys


def test_delete_removes_what_it_is_told_and_nothing_else(store: Store):
    for key in ("a/1", "a/2", "b"):
        put(store, key, b"x")
    store.delete(["a/1", "not/there"])
    assert [entry.key for entry in store.list("")] == ["a/2", "b"]


def test_delete_of_nothing_is_fine(store: Store):
    store.delete([])
    assert store.list("") == []


def test_a_key_can_be_used_again_after_its_folder_emptied(store: Store):
    put(store, "steps/1/a", b"x")
    store.delete(["steps/1/a"])
    put(store, "steps/1/a", b"y")
    assert store.get("steps/1/a") == b"y"


def test_of_sixteen_writers_at_once_one_wins(store: Store, request: pytest.FixtureRequest):
    if request.node.callspec.params["store"] == "moto":
        pytest.skip("moto looks whether the key is there and then writes: of writers at once several may win")
    for game in range(5):
        start = threading.Barrier(16)

        def write(number: int, key: str, start: threading.Barrier) -> Put:
            start.wait()
            return store.put_if_absent(key, f"writer {number}".encode())

        key = f"race/{game}"
        with ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(lambda n, k=key, s=start: write(n, k, s), range(16)))
        winners = [number for number, outcome in enumerate(outcomes) if outcome is Put.CREATED]
        assert len(winners) == 1
        assert store.get(key) == f"writer {winners[0]}".encode()


def test_create_once_gives_the_winners_bytes_to_the_loser(store: Store):
    assert create_once(store, "lineage/000001.json", b"A") is None
    assert create_once(store, "lineage/000001.json", b"B") == b"A"


def test_create_once_knows_its_own_earlier_success(store: Store):
    put(store, "lineage/000001.json", b"mine")
    assert create_once(store, "lineage/000001.json", b"mine") is None


def reading(store: Store, target: Path) -> list[Callable[[], object]]:
    return [
        lambda: store.list(""),
        lambda: store.list("steps/"),
        lambda: store.get("a"),
        lambda: store.get_file("a", target),
    ]


def test_a_missing_directory_is_an_error_not_an_empty_store(tmp_path: Path):
    store = files.FilesStore(tmp_path / "not-mounted" / "run")
    for read in reading(store, tmp_path / "got"):
        with pytest.raises(errors.StoreMissing, match="not-mounted does not exist; mount the shared volume"):
            read()


def test_a_jobs_folder_and_an_indexs_below_it_are_made_and_the_volume_above_them_is_not(tmp_path: Path):
    store = files.FilesStore(tmp_path / "job" / "7", 2)
    assert store.list("") == []
    assert store.put_if_absent("a", b"x") is Put.CREATED
    assert (tmp_path / "job" / "7" / "a").read_bytes() == b"x"
    unmounted = files.FilesStore(tmp_path / "not-mounted" / "job" / "7", 2)
    with pytest.raises(errors.StoreMissing, match="not-mounted does not exist"):
        unmounted.list("")


def test_a_place_that_may_not_be_written_is_denied():
    with pytest.raises(errors.StoreDenied, match="cannot write a"):
        files.FilesStore(Path("/sys/spottrain")).put_if_absent("a", b"x")


def test_a_file_on_its_way_is_not_listed(tmp_path: Path):
    (tmp_path / "run" / "steps").mkdir(parents=True)
    (tmp_path / "run" / "steps" / ".spottrain-0123").write_bytes(b"half")
    assert files.FilesStore(tmp_path / "run").list("") == []


def test_a_link_whose_answer_was_lost_counts_as_made(tmp_path: Path):
    """NFS repeats the request and then finds our own link in the way."""
    (tmp_path / "temporary").write_bytes(b"x")
    (tmp_path / "target").hardlink_to(tmp_path / "temporary")
    assert files.link(tmp_path / "temporary", tmp_path / "target") is Put.CREATED
