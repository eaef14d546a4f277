"""When the demo fails, and in which words."""

import dataclasses

from demo.facts import Run
from demo.verdict import shortcomings
from tests.unit.demo import stories
from tests.unit.demo.stories import START

UNBROKEN = stories.unbroken()


def but(**changes: object) -> Run:
    """The run as it should be, with something changed."""
    return dataclasses.replace(stories.as_it_should_be(), **changes)  # type: ignore[arg-type]


def test_nothing_is_wrong_when_all_is_as_it_should_be() -> None:
    assert shortcomings(stories.as_it_should_be(), UNBROKEN) == []


def test_another_loss_in_the_last_bit_is_told_with_both() -> None:
    assert shortcomings(stories.as_it_should_be(), stories.unbroken("0.14450000000000001")) == [
        "the final loss is 0.1445, in the unbroken run it is 0.14450000000000001"
    ]


def test_a_run_that_names_no_final_loss_is_not_equal_to_anything() -> None:
    assert shortcomings(stories.as_it_should_be(), stories.unbroken("")) == [
        "the workers of digits-unbroken named no final loss, or not the same one"
    ]


def test_a_job_that_did_not_complete_is_told_with_the_operators_words() -> None:
    run = but(phase="Failed", message="4 failures, 3 allowed")
    assert shortcomings(run, UNBROKEN) == ["digits did not complete, it is Failed: 4 failures, 3 allowed"]


def test_runs_that_never_began_are_told_so() -> None:
    nothing = Run("digits", 3, 5.0)
    assert shortcomings(nothing, dataclasses.replace(nothing, name="digits-unbroken")) == [
        "digits-unbroken did not complete, it is without any status",
        "digits did not complete, it is without any status",
        "digits took 0 attempts, at least 3 were expected: a fault struck nobody",
    ]


def test_a_step_lost_to_the_notice_is_one_too_many() -> None:
    told = stories.as_it_should_be()
    first = stories.attempt(1, range(72), began=START, saves=(41, 70), cause="Initial")
    run = but(attempts=(first, *told.attempts[1:]))
    assert shortcomings(run, UNBROKEN) == ["the notice of spot-1 cost 1 steps, none was allowed"]


def test_a_kill_may_cost_one_interval_and_no_step_more() -> None:
    told = stories.as_it_should_be()

    def killed_at(step: int) -> Run:
        second = stories.attempt(2, range(71, step + 1), began=START + 30, saves=(108,))
        return but(attempts=(told.attempts[0], second, told.attempts[2]))

    assert shortcomings(killed_at(158), UNBROKEN) == []
    assert shortcomings(killed_at(159), UNBROKEN) == [
        "the kill of spot-2 cost 51 steps, more than the 50 of one checkpoint interval"
    ]


def test_a_loss_of_which_no_log_tells_fails_the_demo() -> None:
    told = stories.as_it_should_be()
    mute = dataclasses.replace(told.attempts[2], members=())
    silent = dataclasses.replace(told.attempts[1], members=())
    assert "what the kill of spot-2 cost is unknown: no worker's log says where the next attempt resumed" in (
        shortcomings(but(attempts=(*told.attempts[:2], mute)), UNBROKEN)
    )
    assert "what the kill of spot-2 cost is unknown: no worker's log says the last step before it" in (
        shortcomings(but(attempts=(told.attempts[0], silent, told.attempts[2])), UNBROKEN)
    )


def test_members_that_resumed_at_different_steps_fail_the_demo() -> None:
    told = stories.as_it_should_be()
    other = stories.attempt(2, range(42, 136), began=START + 30, saves=(108,))
    mixed = dataclasses.replace(told.attempts[1], members=(told.attempts[1].members[0], other.members[1]))
    found = shortcomings(but(attempts=(told.attempts[0], mixed, told.attempts[2])), UNBROKEN)
    assert "the members of attempt 2 resumed at different steps" in found
