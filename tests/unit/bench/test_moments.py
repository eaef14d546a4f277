"""From what was seen of a gang to the parts of the time in which it did not train."""

import dataclasses
from typing import Any

import pytest

from bench import moments
from bench.moments import Moments
from demo import lines
from demo.facts import Attempt, Fault, Member, Run

DIED = 1_795_966_400.0
FAULT = Fault("kill", 1, "spot-3", 3, 40, DIED)


def member(index: int, *, late: float = 0.0, number: int = 2) -> Member:
    """A worker of the attempt after the death: all it does, it does `late` seconds later than the first."""
    began = DIED + late
    said = (
        f"event=loaded time={began + 12.0:.3f}",
        f"spottrain: resumed event=restored next_step=36 time={DIED + 53.0:.3f}",
        f"step=36 loss=0.5 time={DIED + 54.5 + index / 100:.3f} rank={index}",
        f"step=37 loss=0.5 time={DIED + 54.6 + index / 100:.3f} rank={index}",
    )
    return Member(
        index=index,
        attempt=number,
        pod=f"cold-{index}-{number}",
        made=began + 2.0,
        bound=began + 2.5,
        running=began + 4.0,
        said=lines.parse_all(said),
    )


def members(*, number: int = 2) -> tuple[Member, ...]:
    """Three that could start at once, and the successor of the lost one, which came 36 s later."""
    return (*(member(index, number=number) for index in range(3)), member(3, late=36.0, number=number))


def run(*attempts: Attempt) -> Run:
    """The gang of four that lost its rank 3."""
    first = Attempt(1, tuple(Member(index, 1, f"cold-{index}-1") for index in range(4)), recorded=DIED - 40)
    return Run("cold", 4, 5.0, attempts=(first, *attempts), faults=(FAULT,))


def again(**changes: Any) -> Attempt:
    """The attempt after the death, which trained again."""
    return dataclasses.replace(Attempt(2, members(), recorded=DIED + 1.5), **changes)


def seen(whole: Run) -> Moments:
    found = moments.after(whole, FAULT)
    assert found is not None
    return found


def test_every_part_ends_with_the_last_worker_and_the_whole_with_the_first_new_step() -> None:
    found = seen(run(again()))
    assert found.rounded() == {
        "noticed": 1.5,
        "made": 38.0,
        "bound": 38.5,
        "running": 40.0,
        "loaded": 48.0,
        "stepped": 54.5,
    }
    assert found.parts == pytest.approx({"noticing": 1.5, "placing": 37.0, "starting": 9.5, "restoring": 6.5})


def test_the_parts_add_up_to_the_whole() -> None:
    found = seen(run(again()))
    assert sum(found.parts.values()) == pytest.approx(found.stepped)


def test_an_attempt_that_never_trained_counts_as_placing() -> None:
    """The death is noticed with the first attempt after it; the pods that count are those that trained."""
    stillborn = Attempt(2, (Member(0, 2, "cold-0-2", made=DIED + 2),), recorded=DIED + 1.5)
    found = seen(run(stillborn, Attempt(3, members(number=3), recorded=DIED + 30.0)))
    assert found.parts == pytest.approx({"noticing": 1.5, "placing": 37.0, "starting": 9.5, "restoring": 6.5})


def test_an_attempt_before_the_death_is_not_what_followed_it() -> None:
    later = dataclasses.replace(FAULT, attempt=2)
    assert moments.after(run(again()), later) is None


def lacking(name: str) -> Member:
    """The last worker, of which one moment is unknown."""
    unknown: dict[str, Any] = {name: None}
    return dataclasses.replace(member(3), **unknown)


@pytest.mark.parametrize(
    "attempt",
    [
        again(recorded=None),
        again(members=members()[:3]),
        *(again(members=(*members()[:3], lacking(name))) for name in ("made", "bound", "running")),
        again(members=(*members()[:3], dataclasses.replace(member(3), said=member(3).said[1:]))),
        again(members=(*members()[:3], dataclasses.replace(member(3), said=member(3).said[:2]))),
    ],
    ids=["no intent", "a pod less", "no pod", "no node", "no container", "no libraries", "no step"],
)
def test_nothing_is_told_while_something_of_the_last_worker_is_unknown(attempt: Attempt) -> None:
    assert moments.after(run(attempt), FAULT) is None


def round_of(seconds: float) -> Moments:
    return Moments(1, 2, 3, 4, 5, stepped=seconds)


def test_the_typical_round_is_the_one_in_the_middle_and_of_two_the_quicker() -> None:
    assert moments.typical([round_of(60), round_of(40), round_of(50)]) == round_of(50)
    assert moments.typical([round_of(60), round_of(40)]) == round_of(40)
