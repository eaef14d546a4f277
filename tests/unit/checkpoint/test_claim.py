"""Where an attempt starts, and what it may take."""

import json

import pytest

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, view
from tests.contract.memory import MemoryStore
from tests.unit.checkpoint.lives import Skips, best, save, slip_in, start, upload


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def steps(claimed: claim.Claim) -> list[int]:
    return [directory.step for directory in claimed.trail]


def test_b13_an_empty_prefix_is_a_fresh_start(store: MemoryStore):
    claimed = start(store, "a")
    assert (claimed.record.seq, claimed.record.parent, steps(claimed)) == (1, None, [])


def test_the_next_attempt_goes_on_from_the_newest_commit_and_says_so(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 100)
    newest = save(store, a, 200)
    claimed = start(store, "b")
    assert claimed.record.parent == lineage.Parent(1, newest)
    assert steps(claimed) == [200, 100]


def test_newest_is_by_number_not_by_name(store: MemoryStore):
    a = start(store, "a").record
    for step in (9, 10, 100, 20, 10**10, 9_999_999_999):
        save(store, a, step)
    assert steps(start(store, "b")) == [10**10, 9_999_999_999, 100, 20, 10, 9]


def test_an_attempt_that_starts_again_goes_on_from_its_own_commits(store: MemoryStore):
    """torchrun restarts its workers within an attempt."""
    save(store, start(store, "a").record, 100)
    b = start(store, "b")
    save(store, b.record, 150)
    again = start(store, "b")
    assert again.record == b.record
    assert steps(again) == [150, 100]


def test_b16_a_commit_that_slipped_in_after_the_fork_is_on_no_trail(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 100)
    b = start(store, "b")
    slip_in(store, a, 200)
    slip_in(store, a, 100, nonce="ff")
    assert best(store, b) == layout.StepDir(100, "a", "00")
    save(store, b.record, 120)
    assert steps(start(store, "c")) == [120, 100]


def test_b16_a_stale_writer_commits_nothing_and_names_the_newer_claim(store: MemoryStore):
    a = start(store, "a", attempt=1).record
    save(store, a, 100)
    start(store, "b", attempt=2)
    with pytest.raises(errors.StaleAttempt, match=r"attempt 2 \(b\) has taken over with claim 2; a is stale"):
        save(store, a, 120)
    assert [d.step for d in view.look(store).committed] == [100]


def test_b16_a_stale_attempt_that_starts_again_is_told_so(store: MemoryStore):
    start(store, "a")
    start(store, "b")
    with pytest.raises(errors.StaleAttempt, match="a is stale"):
        start(store, "a")


def test_a_straggler_of_an_older_attempt_of_the_job_cannot_take_over(store: MemoryStore):
    start(store, "b", attempt=2)
    with pytest.raises(errors.StaleAttempt, match="attempt 2"):
        start(store, "a", attempt=1)
    assert lineage.Records(store).numbers() == [1]


def test_another_job_on_the_same_uri_starts_from_attempt_one_and_goes_on(store: MemoryStore):
    """Deleted and applied again: the number starts anew, the work goes on."""
    save(store, start(store, "a", job_uid="first", attempt=7).record, 100)
    assert steps(start(store, "b", job_uid="second", attempt=1)) == [100]


def test_b11_interrupted_again_before_a_save_it_resumes_from_the_same_step(store: MemoryStore):
    save(store, start(store, "a").record, 100)
    for name in "bcdef":
        claimed = start(store, name)
        assert steps(claimed) == [100]
        assert claimed.record.parent == lineage.Parent(1, layout.StepDir(100, "a", "00"))


def test_a_broken_newest_commit_is_skipped_with_its_reason(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 90)
    broken = save(store, a, 100)
    store.delete([broken.key("state")])
    skips = Skips()
    claimed = start(store, "b", skips=skips)
    assert claimed.record.parent == lineage.Parent(1, layout.StepDir(90, "a", "00"))
    assert skips.told == [(100, "state is missing")]


def test_an_upload_without_commit_is_invisible(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 90)
    upload(store, a, 100)
    assert steps(start(store, "b")) == [90]


def break_all(store: MemoryStore) -> None:
    for directory in view.look(store).committed:
        store.delete([directory.key("state")])


def test_all_broken_is_an_error_and_claims_nothing(store: MemoryStore):
    save(store, start(store, "a").record, 100)
    break_all(store)
    with pytest.raises(errors.AllBroken, match=r"all 1 checkpoints are damaged .*onBroken: StartFresh"):
        start(store, "b")
    assert lineage.Records(store).numbers() == [1]


def test_all_broken_is_a_fresh_start_where_the_user_allows_it(store: MemoryStore):
    save(store, start(store, "a").record, 100)
    break_all(store)
    claimed = start(store, "b", fresh_when_broken=True)
    assert (claimed.record.parent, steps(claimed)) == (None, [])


def test_b13_a_pinned_step_that_is_missing_is_named(store: MemoryStore):
    save(store, start(store, "a").record, 60)
    with pytest.raises(errors.NoSuchStep, match="step 70 was asked for and is not there; steps that are: 60"):
        start(store, "b", wish="Step:70")
    assert lineage.Records(store).numbers() == [1]


def test_a_pinned_step_that_is_damaged_is_an_error(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 60)
    store.delete([save(store, a, 70).key("state")])
    with pytest.raises(errors.AllBroken, match="step 70 was asked for and is damaged"):
        start(store, "b", wish="Step:70")


