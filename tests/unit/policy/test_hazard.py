"""What is learnt of a pool; hours and rates per hour."""

import math
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from spottrain.policy import hazard

NEW = hazard.Record()
HELD = NEW.after(0.0, held=True)


def lived(*lives: float) -> hazard.Record:
    """A pool that lost all its machines after each of these times, and gave new ones half an hour later."""
    record, now = NEW, 0.0
    for life in lives:
        record = record.after(now, held=True)
        now += life
        record = record.after(now, held=False, lost=1, of=1)
        now += 0.5
    return record


def test_before_anything_is_known_the_rates_are_those_of_public_traces():
    assert NEW.exits.rates(hazard.EXITS) == pytest.approx(hazard.EXITS)
    assert NEW.hazard == 1 / 4


def test_the_plain_hazard_is_exits_and_one_over_hours_and_four():
    assert lived(3.0, 5.0).hazard == pytest.approx(3 / 12, rel=0.01)


def test_hours_are_counted_in_the_bands_of_their_age():
    record = HELD.after(3.0, held=True)
    assert record.exits.hours == (0.5, 0.5, 1.0, 1.0, 0.0, 0.0)
    assert sum(record.exits.events) == 0
    lost = record.after(5.0, held=False, lost=2, of=2)
    assert lost.exits.hours == pytest.approx((0.5, 0.5, 1.0, 2.0, 1.0, 0.0), rel=0.01)
    assert lost.exits.events == (0, 0, 0, 0, 1, 0)


def test_looking_often_says_the_same_as_looking_once():
    often = HELD
    for minute in range(1, 181):
        often = often.after(minute / 60, held=True)
    once = HELD.after(3.0, held=True)
    assert often.exits.hours == pytest.approx(once.exits.hours, rel=0.01)
    assert often.age(3.0) == once.age(3.0) == 3.0


def test_a_zone_that_falls_with_twenty_workers_is_one_event_and_one_node_of_twenty_a_twentieth():
    zone = HELD.after(2.0, held=False, lost=20, of=20)
    assert sum(zone.exits.events) == 1
    node = HELD.after(2.0, held=True, lost=1, of=20)
    assert sum(node.exits.events) == pytest.approx(1 / 20)
    assert node.state is hazard.State.HELD
    assert node.age(2.0) == pytest.approx(1.9)


def test_a_pool_that_lost_most_rests_for_about_twenty_minutes_when_nothing_is_known_of_its_returns():
    lost = HELD.after(2.0, held=False, lost=3, of=4)
    assert lost.state is hazard.State.AWAY
    assert lost.rest == pytest.approx(math.log(2) / hazard.RETURNS[0])
    assert [lost.resting(2.0 + hours) for hours in (0.0, 0.3, 0.4)] == [True, True, False]


def test_a_pool_that_stayed_away_for_long_rests_longer_and_one_that_comes_back_at_once_shorter():
    def returning(hours: float) -> hazard.Record:
        record, now = HELD, 0.0
        for _ in range(5):
            now += 1.0
            record = record.after(now, held=False, lost=1, of=1)
            now += hours
            record = record.after(now, held=True)
        return record

    assert returning(12.0).rest > NEW.rest > returning(0.1).rest
    assert returning(1000.0).rest <= hazard.LONGEST_REST


def test_a_pool_is_the_less_risky_the_longer_it_has_held_out():
    ages = [HELD.after(hours, held=True) for hours in (0.0, 1.0, 4.0, 10.0)]
    ahead = [mean_losses(one, one.seen) for one in ages]
    assert ahead == sorted(ahead, reverse=True)
    assert len(set(ahead)) == 4


def mean_losses(record: hazard.Record, now: float) -> float:
    draws = (random.Random(seed) for seed in range(300))
    return sum(record.losses(now, 6.0, draw) for draw in draws) / 300


def test_of_a_pool_where_nobody_is_its_age_says_nothing():
    """It may have fallen since: what counts is its plain hazard."""
    left = HELD.after(3.0, held=False)
    assert mean_losses(left, 3.0) == pytest.approx(6 * left.hazard, rel=0.1)


