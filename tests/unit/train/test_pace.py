import math

import pytest

from spottrain.train.pace import History, Outlook, Pacer


def pacer(
    fixed: float | None = None, nodes: int = 1, grace: float = math.inf, history: History | None = None
) -> Pacer:
    made = Pacer(fixed=fixed, nodes=nodes, grace=grace, history=history)
    made.begin(0.0)
    return made


def test_a_fixed_interval_counts_from_the_last_saves_beginning():
    paced = pacer(fixed=10)
    assert [paced.due(now) for now in (9.9, 10.0)] == [False, True]
    paced.save_begun(12.0)
    assert [paced.due(now) for now in (21.9, 22.0)] == [False, True]


def test_zero_means_after_every_step():
    paced = pacer(fixed=0)
    paced.save_begun(5.0)
    assert paced.due(5.0)


def test_nothing_is_due_before_training_begins():
    assert not Pacer(fixed=0, nodes=1).due(1e9)


def test_automatic_follows_the_measured_cost():
    paced = pacer()
    paced.save_done(cost=4.0, whole=4.0)
    four = paced.interval(0.0)
    paced.save_done(cost=1.0, whole=1.0)
    assert four == pytest.approx(2 * paced.interval(0.0))
    assert paced.interval(0.0) == pytest.approx((2 * 1 * 8 * 3600 / 0.5) ** 0.5)


def test_automatic_leaves_time_for_the_upload():
    paced = pacer()
    paced.save_done(cost=0.1, whole=600.0)
    assert paced.interval(0.0) == 1200.0


def test_more_nodes_are_interrupted_more_often():
    assert pacer(nodes=4).interval(0.0) == pytest.approx(pacer().interval(0.0) / 2)


def test_a_failed_save_is_repeated_soon():
    paced = pacer(fixed=3600)
    paced.save_begun(0.0)
    paced.save_failed(100.0)
    assert [paced.due(now) for now in (159.0, 160.0)] == [False, True]


@pytest.mark.parametrize(("seconds", "gap"), [(0.2, 1), (0.05, 1), (0.01, 5), (0.001, 50), (0.0, 5000)])
def test_ranks_confer_twenty_times_a_second_at_most(seconds: float, gap: int):
    paced = pacer()
    for step in range(1, 11):
        paced.step_done(step * seconds)
    assert paced.gap() == pytest.approx(gap, abs=1 if seconds else 0)


def test_the_longest_step_counts_evaluations_too_and_is_forgotten_after_a_hundred():
    paced = pacer()
    for now in (1.0, 2.0, 32.0, 33.0):
        paced.step_done(now)
    assert paced.longest_step() == 30.0
    for step in range(100):
        paced.step_done(34.0 + step)
    assert paced.longest_step() == 1.0


def test_the_first_interval_of_a_life_rests_on_what_its_job_has_learnt():
    history = History(exposure=3600.0, interruptions=3, announced=3, blocked=4.0, whole=9.0)
    mean = (0.5 * 8 * 3600 + 3600.0) / 3.5
    assert pacer(history=history).interval(0.0) == pytest.approx(math.sqrt(2 * 4.0 * mean / (1 - 4 / 5)))


def test_what_a_stop_takes_is_a_usual_step_and_a_save():
    paced = pacer(grace=25.0)
    assert paced.outlook() is None, "nothing was measured"
    for now in (0.5, 1.0, 31.0, 31.5, 32.0):
        paced.step_done(now)
    paced.save_done(cost=2.0, whole=20.0)
    assert paced.outlook() == Outlook(20.5, 25.0)
    assert paced.upload() == 18.0
    assert paced.rate() == pytest.approx(5 / 32)


@pytest.mark.parametrize(("whole", "fits"), [(24.0, True), (24.1, False)])
def test_a_second_of_the_grace_is_left_to_the_end_of_the_process(whole: float, fits: bool):
    paced = pacer(grace=25.0)
    paced.save_done(cost=1.0, whole=whole)
    outlook = paced.outlook()
    assert outlook is not None
    assert outlook.fits == fits


def test_a_save_that_cannot_fit_the_grace_comes_as_often_as_without_notices():
    history = History(exposure=7 * 3600.0, interruptions=8, announced=8)
    fitting, late = pacer(grace=30.0, history=history), pacer(grace=30.0, history=history)
    fitting.save_done(cost=2.0, whole=28.0)
    late.save_done(cost=2.0, whole=30.0)
    assert late.interval(0.0) == pytest.approx(fitting.interval(0.0) * math.sqrt(1 - 9 / 10))


def test_a_fixed_interval_stays_what_it_is_though_no_save_fits_the_grace():
    paced = pacer(fixed=600, grace=10.0)
    paced.save_done(cost=2.0, whole=30.0)
    assert paced.interval(0.0) == 600
