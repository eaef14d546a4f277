"""What happens when: from the seed alone, and within its bounds."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaos import schedule
from chaos.faults import ALONE, HOLDS, NODE_KINDS, WEIGHTS, Fault, Kind

NODES = ("od-1", "od-2", "spot-1", "spot-2", "spot-3")
SEEDS = st.integers(min_value=0, max_value=1_000_000)


@settings(deadline=None)
@given(SEEDS)
def test_the_same_seed_gives_the_same_faults(seed: int) -> None:
    assert schedule.schedule(seed, 900, NODES) == schedule.schedule(seed, 900, NODES)


def test_another_seed_gives_others() -> None:
    assert schedule.schedule(1, 900, NODES) != schedule.schedule(2, 900, NODES)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    """So that what a long run found early can be had again soon."""
    short, long = schedule.schedule(7, 180, NODES), schedule.schedule(7, 900, NODES)
    assert short == long[: len(short)]
    assert short


@settings(deadline=None)
@given(SEEDS)
def test_never_more_than_two_nodes_are_away_and_each_has_time_to_recover(seed: int) -> None:
    taken = [one for one in schedule.schedule(seed, 900, NODES) if one.kind in NODE_KINDS]
    for moment in {one.at for one in taken}:
        away = [one.node for one in taken if one.at <= moment <= one.end + schedule.RECOVERY]
        assert len(away) <= schedule.NODES_AWAY
        assert len(set(away)) == len(away)


@settings(deadline=None)
@given(SEEDS)
def test_nothing_begins_or_ends_during_an_outage_of_what_all_depend_on(seed: int) -> None:
    faults = schedule.schedule(seed, 900, NODES)
    for outage in (one for one in faults if one.kind in ALONE):
        moments = [moment for one in faults if one is not outage for moment in (one.at, one.end)]
        assert not [moment for moment in moments if outage.at <= moment <= outage.end]


@settings(deadline=None)
@example(200)  # a moment right before the end was rounded up to it
@given(SEEDS)
def test_faults_are_numbered_begin_in_time_and_last_as_long_as_their_kind_may(seed: int) -> None:
    faults = schedule.schedule(seed, 300, NODES)
    assert [one.number for one in faults] == list(range(1, len(faults) + 1))
    for one in faults:
        assert schedule.FIRST <= one.at < 300
        assert any(low <= one.hold <= high for low, high in HOLDS.get(one.kind, ((0, 0),)))
        assert (one.node in NODES) == (one.kind in NODE_KINDS)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_fault_comes_up(kind: Kind) -> None:
    assert WEIGHTS[kind] > 0
    assert any(one.kind is kind for seed in range(5) for one in schedule.schedule(seed, 900, NODES))


def test_a_full_run_has_a_fault_every_quarter_of_a_minute_or_so() -> None:
    counts = [len(schedule.schedule(seed, 900, NODES)) for seed in range(20)]
    assert min(counts) >= 45
    assert max(counts) <= 90


def test_acts_are_in_order_and_what_is_over_at_once_has_no_end() -> None:
    kill, delete = Fault(1, 10.0, Kind.KILL, 5.0, "spot-1"), Fault(2, 12.0, Kind.DELETE, pick=0.5)
    found = [(act.at, act.fault.number, act.begins) for act in schedule.acts((kill, delete))]
    assert found == [(10.0, 1, True), (12.0, 2, True), (15.0, 1, False)]
