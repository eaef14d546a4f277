"""Silent nodes: what is timed, and what makes the time start again. In virtual time."""

import asyncio
import collections.abc as cabc
import contextlib
import math
from typing import Any

import hypothesis
import pytest
from aiohttp import web
from hypothesis import strategies as st

from spottrain.kube import leases
from tests.unit import virtual_time
from tests.unit.kube import local

LIMIT = leases.SILENCE_SHARE * leases.DEFAULT_DURATION
"""34 s."""


class Api:
    """Serves leases; fails, or is late, when told to."""

    def __init__(self, *names: str) -> None:
        self.versions = dict.fromkeys(names, 1)
        self.fails: set[str] = set()
        self.delay = 0.0
        self.asked: list[str] = []

    def renew(self, name: str) -> None:
        self.versions[name] += 1

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.delay)
        name = request.path.rsplit("/", 1)[1]
        self.asked.append(name)
        if name in self.fails:
            return local.refused(503, "the server is overloaded")
        if name == "leases":
            return local.listed(9, *(self._lease(one) for one in self.versions))
        return web.json_response(self._lease(name)) if name in self.versions else local.refused(404)

    def _lease(self, name: str) -> dict[str, Any]:
        version = str(self.versions[name])
        return {"metadata": {"name": name, "resourceVersion": version}, "spec": {"leaseDurationSeconds": 40}}


