"""A store that can't be reached when a run begins."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spottrain import errors
from spottrain.checkpoint import claim, layout, location, manifest, transfer
from spottrain.checkpoint.store import Entry, Put
from spottrain.sidecar import bringing
from spottrain.train import log, patience, peers, restore, settings, tracked
from tests.contract.memory import MemoryStore
from tests.unit.train.virtual import VirtualClock

FIRST = 1000.0


class AwayStore(MemoryStore):
    """Refuses connections until a moment."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock, self.until = clock, 0.0

    def _answer(self) -> None:
        if self._clock.now < self.until:
            raise errors.StoreUnavailable("memory://: cannot answer: connection refused")

    def list(self, prefix: str) -> list[Entry]:
        self._answer()
        return super().list(prefix)

    def get(self, key: str) -> bytes | None:
        self._answer()
        return super().get(key)

    def put_if_absent(self, key: str, data: bytes) -> Put:
        self._answer()
        return super().put_if_absent(key, data)


class AwayOnTheWay(AwayStore):
    """Goes away at the first file that is fetched."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        super().__init__(clock)
        self._seconds: float | None = seconds

    def get_file(self, key: str, target: Path) -> str | None:
        if self._seconds is not None:
            self.until, self._seconds = self._clock.now + self._seconds, None
        return super().get_file(key, target)


def told(*, in_cluster: bool = True, attempt: str = "a", number: int = 1) -> settings.Settings:
    place = location.Location("memory://")
    return settings.Settings(place, attempt_id=attempt, attempt=number, job_uid="u", in_cluster=in_cluster)


def begin(
    store: AwayStore,
    clock: VirtualClock,
    stopped: Callable[[], bool] = lambda: False,
    load: Callable[[Path], None] = lambda _: None,
    **said: Any,
) -> restore.Restored | None:
    words, mine = log.Log(clock), told(**said)
    asked = patience.beginning(store, mine, clock, words, stopped)
    run = restore.Restorer(peers.ALONE, asked, mine, clock, words)
    return run.restore(tracked.Given(load, resizable=True), stopped)


def away(seconds: float) -> tuple[AwayStore, VirtualClock]:
    clock = VirtualClock(FIRST)
    store = AwayStore(clock)
    store.until = FIRST + seconds
    return store, clock


def saved(store: AwayStore, folder: Path) -> None:
    """A checkpoint of step 7 by an attempt before."""
    folder.mkdir()
    (folder / "model.pt").write_text("weights")
    mine = claim.claim(store, told(attempt="before", number=0).claimant(""), now=1.0, skipped=print)
    directory = layout.StepDir(7, "before", "0123456789abcdef")
    files = transfer.upload(store, folder, directory, 0)
    writer = claim.writer(mine.record, directory)
    commit = manifest.Commit(7, writer, files, world_size=1, time=1.0)
    assert store.put_if_absent(directory.commit_key, commit.encode()) is Put.CREATED


def test_a_pod_waits_for_a_store_that_is_back_within_a_minute() -> None:
    store, clock = away(40)
    found = begin(store, clock)
    assert found is not None
    assert found.step is None
    assert clock.now == FIRST + 40


def test_a_store_that_stays_away_is_an_error_after_a_minute() -> None:
    store, clock = away(1000)
    with pytest.raises(errors.StoreUnavailable, match="connection refused"):
        begin(store, clock)
    assert clock.now == FIRST + 60


def test_outside_of_a_pod_it_is_an_error_at_once() -> None:
    store, clock = away(1)
    with pytest.raises(errors.StoreUnavailable):
        begin(store, clock, in_cluster=False)
    assert clock.now == FIRST


def test_who_is_told_to_stop_meanwhile_begins_nothing() -> None:
    store, clock = away(40)
    assert begin(store, clock, lambda: clock.now >= FIRST + 5) is None
    assert clock.now == FIRST + 5


def test_a_store_that_goes_away_while_a_checkpoint_is_fetched_is_waited_for(tmp_path: Path) -> None:
    clock = VirtualClock(FIRST)
    store = AwayOnTheWay(clock, 40)
    saved(store, tmp_path / "made")
    read: list[str] = []
    found = begin(store, clock, load=lambda folder: read.append((folder / "model.pt").read_text()))
    assert found is not None
    assert (found.step, found.skipped, read) == (7, 0, ["weights"])
    assert clock.now == FIRST + 40


def test_the_container_that_brings_a_checkpoint_waits_too(tmp_path: Path) -> None:
    clock = VirtualClock(FIRST)
    store = AwayOnTheWay(clock, 40)
    saved(store, tmp_path / "made")
    store.until = FIRST + 10
    root = tmp_path / "volume"
    root.mkdir()
    words = log.Log(clock)
    place = patience.beginning(store, told(), clock, words, lambda: False)
    assert bringing.Bringer(told(), root, True, place, clock, words).bring() == 7
    assert (root / "model.pt").read_text() == "weights"
    assert clock.now == FIRST + 50


def test_a_claim_whose_answer_was_lost_is_ours(tmp_path: Path) -> None:
    """The store takes the record, and is away before it says so."""

    class LostAnswer(AwayStore):
        def put_if_absent(self, key: str, data: bytes) -> Put:
            outcome = super().put_if_absent(key, data)
            if not tmp_path.joinpath("once").exists():
                tmp_path.joinpath("once").touch()
                self.until = self._clock.now + 20
                self._answer()
            return outcome

    clock = VirtualClock(FIRST)
    store = LostAnswer(clock)
    found = begin(store, clock)
    assert found is not None
    assert found.record.seq == 1
    assert [entry.key for entry in MemoryStore.list(store, layout.LINEAGE)] == [layout.record_key(1)]


def test_it_is_said_once_for_each_outage(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = away(40)
    with caplog.at_level("WARNING", log.NAME):
        begin(store, clock)
    assert [record.message.count("trying again for up to 60 s") for record in caplog.records] == [1]
