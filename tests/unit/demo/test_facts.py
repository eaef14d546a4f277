"""From log lines to steps lost and seconds, also when lines are missing."""

import dataclasses

import pytest

from demo.facts import Attempt, Member
from tests.unit.demo import stories
from tests.unit.demo.stories import START


def test_what_was_saved_under_notice_is_not_lost() -> None:
    assert stories.as_it_should_be().losses()[0].lost_steps == 0


def test_the_kill_costs_the_steps_since_the_last_save() -> None:
    loss = stories.as_it_should_be().losses()[1]
    assert (loss.last_step, loss.resumed_at, loss.lost_steps) == (135, 109, 27)


def test_an_intervals_steps_are_what_the_struck_attempt_did_in_its_seconds() -> None:
    assert [loss.interval_steps for loss in stories.as_it_should_be().losses()] == [50, 50]


def test_an_attempt_of_one_step_has_no_speed() -> None:
    assert stories.attempt(1, range(1), began=START).steps_in(5.0) is None


def test_seconds_count_from_the_fault_to_all_running_and_to_the_first_step() -> None:
    notice, kill = stories.as_it_should_be().losses()
    assert (notice.seconds_to_running, notice.seconds_to_first_step) == (13.0, 23.0)
    assert (kill.seconds_to_running, kill.seconds_to_first_step) == (20.0, 30.0)


def test_an_attempt_that_never_trained_is_passed_over() -> None:
    """A worker was placed on the dead node, and a further attempt was needed."""
    told = stories.as_it_should_be()
    first, second, third = told.attempts
    stillborn = Attempt(3, (Member(0, 3, "digits-0-3", running=START + 50),))
    run = dataclasses.replace(told, attempts=(first, second, stillborn, dataclasses.replace(third, number=4)))
    loss = run.losses()[1]
    assert (loss.lost_steps, loss.seconds_to_running, loss.seconds_to_first_step) == (27, 20.0, 30.0)
    assert run.unplanned() == (run.attempts[3],)


def test_nothing_is_known_of_a_loss_after_which_nobody_spoke() -> None:
    told = stories.as_it_should_be()
    loss = dataclasses.replace(told, attempts=told.attempts[:2]).losses()[1]
    unknown = (loss.resumed_at, loss.lost_steps, loss.seconds_to_running, loss.seconds_to_first_step)
    assert unknown == (None, None, None, None)


def test_where_the_librarys_line_is_missing_the_first_step_says_where_it_resumed() -> None:
    member = stories.attempt(2, range(71, 80), began=START).members[0]
    silent = dataclasses.replace(member, said=member.said[1:])
    assert (member.resumed_at, silent.resumed_at) == (71, 71)


def test_a_member_without_any_line_resumed_nowhere() -> None:
    member = Member(1, 2, "digits-1-2")
    assert (member.resumed_at, member.last_step, member.final_loss) == (None, None, None)


def test_members_that_resumed_at_different_steps_do_not_agree() -> None:
    one = stories.attempt(2, range(71, 80), began=START)
    other = stories.attempt(2, range(41, 80), began=START)
    assert one.agrees
    assert not Attempt(2, (one.members[0], other.members[1])).agrees


def test_a_save_is_passed_only_when_every_member_is_past_it() -> None:
    one = stories.attempt(1, range(50), began=START, saves=(41,))
    slow = dataclasses.replace(
        one.members[2], said=tuple(line for line in one.members[2].said if line.time < START + 4.0)
    )
    held_up = Attempt(1, (*one.members[:2], slow))
    save = one.passed_save(3)
    assert save is not None
    assert save.step == 41
    assert held_up.passed_save(3) is None


@pytest.mark.parametrize(("beyond", "passed"), [(7, True), (8, False)])
def test_a_save_is_passed_by_more_steps_than_are_asked_for(beyond: int, *, passed: bool) -> None:
    one = stories.attempt(1, range(50), began=START, saves=(41,))
    assert (one.passed_save(3, beyond=beyond) is not None) is passed


def test_no_save_is_passed_while_a_member_has_not_spoken() -> None:
    one = stories.attempt(1, range(50), began=START, saves=(41,))
    assert Attempt(1, one.members[:2]).passed_save(3) is None


def test_a_gang_runs_when_its_last_member_does_and_not_before() -> None:
    one = stories.attempt(1, range(5), began=START)
    late = dataclasses.replace(one.members[1], running=START + 3)
    assert Attempt(1, (one.members[0], late, one.members[2])).running(3) == START + 3
    assert Attempt(1, (one.members[0], late)).running(3) is None


def test_a_final_loss_that_two_members_tell_differently_is_none() -> None:
    told = stories.unbroken("0.1445")
    other = stories.unbroken("0.1446").attempts[0].members[0]
    mixed = Attempt(1, (*told.attempts[0].members, other))
    assert told.final_loss == "0.1445"
    assert dataclasses.replace(told, attempts=(mixed,)).final_loss is None
