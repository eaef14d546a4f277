"""What is removed, and above all what isn't."""

import pytest

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, retention, view
from tests.contract.memory import MemoryStore
from tests.unit.checkpoint.lives import save, slip_in, start, upload


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def prune(store: MemoryStore, record: lineage.Record, keep: int) -> None:
    retention.prune(store, lineage.Records(store), record, keep=keep)


def left(store: MemoryStore) -> list[tuple[int, str]]:
    return sorted((d.step, d.attempt_id) for d in view.look(store).saves)


def test_the_newest_stay(store: MemoryStore):
    a = start(store, "a").record
    for step in (1, 2, 3, 10):
        save(store, a, step)
    prune(store, a, 2)
    assert left(store) == [(3, "a"), (10, "a")]


def test_a_parent_stays_however_old(store: MemoryStore):
    a = start(store, "a").record
    for step in (1, 2):
        save(store, a, step)
    b = start(store, "b").record
    for step in (3, 4, 5):
        save(store, b, step)
    prune(store, b, 1)
    assert left(store) == [(2, "a"), (5, "b")]


def test_a_damaged_commit_does_not_count_and_is_left_alone(store: MemoryStore):
    a = start(store, "a").record
    for step in (1, 2, 3):
        save(store, a, step)
    store.delete([layout.StepDir(3, "a", "00").key("state")])
    prune(store, a, 1)
    assert left(store) == [(2, "a"), (3, "a")]


def test_uploads_that_came_to_nothing_go(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 1)
    upload(store, a, 2)
    b = start(store, "b").record
    upload(store, b, 2)
    save(store, b, 3)
    prune(store, b, 2)
    assert left(store) == [(1, "a"), (3, "b")]


def test_the_next_save_that_is_already_being_uploaded_stays(store: MemoryStore):
    """Other ranks may be at it while rank 0 tidies up after the last one."""
    a = start(store, "a").record
    upload(store, a, 1)
    save(store, a, 2)
    upload(store, a, 2, nonce="ff")
    upload(store, a, 3)
    prune(store, a, 1)
    assert sorted(d.name for d in view.look(store).saves) == [
        "0000000002-a-00",
        "0000000002-a-ff",
        "0000000003-a-00",
    ]


def test_b16_commits_past_the_fork_go(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 1)
    b = start(store, "b").record
    slip_in(store, a, 2)
    save(store, b, 2)
    prune(store, b, 3)
    assert left(store) == [(1, "a"), (2, "b")]


def test_b16_a_stale_writer_removes_nothing(store: MemoryStore):
    a = start(store, "a").record
    for step in (1, 2, 3):
        save(store, a, step)
    save(store, start(store, "b").record, 4)
    with pytest.raises(errors.StaleAttempt):
        prune(store, a, 1)
    assert left(store) == [(1, "a"), (2, "a"), (3, "a"), (4, "b")]


def test_what_a_fresh_start_left_behind_is_not_ours_to_remove(store: MemoryStore):
    a = start(store, "a", job_uid="old").record
    for step in (1, 2, 3):
        save(store, a, step)
    b = start(store, "b", wish="Fresh").record
    for step in (1, 2):
        save(store, b, step)
    prune(store, b, 1)
    assert left(store) == [(1, "a"), (2, "a"), (2, "b"), (3, "a")]


def test_files_of_strangers_are_left_alone(store: MemoryStore):
    a = start(store, "a").record
    for key in ("steps/README", "steps/0000000001-unknown-00/x", "other/file"):
        store.put_if_absent(key, b"x")
    save(store, a, 1)
    prune(store, a, 1)
    keys = {entry.key for entry in store.list("")}
    assert {"steps/README", "steps/0000000001-unknown-00/x", "other/file"} <= keys


def test_the_commit_goes_before_the_files_it_names(store: MemoryStore):
    """Killed in the middle of a removal, nothing looks like a checkpoint that isn't one."""
    gone: list[str] = []

    class Recording(MemoryStore):
        def delete(self, keys):  # noqa: ANN001, ANN202
            for key in keys:
                gone.append(key)
                super().delete([key])

    recording = Recording()
    a = start(recording, "a").record
    for step in (1, 2):
        save(recording, a, step)
    gone.clear()
    prune(recording, a, 1)
    assert [key.rpartition("/")[2] for key in gone] == ["COMMIT.json", "state"]


def test_what_is_known_is_not_asked_for_again():
    """Two listings tell what there is and that nobody has taken over; the commits were our own."""
    asked: list[str] = []

    class Asked(MemoryStore):
        def list(self, prefix):  # noqa: ANN001, ANN202
            asked.append(f"list {prefix}")
            return super().list(prefix)

        def get(self, key):  # noqa: ANN001, ANN202
            asked.append(f"get {key}")
            return super().get(key)

    store = Asked()
    a = start(store, "a").record
    records, inspector = lineage.Records(store), view.Inspector(store)
    for step in (1, 2, 3):
        commit = upload(store, a, step)
        claim.publish(store, records, a, commit)
        inspector.remember(commit)
    retention.prune(store, records, a, keep=2, inspector=inspector)
    asked.clear()
    retention.prune(store, records, a, keep=2, inspector=inspector)
    assert asked == ["list steps/", "list lineage/"]
    assert left(store) == [(2, "a"), (3, "a")]
