"""Against worked examples: C and M in seconds."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from spottrain.policy import interval


@pytest.mark.parametrize(
    ("cost", "mean", "notice", "expected"),
    [
        (90, 8 * 3600, 0.0, 2276.8),
        (300, 90 * 60, 0.0, 1800.0),
        (60, 120 * 60, 0.8, 2078.5),
        (1, 8 * 3600, 0.5, 339.4),
    ],
)
def test_worked_examples(cost: float, mean: float, notice: float, expected: float):
    found = interval.optimal(cost=cost, mean_time=mean, notice_share=notice)
    assert found == pytest.approx(expected, abs=0.05)


def test_a_share_of_one_does_not_mean_never():
    assert interval.optimal(cost=1, mean_time=3600, notice_share=1.0) == pytest.approx(
        math.sqrt(2 * 3600 / 0.01)
    )


def test_within_bounds_however_odd_the_input():
    assert interval.optimal(cost=0, mean_time=3600, notice_share=0) == interval.SHORTEST
    assert interval.optimal(cost=1e9, mean_time=1e9, notice_share=0) == interval.LONGEST


@given(st.floats(-1, 1e5), st.floats(-1, 1e7), st.floats(-1, 2))
def test_always_a_number_of_seconds_one_can_wait(cost: float, mean: float, notice: float):
    found = interval.optimal(cost=cost, mean_time=mean, notice_share=notice)
    assert interval.SHORTEST <= found <= interval.LONGEST


def test_the_prior_is_divided_among_the_nodes_of_a_gang():
    assert interval.mean_time(nodes=1, exposure=0, interruptions=0) == 8 * 3600
    assert interval.mean_time(nodes=4, exposure=0, interruptions=0) == 2 * 3600


def test_what_was_seen_outweighs_the_prior():
    """Ten interruptions in ten hours: an hour, nearly."""
    assert interval.mean_time(nodes=1, exposure=36000, interruptions=10) == pytest.approx(4800)
