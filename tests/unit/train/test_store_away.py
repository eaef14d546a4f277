"""A store that can't be reached when a run begins."""

import pytest

from spottrain import errors
from spottrain.checkpoint import location, store
from spottrain.train import log, peers, restore, settings, tracked
from tests.contract.memory import MemoryStore
from tests.unit.train.virtual import VirtualClock

FIRST = 1000.0


class AwayStore(MemoryStore):
    """Refuses connections until that moment."""

    def __init__(self, clock: VirtualClock, until: float) -> None:
        super().__init__()
        self._clock, self._until = clock, until

    def list(self, prefix: str) -> list[store.Entry]:
        if self._clock.now < self._until:
            raise errors.StoreUnavailable("memory://: cannot list: connection refused")
        return super().list(prefix)


def begin(until: float, *, in_cluster: bool = True, stopped_at: float = 1e9) -> tuple[object, VirtualClock]:
    clock = VirtualClock(FIRST)
    told = settings.Settings(
        location.Location("memory://"), attempt_id="a", job_uid="u", in_cluster=in_cluster
    )
    run = restore.Restorer(peers.ALONE, AwayStore(clock, until), told, clock, log.Log(clock))
    found = run.restore(tracked.Given(lambda _: None, resizable=True), lambda: clock.now >= stopped_at)
    return found, clock


def test_a_pod_waits_for_a_store_that_is_back_within_a_minute() -> None:
    found, clock = begin(FIRST + 40)
    assert isinstance(found, restore.Restored)
    assert found.step is None
    assert clock.now == FIRST + 40


def test_a_store_that_stays_away_is_an_error_after_a_minute() -> None:
    with pytest.raises(errors.StoreUnavailable, match="connection refused"):
        begin(FIRST + 1000)


def test_outside_of_a_pod_it_is_an_error_at_once() -> None:
    with pytest.raises(errors.StoreUnavailable):
        begin(FIRST + 1, in_cluster=False)


def test_who_is_told_to_stop_meanwhile_begins_nothing() -> None:
    found, clock = begin(FIRST + 40, stopped_at=FIRST + 5)
    assert found is None
    assert clock.now == FIRST + 5
