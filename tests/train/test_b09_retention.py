"""B9: removing old checkpoints never takes the last good one, whatever else goes on."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spottrain.checkpoint import claim, files, layout, lineage, retention, view
from spottrain.checkpoint.store import Store
from tests.train import processes
from tests.train.conftest import Shelf
from tests.unit.checkpoint import lives


def prune(store: Store, record: lineage.Record, keep: int) -> None:
    retention.prune(store, lineage.Records(store), record, keep=keep)


def damage(store: Store, directory: layout.StepDir) -> None:
    store.delete([directory.key("state")])


def committed(store: Store) -> list[int]:
    return sorted(directory.step for directory in view.look(store).committed)


def resumed(store: Store, attempt_id: str) -> int:
    parent = lives.start(store, attempt_id).record.parent
    assert parent
    return parent.directory.step


def test_b9_a_save_that_dies_half_way_leaves_the_last_good_one(shelf: Shelf):
    a = lives.start(shelf.store, "a").record
    lives.save(shelf.store, a, 90)
    lives.upload(shelf.store, a, 100)
    prune(shelf.store, a, 1)
    assert resumed(shelf.store, "b") == 90


def test_b9_a_broken_one_does_not_count(shelf: Shelf):
    a = lives.start(shelf.store, "a").record
    saved = [lives.save(shelf.store, a, step) for step in (70, 80, 90, 100)]
    damage(shelf.store, saved[-1])
    prune(shelf.store, a, 2)
    assert committed(shelf.store) == [80, 90, 100]


def test_b9_what_was_passed_over_never_comes_back(shelf: Shelf):
    a = lives.start(shelf.store, "a").record
    lives.save(shelf.store, a, 5)
    damage(shelf.store, lives.save(shelf.store, a, 125))
    b = lives.start(shelf.store, "b").record
    assert b.parent
    assert b.parent.directory.step == 5
    lives.save(shelf.store, b, 10)
    prune(shelf.store, b, 1)
    assert 10 in committed(shelf.store)
    assert resumed(shelf.store, "c") == 10


def test_b9_the_first_save_finds_nothing_there(bench: processes.Bench, shelf: Shelf):
    program = bench.start(
        "counter.py", 1, **shelf.env, SPOTTRAIN_CHECKPOINT_KEEP=1, SPOTTRAIN_CHECKPOINT_INTERVAL=0
    )
    assert program.wait() == 0
    assert "event=saved" in program.output
    assert "prune-failed" not in program.output
    assert committed(shelf.store) == [0]


def test_b9_four_at_once_remove_no_more_than_one_would(shelf: Shelf):
    a = lives.start(shelf.store, "a").record
    for step in range(1, 9):
        lives.save(shelf.store, a, step)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(prune, shelf.store, a, 2) for _ in range(4)]:
            done.result()
    assert committed(shelf.store) == [7, 8]
    assert resumed(shelf.store, "b") == 8


def test_b9_a_save_under_way_stays(shelf: Shelf):
    a = lives.start(shelf.store, "a").record
    for step in (1, 2, 3):
        lives.save(shelf.store, a, step)
    commit = lives.upload(shelf.store, a, 4)
    prune(shelf.store, a, 1)
    claim.publish(shelf.store, lineage.Records(shelf.store), a, commit)
    assert committed(shelf.store) == [3, 4]
    assert resumed(shelf.store, "b") == 4


def test_b9_a_save_that_is_written_while_others_are_removed_is_whole(tmp_path: Path):
    """In a directory: emptied folders go, and none that is being written to."""
    store = files.FilesStore(tmp_path / "ck")
    a = lives.start(store, "a").record
    with ThreadPoolExecutor(2) as pool:
        saving = pool.submit(lambda: [lives.save(store, a, step) for step in range(60)])
        while not saving.done():
            prune(store, a, 1)
        saving.result()
    prune(store, a, 1)
    assert committed(store) == [59]
    assert resumed(store, "b") == 59
