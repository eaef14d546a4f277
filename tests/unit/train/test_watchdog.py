"""On real time, in tenths of seconds."""

import threading
import time

from spottrain.train import watchdog
from spottrain.train.clock import SystemClock


class Ended:
    """What the watchdog did."""

    def __init__(self) -> None:
        self.why = ""
        self.left = 0.0
        self.event = threading.Event()

    def __call__(self, why: str, left: float) -> None:
        self.why, self.left = why, left
        self.event.set()


def watching(*, grace: float, alone: bool, limit: float = 0.2) -> tuple[watchdog.Watchdog, Ended]:
    ended = Ended()
    clock = SystemClock()
    made = watchdog.Watchdog(clock, grace=grace, alone=lambda: alone, limit=lambda: limit, give_up=ended)
    made.start()
    return made, ended


def test_b4_without_an_agreement_the_process_ends_with_the_grace_still_ahead():
    made, ended = watching(grace=30, alone=False)
    made.stop_asked(time.monotonic())
    assert ended.event.wait(2)
    assert ended.why == "the other ranks do not answer"
    assert 27 < ended.left < 29


def test_with_an_agreement_only_the_grace_counts():
    made, ended = watching(grace=1.5, alone=False)
    made.stop_asked(time.monotonic())
    made.stop_agreed()
    assert not ended.event.wait(0.3)
    assert ended.event.wait(2)
    assert ended.why == "the grace is over"


def test_alone_there_is_nobody_to_agree_with():
    made, ended = watching(grace=1.5, alone=True)
    made.stop_asked(time.monotonic())
    assert not ended.event.wait(0.3)
    assert ended.event.wait(2)
    assert ended.why == "the grace is over"


def test_a_stop_that_another_rank_was_told_starts_the_grace_too():
    made, ended = watching(grace=1.2, alone=False)
    made.stop_agreed()
    assert ended.event.wait(2)


def test_a_session_that_ended_well_is_left_alone():
    made, ended = watching(grace=1.2, alone=False)
    made.stop_asked(time.monotonic())
    made.dismiss()
    assert not ended.event.wait(0.5)


def test_the_agreement_may_take_three_steps_and_at_least_five_seconds():
    assert watchdog.agreement_limit(0.0) == 5.0
    assert watchdog.agreement_limit(1.0) == 5.0
    assert watchdog.agreement_limit(20.0) == 60.0


def test_what_is_left_of_the_grace_counts_from_the_stop():
    made, _ = watching(grace=30, alone=True)
    assert made.left() == 29.0
    made.stop_asked(time.monotonic() - 10)
    assert 18.5 < made.left() <= 19.0
    made.stop_asked(time.monotonic())
    assert made.left() <= 19.0, "the first one counts"
    made.dismiss()