class Story:
    """A reader of leases at work, and every word of it with its time."""

    def __init__(self, api: Api, reader: leases.Leases, told: list[tuple[float, str, bool]]) -> None:
        self.api = api
        self.reader = reader
        self.told = told
        self.carrying = set(api.versions)
        self.begun = _now()

    async def until(self, second: float) -> None:
        """That many seconds after the beginning."""
        await asyncio.sleep(self.begun + second - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()


def play(api: Api, body: cabc.Callable[[Story], cabc.Awaitable[None]]) -> list[tuple[float, str, bool]]:
    """The body beside the reader; returns (seconds, node, silent) of each change, to a tenth."""
    told: list[tuple[float, str, bool]] = []

    async def whole() -> None:
        async with local.server(api.answer) as client:

            def changed(name: str) -> None:
                told.append((round(_now() - story.begun, 1), name, reader.silent(name)))

            reader = leases.Leases(client, lambda: story.carrying, changed)
            story = Story(api, reader, told)
            work = asyncio.create_task(reader.run())
            await body(story)
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work

    virtual_time.run(whole())
    return told


def test_a_lease_that_is_not_renewed_for_its_limit_makes_its_node_silent_and_a_renewal_ends_it() -> None:
    async def body(story: Story) -> None:
        await story.until(39)
        story.api.renew("n1")
        await story.until(45)

    assert play(Api("n1"), body) == [(LIMIT, "n1", True), (40.0, "n1", False)]


def test_a_node_is_dead_since_half_a_renewal_after_its_last_one_once_the_next_is_missing() -> None:
    """Leases of 40 s are renewed every 10 s."""
    dead: list[float] = []

    async def body(story: Story) -> None:
        await story.until(9)
        story.api.renew("n1")
        for second in (20, 35):
            await story.until(second)
            dead.append(story.reader.dead_for("n1"))
        dead.append(story.reader.dead_for("other"))

    play(Api("n1"), body)
    assert dead == [0.0, pytest.approx(35 - 10 - 5, abs=0.1), 0.0]


def test_renewals_start_the_count_again() -> None:
    async def body(story: Story) -> None:
        for second in range(9, 120, 10):
            await story.until(second)
            story.api.renew("n1")

    assert play(Api("n1"), body) == []


def test_a_failed_read_starts_the_counts_of_all_nodes_again() -> None:
    """Also of those whose own lease could be read: nothing is timed across a gap."""

    async def body(story: Story) -> None:
        await story.until(31)
        story.api.fails = {"n2"}
        await story.until(33)
        story.api.fails = set()
        await story.until(75)

    assert play(Api("n1", "n2"), body) == [(34 + LIMIT, "n1", True), (34 + LIMIT, "n2", True)]


def test_after_a_failed_read_a_node_is_in_doubt_until_it_is_silent_or_back_for_long_enough() -> None:
    """Kubernetes calls it NotReady because its kubelet could not renew, and for a while after it has."""
    doubts: list[tuple[bool, bool]] = []

    async def body(story: Story) -> None:
        def look() -> None:
            doubts.append((story.reader.doubtful("n1"), story.reader.doubtful("n2")))

        await story.until(5)
        look()
        story.api.fails = {"n2"}
        await story.until(7)
        story.api.fails = set()
        await story.until(9)
        look()
        story.api.renew("n1")
        await story.until(11)
        look()
        await story.until(8 + LIMIT - 1)
        story.api.renew("n1")
        await story.until(8 + LIMIT + 1)
        look()
        await story.until(10 + LIMIT + 1)
        look()

    told = play(Api("n1", "n2"), body)
    assert doubts == [(False, False), (True, True), (True, True), (True, False), (False, False)]
    assert told == [(8 + LIMIT, "n2", True), (10 + LIMIT, "n1", False)]


@pytest.mark.parametrize(("outage", "patience"), [(10, LIMIT), (60, 60), (300, 3 * LIMIT)])
def test_after_a_long_outage_a_node_has_as_long_to_be_heard_again_up_to_three_times(
    outage: int, patience: float
) -> None:
    """Who asked in vain for minutes asks again more rarely, heard once or not; later all is as usual."""

    async def body(story: Story) -> None:
        await story.until(1)
        story.api.fails = {"n1", "n2", "n3"}
        await story.until(1 + outage)
        story.api.fails = set()
        for name, moment in (("n2", 7), ("n3", 27), ("n3", 57), ("n3", 87), ("n3", 117)):
            await story.until(outage + moment)
            story.api.renew(name)
        await story.until(1000)

    told = play(Api("n1", "n2", "n3"), body)
    moments = {name: moment for moment, name, silent in told if silent}
    assert moments["n1"] == pytest.approx(outage + 2 + patience, abs=4)
    assert moments["n2"] == pytest.approx(outage + max(8 + LIMIT, 2 + patience), abs=4)
    assert moments["n3"] == pytest.approx(outage + 118 + LIMIT, abs=2)


def test_a_silent_node_stays_silent_across_a_failed_read_until_it_is_heard() -> None:
    """Or a worker would be put on it again."""

    async def body(story: Story) -> None:
        await story.until(LIMIT + 5)
        story.api.fails = {"n1"}
        await story.until(LIMIT + 7)
        story.api.fails = set()
        await story.until(LIMIT + 21)
        story.api.renew("n1")
        await story.until(LIMIT + 25)

    assert play(Api("n1"), body) == [(LIMIT, "n1", True), (LIMIT + 22, "n1", False)]


def test_a_late_read_starts_the_counts_again() -> None:
    async def body(story: Story) -> None:
        await story.until(31)
        story.api.delay = leases.LATE_SECONDS
        await story.until(33)
        story.api.delay = 0.0
        await story.until(39)
        assert not story.reader.silenced
        await story.until(80)

    assert play(Api("n1"), body) == [(38 + LIMIT, "n1", True)]


def test_a_silent_node_is_still_read_when_its_last_worker_is_gone() -> None:
    """No new worker may be put on it, until it is heard."""

    async def body(story: Story) -> None:
        await story.until(LIMIT + 1)
        story.carrying = set()
        await story.until(LIMIT + 60)
        assert story.reader.silenced == {"n1"}
        story.api.renew("n1")
        await story.until(LIMIT + 63)
        story.api.asked.clear()
        await story.until(LIMIT + 70)
        assert story.api.asked == [], "nobody is interested any more"

    assert play(Api("n1"), body) == [(LIMIT, "n1", True), (LIMIT + 60, "n1", False)]


def test_a_silent_node_whose_lease_goes_is_no_longer_silent() -> None:
    async def body(story: Story) -> None:
        await story.until(LIMIT + 1)
        del story.api.versions["n1"]
        await story.until(LIMIT + 5)

    assert play(Api("n1"), body) == [(LIMIT, "n1", True), (LIMIT + 2, "n1", False)]


@pytest.mark.parametrize(("nodes", "asked"), [(leases.MOST_SINGLE_READS, 20), (21, 1)])
def test_the_leases_of_many_nodes_are_read_in_one_list(nodes: int, asked: int) -> None:
    api = Api(*(f"n{number}" for number in range(nodes)))

    async def body(story: Story) -> None:
        await story.until(1)
        assert len(story.api.asked) == asked
        story.api.fails = {"leases", "n0"}
        await story.until(3)
        story.api.fails = set()
        await story.until(LIMIT + 3)
        assert not story.reader.silenced
        await story.until(LIMIT + 5)
        assert len(story.reader.silenced) == nodes

    play(api, body)


@hypothesis.given(
    st.lists(st.sampled_from(["", "", "", "", "", "", "", "renew", "fail", "late"]), min_size=20, max_size=60)
)
@hypothesis.settings(max_examples=25, deadline=None)
def test_nobody_is_called_silent_unless_every_read_of_its_whole_limit_went_well(moments: list[str]) -> None:
    """Whatever happens, in steps of two seconds."""
    news = [-math.inf]

    async def body(story: Story) -> None:
        for moment in moments:
            story.api.fails = {"n1"} if moment == "fail" else set()
            story.api.delay = leases.LATE_SECONDS if moment == "late" else 0.0
            if moment == "renew":
                story.api.renew("n1")
            if moment:
                news.append(_now() - story.begun)
            await asyncio.sleep(leases.POLL_SECONDS)

    for second, _, silent in play(Api("n1"), body):
        latest = max(one for one in news if one <= second)
        assert not silent or second - latest >= LIMIT - leases.POLL_SECONDS
