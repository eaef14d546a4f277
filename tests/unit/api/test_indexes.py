"""Sets and numbers of indexes do what Python's own sets and dictionaries do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import indexes

SETS = st.sets(st.integers(0, 40))
NUMBERS = st.dictionaries(st.integers(0, 40), st.integers(1, 3))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (set(), ""),
        ({7}, "7"),
        ({8, 9}, "8,9"),
        ({0, 1, 2, 3, 4, 7}, "0-4,7"),
        ({1, 3, 4, 5, 7}, "1,3-5,7"),  # the example of the batch/v1 reference
    ],
)
def test_a_set_is_written_as_an_indexed_job_writes_it(numbers: set[int], text: str) -> None:
    assert indexes.of(numbers).text == text


@given(SETS)
def test_a_set_that_was_written_and_read_is_the_same(numbers: set[int]) -> None:
    written = indexes.of(numbers)
    assert indexes.parse(written.text) == written
    assert list(written) == sorted(numbers)
    assert len(written) == len(numbers)
    assert bool(written) == bool(numbers)


@given(SETS, SETS)
def test_sets_are_joined_and_cut_as_pythons_are(left: set[int], right: set[int]) -> None:
    one, other = indexes.of(left), indexes.of(right)
    assert one | other == indexes.of(left | right)
    assert one - other == indexes.of(left - right)
    assert one & other == indexes.of(left & right)
    assert [index for index in range(42) if index in one] == sorted(left)


@given(SETS, st.integers(-1, 50))
def test_the_lowest_come_first(numbers: set[int], count: int) -> None:
    assert indexes.of(numbers).lowest(count) == sorted(numbers)[: max(0, count)]


def test_below_is_everything_up_to_a_number() -> None:
    assert (indexes.below(0).text, indexes.below(1).text, indexes.below(5).text) == ("", "0", "0-4")


@pytest.mark.parametrize("text", ["x", "1,,2", "-"])
def test_what_is_no_set_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        assert indexes.parse(text) is None


def test_numbers_are_written_by_runs_without_the_zeros_at_the_end() -> None:
    counts = indexes.Counts().plus({37: 1, 38: 2, 39: 2, 40: 2})
    assert counts.text == "0*37,1,2*3"


@given(NUMBERS, NUMBERS)
def test_numbers_add_up_and_survive_being_written(first: dict[int, int], then: dict[int, int]) -> None:
    counts = indexes.Counts().plus(first).plus(then)
    wanted = {index: first.get(index, 0) + then.get(index, 0) for index in range(45)}
    assert {index: counts[index] for index in range(45)} == wanted
    assert indexes.parse_counts(counts.text) == counts
    assert counts.over(0) == indexes.of({index for index, one in wanted.items() if one > 0})
    assert counts.over(2) == indexes.of({index for index, one in wanted.items() if one > 2})


@given(NUMBERS)
def test_the_same_numbers_have_one_text(numbers: dict[int, int]) -> None:
    one_by_one = indexes.Counts()
    for index, number in numbers.items():
        one_by_one = one_by_one.plus({index: number})
    assert one_by_one == indexes.Counts().plus(numbers)
