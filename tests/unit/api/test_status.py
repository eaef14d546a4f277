"""The status survives being written and read."""

import datetime as dt
import json

from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import conditions, status

TIMES = st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)).map(  # noqa: DTZ001
    lambda one: one.replace(microsecond=0)
)
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
    cause=st.sampled_from(status.Cause),
    start=TIMES,
    reason=st.text(),
    detail=st.text(),
    node=st.text(),
    index=st.none() | st.integers(0),
    running=st.none() | TIMES,
    end=st.none() | TIMES,
)
STATUSES = st.builds(
    status.Status,
    phase=st.sampled_from(status.Phase),
    conditions=st.lists(CONDITIONS, max_size=3).map(tuple),
    attempts=st.lists(ATTEMPTS, max_size=3).map(tuple),
    attempt=st.integers(0),
    attempt_id=st.text(),
    step=st.none() | st.integers(0),
    start=st.none() | TIMES,
    completion=st.none() | TIMES,
    next_retry=st.none() | TIMES,
    last_reclaim=st.none() | st.builds(status.Reclaim, time=TIMES),
)


@given(STATUSES)
def test_written_and_read_it_is_the_same(one: status.Status) -> None:
    assert status.parse(json.loads(json.dumps(status.render(one)))) == one


def test_an_empty_status_is_that_of_a_new_job() -> None:
    assert status.parse({}) == status.Status()


def test_a_conditions_time_moves_only_with_its_status() -> None:
    old = conditions.Condition("Running", True, "A", "a", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 1)
    later = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    same = conditions.Condition("Running", True, "B", "b", later, 2)
    other = conditions.Condition("Running", False, "C", "c", later, 3)
    assert conditions.merged((old,), same)[0].since == old.since
    assert conditions.merged((old,), other)[0].since == later
