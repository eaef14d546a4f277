"""Keys are handed out once, in time, and never to two workers."""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spottrain.controller import queue
from tests.unit import virtual_time

A, B = ("t", "a"), ("t", "b")


def run(body: object) -> None:
    asyncio.run(asyncio.wait_for(body, 5))  # type: ignore[arg-type]


async def nothing_comes(work: queue.Queue, seconds: float = 0.05) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work.take(), seconds)


def test_a_key_added_twice_is_handed_out_once() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        work.add(A)
        assert await work.take() == A
        work.done(A)
        await nothing_comes(work)

    run(body())


def test_a_busy_key_waits_until_its_pass_has_ended() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        assert await work.take() == A
        work.add(A)
        work.add(B)
        assert await work.take() == B
        await nothing_comes(work)
        work.done(A)
        assert await work.take() == A

    run(body())


def test_the_sooner_of_two_wishes_counts() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A, 60)
        work.add(A, 0.01)
        assert await work.take() == A
        work.done(A)
        assert len(work) == 0

    run(body())


def test_a_later_wish_does_not_put_off_a_sooner_one() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A, 0.01)
        work.add(A, 60)
        assert await work.take() == A

    run(body())


def test_only_keys_whose_time_has_come_are_due() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        work.add(B, 60)
        assert (work.due(), len(work)) == (1, 2)

    run(body())


def test_pauses_after_failures_double_and_success_resets_them() -> None:
    async def body() -> None:
        work = queue.Queue()
        pauses = [work.fail(A) for _ in range(5)]
        assert all(later > earlier * 0.99 for earlier, later in itertools.pairwise(pauses))
        assert pauses[0] <= queue.FIRST_PAUSE
        work.succeed(A)
        assert work.fail(A) <= queue.FIRST_PAUSE

    run(body())


def test_a_pause_is_never_shorter_than_the_server_wishes() -> None:
    async def body() -> None:
        work = queue.Queue()
        assert work.fail(A, at_least=5.0) == 5.0

    run(body())


def test_news_of_an_idle_key_is_handed_out_at_once_and_of_one_just_done_a_little_later() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.soon(A)
        assert await asyncio.wait_for(work.take(), 0.05) == A
        work.done(A)
        work.soon(A)
        await nothing_comes(work)
        assert await asyncio.wait_for(work.take(), queue.PACE) == A

    run(body())


def test_a_wish_goes_before_the_pace_of_news() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        await work.take()
        work.done(A)
        work.soon(A)
        work.add(A)
        assert await asyncio.wait_for(work.take(), 0.05) == A

    run(body())


def test_keys_in_a_hurry_are_handed_out_first() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.hurry(B, True)
        work.add(A)
        work.add(B)
        assert [await work.take(), await work.take()] == [B, A]
        work.done(A)
        work.done(B)
        work.hurry(B, False)
        work.add(A)
        work.add(B)
        assert [await work.take(), await work.take()] == [A, B]

    run(body())


def test_of_those_in_a_hurry_the_one_that_began_first_comes_first_though_it_was_due_later() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.hurry(A, True)
        work.hurry(B, True)
        work.hurry(A, True)
        work.add(B)
        work.add(A)
        assert [await work.take(), await work.take()] == [A, B]

    run(body())


def test_a_wish_of_a_busy_key_is_kept_whatever_its_hurry() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        await work.take()
        work.add(A)
        work.hurry(A, True)
        work.done(A)
        assert await work.take() == A
        work.done(A)
        assert len(work) == 0
        await nothing_comes(work)

    run(body())


async def wait_of(wanted: queue.Key, work: queue.Queue, takes: float) -> float:
    """Seconds until it is handed out by a worker whose passes take so long; others want another at once."""
    now = asyncio.get_running_loop().time
    begun = now()
    while (key := await work.take()) != wanted and now() < begun + 2 * queue.LONGEST_TURN:
        await asyncio.sleep(takes)
        work.done(key)
        work.add(key)
    return now() - begun


@given(gangs=st.integers(1, 30), takes=st.sampled_from([0.1, 0.3, 0.5]))
@settings(max_examples=30, deadline=None)
def test_a_fresh_loss_waits_its_longest_turn_at_most_however_many_gangs_are_being_replaced(
    gangs: int, takes: float
) -> None:
    """In virtual time. What was due before it may come before it."""

    async def body() -> None:
        work = queue.Queue()
        for number in range(gangs):
            work.hurry(("t", f"gang-{number}"), True)
            work.add(("t", f"gang-{number}"))
        work.add(A)
        waited = await wait_of(A, work, takes)
        assert waited <= max(queue.LONGEST_TURN, gangs * takes) + takes

    virtual_time.run(body())


def test_until_then_those_in_a_hurry_come_first() -> None:
    async def body() -> None:
        work = queue.Queue()
        work.add(A)
        await asyncio.sleep(queue.LONGEST_TURN - 1)
        work.hurry(B, True)
        work.add(B)
        assert [await work.take(), await work.take()] == [B, A]

    virtual_time.run(body())


@pytest.mark.parametrize(("first", "second"), [(A, B), (B, A)])
def test_of_those_that_have_waited_too_long_the_longest_comes_first(
    first: queue.Key, second: queue.Key
) -> None:
    async def body() -> None:
        work = queue.Queue()
        work.hurry(B, True)
        work.add(first)
        await asyncio.sleep(1)
        work.add(second)
        await asyncio.sleep(queue.LONGEST_TURN)
        assert [await work.take(), await work.take()] == [first, second]

    virtual_time.run(body())
