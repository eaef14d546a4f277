import pytest

from spottrain import errors
from spottrain.train.agreement import Agreement


def heard(*ranks: Agreement) -> Agreement:
    return Agreement.heard([max(column) for column in zip(*(rank.values() for rank in ranks), strict=True)])


def at(step: int, **said: int) -> Agreement:
    return Agreement(step, -step, **said)


def test_one_rank_that_is_told_to_stop_stops_all():
    assert heard(at(7), at(7, stop=2)).stop == 2


def test_rank_zero_decides_on_saves():
    said = heard(at(7, save=1, nonce=99, gap=3), at(7))
    assert (said.save, said.nonce, said.gap, said.stop, said.stale) == (1, 99, 3, 0, 0)


def test_ranks_at_different_steps_are_told_so():
    with pytest.raises(errors.SpottrainError, match=r"different steps \(7 and 9\)"):
        heard(at(7), at(9), at(8))


def test_step_zero_is_a_step():
    assert heard(at(0), at(0)).step == 0
