import pytest

from spottrain.train.pace import Pacer


def pacer(fixed: float | None = None, nodes: int = 1) -> Pacer:
    made = Pacer(fixed=fixed, nodes=nodes, exposure=0.0, interruptions=0)
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
    assert not Pacer(fixed=0, nodes=1, exposure=0.0, interruptions=0).due(1e9)


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