def test_a_pool_that_was_left_is_as_old_as_it_was_then():
    left = HELD.after(3.0, held=False)
    assert (left.state, left.age(50.0)) == (hazard.State.LEFT, 3.0)
    assert left.after(60.0, held=False) == left


def test_after_a_long_gap_nobody_knows_whether_it_was_held():
    held = HELD.after(3.0, held=True)
    assert held.resumed(3.1) == held
    assert held.resumed(4.0).state is hazard.State.LEFT
    assert held.resumed(4.0).after(4.0, held=True).exits.hours == pytest.approx(held.exits.hours, rel=0.01)


def test_hours_in_which_somebody_waited_in_vain_count_against_a_pool_that_is_away():
    away = HELD.after(1.0, held=False, lost=1, of=1)
    waited = away.after(5.0, held=False, tried=True)
    assert sum(waited.returns.hours) == pytest.approx(4.0)
    assert waited.rest > away.rest
    assert away.after(5.0, held=False) == away


def test_what_was_seen_two_weeks_ago_counts_half():
    lost = lived(2.0, 2.0, 2.0, 2.0)
    later = lost.after(lost.seen + hazard.HALF_LIFE, held=True)
    assert sum(later.exits.events) == pytest.approx(sum(lost.exits.events) / 2)
    assert later.moments == pytest.approx(lost.moments / 2)


@pytest.mark.parametrize(
    ("lost", "of", "workers", "times"),
    [(16, 16, 16, 1.0), (1, 20, 32, 32.0), (1, 20, 4, 4.0), (5, 20, 100, 20.0)],
    ids=["all together", "one by one, a larger gang", "one by one, a smaller gang", "by fives"],
)
def test_a_gang_is_hit_as_often_as_losses_come_apart(lost: int, of: int, workers: int, times: float):
    record = HELD.after(9.0, held=True, lost=lost, of=of)
    assert record.together(workers) == pytest.approx(times)


def test_a_gang_in_a_pool_that_never_lost_anything_is_taken_to_be_hit_at_each_of_its_nodes():
    assert NEW.together(8) == 8.0


@given(st.floats(0, 30), st.floats(0, 30))
def test_the_age_at_which_so_much_is_expected_is_the_inverse_of_what_is_expected_until_then(
    start: float, hours: float
):
    due = hazard.expected(hazard.EXITS, start, start + hours)
    assert hazard.age_at(hazard.EXITS, start, due) == pytest.approx(start + hours, abs=1e-6)


def test_a_rate_of_nothing_never_comes_to_anything():
    assert hazard.age_at((0.0,) * 6, 0.0, 1.0) == math.inf
    assert hazard.age_at((0.0, 1.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0.25) == 0.75


def test_drawn_rates_lie_around_the_learnt_ones_and_nearer_the_more_is_known():
    def apart(record: hazard.Record) -> float:
        levels = [record.exits.drawn(hazard.EXITS, random.Random(seed))[0] for seed in range(200)]
        mean = sum(levels) / len(levels)
        assert mean == pytest.approx(record.exits.rates(hazard.EXITS)[0], rel=0.2)
        return math.sqrt(sum((one - mean) ** 2 for one in levels) / len(levels)) / mean

    assert apart(lived(*[2.0] * 40)) < apart(NEW) / 3


@given(
    st.lists(st.tuples(st.floats(0, 100), st.booleans(), st.integers(0, 5), st.integers(1, 5)), max_size=20)
)
def test_whatever_happens_rates_are_positive_and_chances_are_chances(
    looks: list[tuple[float, bool, int, int]],
):
    record, now = NEW, 0.0
    for hours, held, lost, more in looks:
        now += hours
        record = record.after(now, held=held, lost=lost, of=lost + more if lost else 0)
    assert all(rate > 0 for rate in record.exits.rates(hazard.EXITS))
    assert record.losses(now, 6.0, random.Random(1)) > 0
    assert hazard.SHORTEST_REST <= record.rest <= hazard.LONGEST_REST
    assert record.age(now) >= 0
