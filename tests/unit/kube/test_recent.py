"""Memories that forget, and writes that wait for others."""

import asyncio

from spottrain.kube import recent
from tests.unit import virtual_time


def test_what_was_set_longest_ago_is_forgotten_first() -> None:
    memory: recent.Recent[int] = recent.Recent(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        memory.set(key, value)
    assert [memory.get(key) for key in ("a", "b", "c")] == [3, None, 4]
    memory.forget("a")
    assert "a" not in memory


def test_wishes_for_one_key_are_granted_once_together_after_the_first_has_waited() -> None:
    async def body() -> None:
        pace = recent.Pace(5)
        assert pace.wait("a") == 5
        await asyncio.sleep(3)
        assert (pace.wait("a"), pace.wait("b")) == (2, 5)
        await asyncio.sleep(2)
        assert (pace.wait("a"), pace.wait("b")) == (0, 3)
        assert pace.wait("a") == 0, "it may have failed"
        pace.done("a")
        assert pace.wait("a") == 5, "the next wish waits anew"

    virtual_time.run(body())


def test_nothing_waits_once_it_was_done_for_another_reason() -> None:
    async def body() -> None:
        pace = recent.Pace(5)
        pace.wait("a")
        await asyncio.sleep(4)
        pace.done("a")
        assert pace.wait("a") == 5

    virtual_time.run(body())


def test_in_a_crowd_a_first_wish_waits_longer() -> None:
    async def body() -> None:
        crowd = 3.0
        pace = recent.Pace(5, lambda: crowd)
        assert pace.wait("a") == 15
        crowd = 1.0
        assert (pace.wait("a"), pace.wait("b")) == (15, 5)

    virtual_time.run(body())
