"""B8: which checkpoint is newest is decided by its number, never as text or by a file's time."""

import os
import time
from pathlib import Path

import pytest

from spottrain.checkpoint import files
from spottrain.checkpoint.store import Store
from tests.train.conftest import Shelf
from tests.unit.checkpoint import lives

ROWS = [
    ((960_000, 1_080_000), (), 1_080_000),
    ((500, 2500), (), 2500),
    ((900_000, 100_000), (), 900_000),
    ((9_999_999_999, 10_000_000_000), (), 10_000_000_000),
    ((10,), ("steps/handpicked/state",), 10),
    ((7,), ("steps/0000000007-a-00.tmp/state", "steps/0000000008-a-00.tmp/state"), 7),
    ((30, 20), (), 30),
]


def filled(store: Store, steps: tuple[int, ...], strangers: tuple[str, ...]) -> None:
    record = lives.start(store, "a", job_uid="old").record
    for step in steps:
        lives.save(store, record, step)
    for key in strangers:
        store.put_if_absent(key, b"x")


def resumed(store: Store, attempt_id: str, wish: str = "Latest") -> int | None:
    parent = lives.start(store, attempt_id, job_uid=attempt_id, wish=wish).record.parent
    return parent.directory.step if parent else None


@pytest.mark.parametrize(("steps", "strangers", "expected"), ROWS, ids=str)
def test_b8_the_highest_number_is_the_newest_and_a_pin_names_the_same(
    shelf: Shelf, steps: tuple[int, ...], strangers: tuple[str, ...], expected: int
):
    filled(shelf.store, steps, strangers)
    assert resumed(shelf.store, "b") == expected
    assert resumed(shelf.store, "c", f"Step:{expected}") == expected


def test_b8_a_files_time_says_nothing(tmp_path: Path):
    store = files.FilesStore(tmp_path / "ck")
    filled(store, (20, 30), ())
    yesterday = time.time() - 86_400
    for path in (tmp_path / "ck" / "steps").glob("0000000030-*/*"):
        os.utime(path, (yesterday, yesterday))
    assert resumed(store, "b") == 30
