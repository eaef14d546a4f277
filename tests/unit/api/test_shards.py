"""What the status keeps of indexes survives being written, and stays small whatever happens to 10,000."""

import dataclasses
import datetime as dt
import json

from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import indexes, shards, status

NOON = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
MOST = 10_000
BUDGET = 160 * 1024
"""Bytes of a status: decision 12. etcd takes requests of 1.5 MiB."""

SETS = st.sets(st.integers(0, 30)).map(indexes.of)
NUMBERS = st.dictionaries(st.integers(0, 30), st.integers(1, 9)).map(lambda one: indexes.Counts().plus(one))
SHARDS = st.builds(shards.Shards, completed=SETS, failed=SETS, made=SETS, restarts=NUMBERS, failures=NUMBERS)


@given(SHARDS)
def test_written_and_read_they_are_the_same(one: shards.Shards) -> None:
    raw = json.loads(json.dumps(status.render(status.Status(shards=one))))
    assert shards.parse(raw) == one


def test_a_gang_has_none() -> None:
    assert shards.parse(status.render(status.Status())) is None


def test_what_has_finished_counts_although_the_rest_of_it_was_lost() -> None:
    """An older resource definition drops fields that it doesn't know."""
    assert shards.parse({"completedIndexes": "0-4"}) == shards.Shards(completed=indexes.below(5))


def size(one: shards.Shards) -> int:
    return len(json.dumps(status.render(status.Status(shards=one))))


def test_ten_thousand_that_finished_at_once_take_a_line() -> None:
    assert size(shards.Shards(completed=indexes.below(MOST))) < 500


def worst() -> shards.Shards:
    """No two neighbours are alike in anything, and numbers have four digits."""
    numbers = {index: 8998 + index % 2 for index in range(MOST)}
    return shards.Shards(
        completed=indexes.of(range(0, MOST, 2)),
        failed=indexes.of(range(1, MOST, 2)),
        restarts=indexes.Counts().plus(numbers),
        failures=indexes.Counts().plus({index: 998 + index % 2 for index in range(MOST)}),
    )


def test_the_worst_that_can_happen_to_ten_thousand_stays_within_the_budget() -> None:
    assert size(worst()) < BUDGET


def test_ten_thousand_that_wait_at_as_many_moments_as_there_can_be_stay_within_the_budget() -> None:
    """151 moments: each second of the first 30, then every fifth up to ten minutes."""
    moments = [*range(1, 31), *range(35, 601, 5), 605, 610, 615, 620, 625, 630, 635]
    waits = {
        NOON + dt.timedelta(seconds=moments[place]): set(range(place, MOST, 151)) for place in range(151)
    }
    assert (
        size(dataclasses.replace(worst(), failed=shards.NONE, completed=shards.NONE).with_retries(waits))
        < BUDGET
    )


def test_a_moment_that_is_waited_for_no_more_is_forgotten() -> None:
    one = shards.Shards().with_retries({NOON: {1, 2}, NOON + dt.timedelta(seconds=1): {3}})
    assert one.waiting(NOON - dt.timedelta(seconds=1)) == indexes.of([1, 2, 3])
    assert one.waiting(NOON) == indexes.of([3])
    left = one.without_retries(indexes.of([1, 2]))
    assert left.retries == (shards.Retry(NOON + dt.timedelta(seconds=1), indexes.of([3])),)
