"""What stands, who is blind, when to try again: over moments that are given."""

import dataclasses

import pytest

from spottrain.agent import cluster, duty, health, notice, standing, watch

END = notice.Kind.END
ONE = notice.Notice(END, "s", "Preempted", "e1")


def test_one_odd_answer_withdraws_no_notice_and_five_seconds_of_them_do():
    seen = standing.Standing()
    seen.take("s", (ONE,), 10.0)
    seen.take("s", (), 11.0)
    seen.take("s", (), 14.9)
    assert seen.of(END) == (ONE,)

    seen.take("s", (), 15.0)
    assert seen.of(END) == ()


def test_a_source_that_never_errs_withdraws_at_once_and_only_what_it_no_longer_says():
    other = dataclasses.replace(ONE, event="e2")
    seen = standing.Standing()
    seen.take("s", (ONE, other), 10.0, 0.0)
    seen.take("s", (other,), 10.0, 0.0)

    assert seen.of(END) == (other,)


def test_another_sources_answers_withdraw_nothing():
    seen = standing.Standing()
    seen.take("s", (ONE,), 10.0)
    seen.take("other", (), 99.0)

    assert seen.of(END) == (ONE,)


def test_a_notice_of_an_earlier_life_stands_until_its_source_says_otherwise():
    seen = standing.Standing()
    seen.adopt(ONE, 10.0)
    seen.take("s", (), 12.0)
    assert seen.of(END) == (ONE,)

    seen.take("s", (), 15.0)
    assert seen.of(END) == ()


def test_half_a_minute_of_faults_is_blindness_and_one_answer_ends_it():
    new = health.Health()
    assert (new.armed(0), new.blind(0)) == (False, False)

    failing = new.after_fault(0.0, "first").after_fault(20.0, "second")
    assert (failing.blind(29.9), failing.blind(30.0), failing.fault) == (False, True, "second")

    heard = failing.after_success(31.0)
    assert (heard.armed(31.0), heard.blind(99.0)) == (True, False)


def test_a_source_that_fails_for_a_moment_is_still_armed():
    failing = health.Health().after_success(0.0).after_fault(1.0, "x")

    assert failing.armed(30.9)
    assert not failing.armed(31.0)


def test_pauses_double_after_faults_up_to_four_seconds():
    assert [watch.pause(1.0, faults) for faults in (0, 1, 2, 3, 5, 99)] == [1.0, 0.25, 0.5, 1.0, 4.0, 4.0]


def test_a_duty_is_done_once_for_each_thing_that_is_wanted():
    done: list[str] = []
    one = duty.Duty("x", done.append)
    for wanted, now in (("a", 0.0), ("a", 9.0), ("b", 9.1), ("a", 9.2)):
        one.see_to(wanted, now)

    assert done == ["a", "b", "a"]


def test_a_duty_is_done_anew_after_a_while_where_that_is_asked():
    done: list[float] = []
    one = duty.Duty("x", done.append)
    for now in (0.0, 9.9, 10.0, 19.0):
        one.see_to(1.0, now, again=10.0)

    assert len(done) == 2


def test_a_duty_that_fails_is_tried_again_with_pauses_and_logged_once(caplog: pytest.LogCaptureFixture):
    moments = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.75, 3.75]
    tries: list[int] = []

    def fail(_: str) -> None:
        tries[-1] += 1
        raise cluster.ApiError(404, "no such node")

    one = duty.Duty("marking", fail)
    for now in moments:
        tries.append(0)
        one.see_to("a", now)

    assert tries == [1, 0, 1, 0, 1, 0, 1, 1]
    assert caplog.text.count("no such node") == 1
    assert not one.is_done("a")
