"""Plans are solved beside the passes, once for as long as they will do."""

import asyncio
import collections.abc as cabc
import contextlib

import pytest

from spottrain.controller import deadlines
from spottrain.plan import outlook
from spottrain.policy import spells
from spottrain.policy.induction import Terms
from tests.unit import virtual_time

KEY = ("t", "tr")
ASKED = outlook.Question(spells.Chances(), Terms(start=1.2, ratio=3.0), work=12, slack=12)


async def solved(keeper: deadlines.Deadlines, told: asyncio.Queue[tuple[str, str]], work: float) -> None:
    """Ask, and wait for the answer."""
    question = outlook.Question(ASKED.chances, ASKED.terms, work=work, slack=ASKED.slack)
    keeper.ask(KEY, question)
    assert await told.get() == KEY


@contextlib.asynccontextmanager
async def at_work() -> cabc.AsyncIterator[tuple[deadlines.Deadlines, asyncio.Queue[tuple[str, str]]]]:
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    keeper = deadlines.Deadlines(told.put_nowait)
    work = asyncio.create_task(keeper.run())
    yield keeper, told
    work.cancel()


def test_a_plan_is_there_when_it_is_solved_and_gone_with_its_job() -> None:
    async def body() -> None:
        async with at_work() as (keeper, told):
            assert keeper.get(KEY) is None
            await solved(keeper, told, ASKED.work)
            plan = keeper.get(KEY)
            assert plan is not None
            assert plan.terms == ASKED.terms
            keeper.forget(KEY)
            assert keeper.get(KEY) is None

    asyncio.run(asyncio.wait_for(body(), 20))


def test_five_hundred_jobs_are_all_answered() -> None:
    async def body() -> None:
        async with at_work() as (keeper, told):
            for number in range(500):
                keeper.ask(("t", str(number)), ASKED)
            assert {await told.get() for _ in range(500)} == {("t", str(number)) for number in range(500)}

    asyncio.run(asyncio.wait_for(body(), 60))


@pytest.mark.parametrize(
    ("work", "slack", "start", "answered"),
    [
        (12, 12, 1.2, True),
        (3, 2, 1.3, True),
        (15, 12, 1.2, False),
        (12, 15, 1.2, False),
        (12, 12, 1.5, False),
    ],
)
def test_a_plan_does_for_what_is_hardly_more_and_on_nearly_the_same_terms(
    work: float, slack: float, start: float, answered: bool
) -> None:
    other = outlook.Question(ASKED.chances, Terms(start, 3.0), work=work, slack=slack)
    assert ASKED.answers(other) is answered


def test_after_twelve_hours_it_is_solved_anew() -> None:
    async def body() -> None:
        keeper = deadlines.Deadlines(lambda _: None)
        keeper.keep(KEY, ASKED, ASKED.solve())
        keeper.ask(KEY, ASKED)
        assert not keeper.waiting
        await asyncio.sleep(deadlines.KEPT)
        keeper.ask(KEY, ASKED)
        assert keeper.waiting == {KEY}

    virtual_time.run(body())
