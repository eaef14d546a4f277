"""When a job with a deadline waits, and when it buys on-demand. Ticks of ten minutes."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bench.policy import replay, rules
from bench.policy.replay import HOUR, Task
from spottrain.policy import deadline, spells
from spottrain.policy.deadline import Moment, Place
from spottrain.policy.induction import Terms

TERMS = Terms(start=1.2, ratio=3.14)
WORK, SLACK = 48 * HOUR, 12 * HOUR
PLAN = deadline.solve(spells.Chances(), TERMS, work=WORK, slack=SLACK)


def moment(work: float, slack: float, place: Place, *, there: bool = False, age: int = 1) -> Moment:
    return Moment(work, work + slack, place, there, age)


# The safety net: slack, where the job is, whether spot is there; where it may be.
NET = [
    (2.2, Place.IDLE, False, (Place.IDLE, Place.ON_DEMAND)),
    (2.1, Place.IDLE, False, (Place.ON_DEMAND,)),
    (2.4, Place.IDLE, True, (Place.SPOT,)),
    (2.3, Place.IDLE, True, (Place.ON_DEMAND,)),
    (2.4, Place.ON_DEMAND, True, (Place.SPOT, Place.ON_DEMAND)),
    (2.3, Place.ON_DEMAND, True, (Place.ON_DEMAND,)),
    (2.1, Place.ON_DEMAND, False, (Place.ON_DEMAND,)),
    (0.0, Place.SPOT, True, (Place.SPOT,)),
    (-5.0, Place.IDLE, False, (Place.ON_DEMAND,)),
]


@pytest.mark.parametrize(("slack", "place", "there", "expected"), NET)
def test_the_safety_net_leaves_room_for_a_start_on_on_demand(
    slack: float, place: Place, there: bool, expected: tuple[Place, ...]
):
    assert deadline.choices(moment(100, slack, place, there=there), TERMS) == expected


@pytest.mark.parametrize(
    ("slack", "place", "late"),
    [(1.2, Place.IDLE, 0.0), (0.2, Place.IDLE, 1.0), (0.0, Place.SPOT, 0.0), (-2.0, Place.ON_DEMAND, 2.0)],
)
def test_a_deadline_that_cannot_be_met_is_known_at_once_and_by_how_much(
    slack: float, place: Place, late: float
):
    assert deadline.shortfall(moment(100, slack, place), TERMS) == pytest.approx(late)


def test_a_start_under_way_is_not_asked_for_twice():
    assert deadline.shortfall(Moment(100, 100.5, Place.ON_DEMAND, False, 1, starting=0.5), TERMS) == 0


def test_with_half_a_day_to_spare_it_waits_through_the_first_hours_and_not_through_the_night():
    """48 hours of work in 60: what went away ten minutes ago is waited for, what is away for hours less."""
    fresh, old = (moment(WORK, 4 * HOUR, Place.IDLE, age=age) for age in (1, 13))
    assert PLAN.least_slack(fresh) < PLAN.least_slack(old)
    assert PLAN.decide(moment(WORK, SLACK, Place.IDLE)) is Place.IDLE
    assert PLAN.decide(moment(WORK, 2 * HOUR, Place.IDLE)) is Place.ON_DEMAND


def test_on_on_demand_spot_that_just_came_is_not_trusted_as_what_has_stayed_for_hours():
    came, stayed = (moment(WORK, 5 * HOUR, Place.ON_DEMAND, there=True, age=age) for age in (1, 13))
    assert [PLAN.decide(one) for one in (came, stayed)] == [Place.ON_DEMAND, Place.SPOT]


def test_a_job_that_is_nearly_done_does_not_leave_on_demand():
    """A start costs more than the rest of the work."""
    assert PLAN.decide(moment(0.3, SLACK, Place.ON_DEMAND, there=True, age=1)) is Place.ON_DEMAND


def test_a_job_with_hardly_any_work_can_be_planned():
    plan = deadline.solve(spells.Chances(), TERMS, work=0.0, slack=0.0)
    assert plan.decide(moment(0.2, 5, Place.IDLE, there=True)) is Place.SPOT


def test_spot_that_never_returns_is_not_waited_for():
    never = spells.Chances(back=(0.0, 0.0, 0.0))
    plan = deadline.solve(never, TERMS, work=WORK, slack=SLACK)
    assert all(plan.decide(moment(work, SLACK, Place.IDLE)) is Place.ON_DEMAND for work in range(6, WORK, 6))


def test_of_a_month_of_work_the_least_slack_grows_as_the_work_does_beyond_three_days():
    month = 30 * 24 * HOUR
    plan = deadline.solve(spells.Chances(), TERMS, work=month, slack=10 * 24 * HOUR)
    three_days, whole = (plan.least_slack(moment(work, 0, Place.IDLE)) for work in (month / 10, month))
    assert whole == pytest.approx(10 * three_days)
    assert plan.least_slack(moment(WORK, 0, Place.IDLE)) == pytest.approx(
        PLAN.least_slack(moment(WORK, 0, Place.IDLE)), rel=0.02
    )


@settings(deadline=None, max_examples=25)
@given(
    there=st.lists(st.booleans(), min_size=1, max_size=60),
    place=st.sampled_from([Place.IDLE, Place.ON_DEMAND]),
    work=st.floats(1, SLACK),
    age=st.integers(1, 30),
    slacks=st.lists(st.floats(0, SLACK), min_size=2, max_size=8),
)
def test_more_slack_never_makes_it_less_willing_to_wait(
    there: list[bool], place: Place, work: float, age: int, slacks: list[float]
):
    plan = deadline.solve(spells.learn(*spells.of(there)), TERMS, work=SLACK, slack=SLACK)
    for spot in (False, True):
        buys = [
            plan.decide(moment(work, slack, place, there=spot, age=age)) is Place.ON_DEMAND
            for slack in sorted(slacks)
        ]
        assert buys == sorted(buys, reverse=True)


@settings(deadline=None)
@given(
    runs=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    begins=st.booleans(),
    work=st.floats(1, 80),
    extra=st.floats(0, 60),
    start=st.floats(0, 4),
    ratio=st.floats(1, 10),
    rule=st.sampled_from(["plan", "uniform", "gepa", "wait"]),
)
def test_a_feasible_deadline_is_never_missed(  # noqa: PLR0917
    runs: list[int], begins: bool, work: float, extra: float, start: float, ratio: float, rule: str
):
    """Whatever spot does, and whichever rule decides above the safety net."""
    terms = Terms(start, ratio)
    task = Task(work, work + start + extra, terms)
    there = [begins == (index % 2 == 0) for index, run in enumerate(runs) for _ in range(run)]
    there += [False] * (math.ceil(task.left) + 1)
    plan = deadline.solve(spells.learn(*spells.of(there[:50])), terms, work=work, slack=extra + start)
    decisions: dict[str, replay.Decide] = {
        "plan": lambda _tick, at: plan.decide(at),
        "uniform": rules.Uniform(terms, task.work, task.left),
        "gepa": rules.Gepa(terms),
        "wait": rules.Wait(terms),
    }
    assert replay.replay(replay.Seen(there), 0, task, decisions[rule]).took <= task.left + 1e-6