def test_a_pinned_step_is_taken_and_nothing_newer_is_followed_again(store: MemoryStore):
    a = start(store, "a", job_uid="old").record
    for step in (60, 70, 80):
        save(store, a, step)
    b = start(store, "b", wish="Step:70")
    assert steps(b) == [70]
    assert steps(start(store, "c", wish="Step:70")) == [70]


def test_a_pin_is_carried_out_once_per_job(store: MemoryStore):
    """A reclaim must not throw the job back to the pinned step."""
    a = start(store, "a", job_uid="old").record
    save(store, a, 60)
    save(store, a, 70)
    save(store, start(store, "b", wish="Step:60").record, 100)
    assert steps(start(store, "c", wish="Step:60")) == [100, 60]
    assert steps(start(store, "d", wish="Step:60", job_uid="new")) == [60]


def test_after_a_pin_nothing_older_will_do(store: MemoryStore):
    a = start(store, "a", job_uid="old").record
    save(store, a, 60)
    pinned = save(store, a, 70)
    start(store, "b", wish="Step:70")
    store.delete([pinned.key("state")])
    with pytest.raises(errors.AllBroken):
        start(store, "c", wish="Step:70")


def test_fresh_is_carried_out_once_per_job_too(store: MemoryStore):
    save(store, start(store, "a", job_uid="old").record, 60)
    b = start(store, "b", wish="Fresh")
    assert steps(b) == []
    save(store, b.record, 5)
    assert steps(start(store, "c", wish="Fresh")) == [5]


def test_without_a_job_a_wish_is_carried_out_each_time(store: MemoryStore):
    save(store, start(store, "a", job_uid="").record, 60)
    for name in "bc":
        assert steps(start(store, name, job_uid="", wish="Fresh")) == []


def test_checkpoints_without_a_lineage_are_no_fresh_start(store: MemoryStore):
    save(store, start(store, "a").record, 60)
    store.delete(["lineage/000001.json"])
    with pytest.raises(errors.LineageBroken, match="put lineage/ back"):
        start(store, "b")
    assert steps(start(store, "b", wish="Fresh")) == []


@pytest.mark.parametrize("data", [b"", b"{}", b"null", lineage.Record(2, "x").encode()])
def test_a_record_that_cannot_be_read_stops_the_start(store: MemoryStore, data: bytes):
    store.put_if_absent("lineage/000001.json", data)
    with pytest.raises(errors.LineageBroken, match=r"lineage/000001\.json"):
        start(store, "b")


def newer(data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "format": layout.FORMAT + 1, "unheard": "of"}).encode()


def test_a_claim_of_a_later_version_stops_the_start(store: MemoryStore):
    save(store, start(store, "a").record, 60)
    store.put_if_absent("lineage/000002.json", newer(lineage.Record(2, "x").encode()))
    with pytest.raises(errors.NewerFormat, match=r"lineage/000002\.json has format 2, .* reads up to 1"):
        start(store, "b", fresh_when_broken=True)


def test_a_commit_of_a_later_version_stops_the_start_rather_than_lose_its_work(store: MemoryStore):
    a = start(store, "a").record
    save(store, a, 60)
    commit = upload(store, a, 70)
    store.put_if_absent(commit.directory.commit_key, newer(commit.encode()))
    with pytest.raises(errors.NewerFormat, match=r"COMMIT\.json has format 2, .*the version that wrote it"):
        start(store, "b", fresh_when_broken=True)


def test_a_writer_that_a_later_version_took_over_from_is_stale(store: MemoryStore):
    a = start(store, "a").record
    store.put_if_absent("lineage/000002.json", newer(lineage.Record(2, "x").encode()))
    with pytest.raises(errors.StaleAttempt, match=r"claim 2 has taken over .*a is stale"):
        save(store, a, 60)


def test_a_lost_ancestor_stops_the_start(store: MemoryStore):
    save(store, start(store, "a").record, 60)
    start(store, "b")
    store.delete(["lineage/000001.json"])
    with pytest.raises(errors.LineageBroken, match="claim 2 goes on from claim 1, not there"):
        start(store, "c")


def test_our_own_claim_vanishing_is_noticed_before_a_commit(store: MemoryStore):
    a = start(store, "a").record
    store.delete(["lineage/000001.json"])
    with pytest.raises(errors.LineageBroken, match="our own claim, is gone"):
        save(store, a, 1)


def test_a_lost_race_for_a_number_looks_again(store: MemoryStore):
    """Another attempt claims between our look and our PUT."""

    class Racing(MemoryStore):
        raced = False

        def put_if_absent(self, key: str, data: bytes):  # noqa: ANN202
            if key == "lineage/000001.json" and not self.raced:
                self.raced = True
                save(self, start(self, "rival").record, 10)
            return super().put_if_absent(key, data)

    racing = Racing()
    claimed = start(racing, "a")
    assert (claimed.record.seq, steps(claimed)) == (2, [10])


@pytest.mark.parametrize("text", ["", "latest", "Step", "Step:", "Step:x", "Step:-1", "70"])
def test_a_wish_that_is_none_is_refused(text: str):
    with pytest.raises(errors.ConfigError, match="restore must be Latest, Fresh or Step:<number>"):
        claim.same_wish(text)


def test_wishes_have_one_spelling():
    assert [claim.same_wish(text) for text in ("Latest", "Fresh", "Step:0070")] == [
        "Latest",
        "Fresh",
        "Step:70",
    ]
