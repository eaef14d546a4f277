"""The status survives being written and read."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import conditions, indexes, ledger, prices, status

TIMES = st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)).map(  # noqa: DTZ001
    lambda one: one.replace(microsecond=0)
)
WORDS = st.text(min_size=1)
"""Of a newer version."""
CONDITIONS = st.builds(
    conditions.Condition,
    type=st.text(),
    status=st.sampled_from([True, False, None]),
    reason=st.text(),
    message=st.text(),
    since=TIMES,
    generation=st.integers(0),
)
ATTEMPTS = st.builds(
    status.Attempt,
    number=st.integers(1),
    id=st.text(min_size=1),
    cause=st.sampled_from(status.Cause) | WORDS,
    start=TIMES,
    reason=st.text(),
    detail=st.text(),
    node=st.text(),
    index=st.none() | st.integers(0),
    running=st.none() | TIMES,
    end=st.none() | TIMES,
    more=st.just(()) | st.just((("place", {"zone": "a"}), ("savedStep", 7))),
)
RATE = prices.Rate(prices.parse("0.000001"), prices.parse("3.67"))
LINES = (
    ledger.Line(1, "spot", RATE, indexes.of([0, 2]), 3_590_000_000, indexes.of([1]), 300, 1_795_000_000),
    ledger.Line(2, "unknown", None, indexes.of([4])),
)
ACCOUNTS = (ledger.Account("spot", 1, 2, 3, 4, 5, prices.Amount("6.10"), prices.Amount(7)),)
LEDGERS = st.just(ledger.Ledger()) | st.builds(
    ledger.Ledger, accounts=st.just(ACCOUNTS), lines=st.sampled_from(((), LINES)), time=TIMES
)
STATUSES = st.builds(
    status.Status,
    phase=st.sampled_from(status.Phase) | WORDS,
    conditions=st.lists(CONDITIONS, max_size=3).map(tuple),
    attempts=st.lists(ATTEMPTS, max_size=3).map(tuple),
    attempt=st.integers(0),
    attempt_id=st.text(),
    step=st.none() | st.integers(0),
    cost=LEDGERS,
    progress=st.builds(
        status.Progress,
        total=st.none() | st.integers(0),
        per_second=st.none() | st.floats(0, 1e6),
        time=st.none() | TIMES,
    ),
    checkpoint=st.none()
    | st.builds(
        status.Checkpoint,
        step=st.integers(0),
        time=st.none() | TIMES,
        save_seconds=st.none() | st.floats(0, 1e6),
    ),
    start=st.none() | TIMES,
    completion=st.none() | TIMES,
    next_retry=st.none() | TIMES,
    active_since=st.none() | TIMES,
    storm=st.builds(status.Storm, reclaims=st.integers(0), step=st.none() | st.integers(0)),
    failed_nodes=st.lists(st.builds(status.FailedNode, time=TIMES), max_size=3).map(tuple),
    last_reclaim=st.none() | st.builds(status.Reclaim, time=TIMES),
    fallback=st.none()
    | st.builds(status.Fallback, since=TIMES, until=st.none() | TIMES, times=st.integers(1)),
)


@given(STATUSES)
def test_written_and_read_it_is_the_same(one: status.Status) -> None:
    assert status.parse(json.loads(json.dumps(status.render(one)))) == one


def test_words_that_this_version_has_are_read_as_its_own() -> None:
    raw = {
        "phase": "Running",
        "attempts": [{"number": 1, "id": "a", "cause": "Reclaimed", "startTime": "2026-01-01T00:00:00Z"}],
    }
    one = status.parse(raw)
    assert one.phase is status.Phase.RUNNING
    assert one.attempts[0].cause is status.Cause.RECLAIMED


@pytest.mark.parametrize("completion", [None, "2026-01-01T00:00:00Z"])
def test_a_phase_of_a_newer_version_is_an_end_when_it_has_a_completion_time(completion: str | None) -> None:
    one = status.parse({"phase": "Cancelled", "completionTime": completion})
    assert (one.phase, one.over) == ("Cancelled", completion is not None)


def test_an_empty_status_is_that_of_a_new_job() -> None:
    assert status.parse({}) == status.Status()


def test_a_conditions_time_moves_only_with_its_status() -> None:
    old = conditions.Condition("Running", True, "A", "a", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 1)
    later = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    same = conditions.Condition("Running", True, "B", "b", later, 2)
    other = conditions.Condition("Running", False, "C", "c", later, 3)
    assert conditions.merged((old,), same)[0].since == old.since
    assert conditions.merged((old,), other)[0].since == later


def test_what_indexes_have_no_more_is_taken_away_like_all_that_is_ours() -> None:
    """Or a set that has become empty would be read again as it was."""
    assert {"completedIndexes", "failedIndexes", "indexes", "failedNodes", "nextRetryTime"} <= status.FIELDS
