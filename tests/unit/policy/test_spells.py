"""What is learnt of how long capacity stays, and stays away."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from spottrain.policy import spells
from spottrain.policy.spells import Spell


def test_before_anything_is_seen_the_prior_holds():
    learnt = spells.learn([], [])
    assert learnt.loss == pytest.approx(spells.LOSS_PRIOR)
    assert learnt.back == pytest.approx(spells.RETURN_PRIOR)


@pytest.mark.parametrize(("ticks", "age"), [(1, 0), (3, 0), (4, 1), (12, 1), (13, 2), (999, 2)])
def test_an_age_ends_at_half_an_hour_and_at_two_hours(ticks: int, age: int):
    assert spells.age_class(ticks) == age


def test_what_is_seen_tick_by_tick_becomes_spells_of_which_the_last_goes_on():
    seen = [True, True, False, True, True, True]
    assert spells.of(seen) == ([Spell(2), Spell(3, ended=False)], [Spell(1)])
    assert spells.of([]) == ([], [])


def test_a_spell_counts_in_each_age_that_it_went_through_and_ends_in_one():
    """20 ticks are 3 young ones, 9 of middle age and 8 old ones, the last of which was the end."""
    young, middle, old = spells.LOSS_PRIOR
    expected = (12 * young / 15, 12 * middle / 21, (1 + 12 * old) / 20)
    assert spells.learn([Spell(20)], []).loss == pytest.approx(expected)


def test_of_a_spell_that_goes_on_the_last_tick_has_not_been_survived_yet():
    young, middle, old = spells.RETURN_PRIOR
    assert spells.learn([], [Spell(3, ended=False)]).back == pytest.approx((12 * young / 14, middle, old))


@given(st.lists(st.booleans(), max_size=400))
def test_chances_are_chances_whatever_was_seen(seen: list[bool]):
    chances = spells.learn(*spells.of(seen))
    assert all(0 < chance < 1 for chance in (*chances.loss, *chances.back))
