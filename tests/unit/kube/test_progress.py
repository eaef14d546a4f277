"""What a gang's first worker says of its step: what is timed. In virtual time."""

import asyncio
import collections.abc as cabc
import dataclasses
import datetime as dt
import itertools
import json
from typing import Any

import pytest
from aiohttp import web

from spottrain.api import status
from spottrain.kube import progress
from spottrain.plan import snapshot as snap
from tests.unit import virtual_time

KEY = ("t", "tr")
TARGET = progress.Target("abc", "127.0.0.1", timeout=600.0)


class Worker:
    """Answers for its step as the library does, unless it is told to fail."""

    def __init__(self) -> None:
        self.step: Any = None
        self.attempt_id = "abc"
        self.status = 200
        self.asked = 0
        self.more: dict[str, Any] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/progress"
        self.asked += 1
        said = {"spottrain": 1, "attemptID": self.attempt_id, "step": self.step, **self.more}
        return web.Response(body=json.dumps(said), status=self.status)


class Story:
    """A reader at work: when it said that something is to be decided on, and what it had for the status."""

    def __init__(self, worker: Worker, port: int) -> None:
        self.worker = worker
        self.told: list[float] = []
        self.reports: list[tuple[float, snap.Report]] = []
        self._begun = _now()
        self.reader = progress.Progress(lambda _: self._changed(), port=port)

    def _changed(self) -> None:
        moment, report = _now() - self._begun, self.known().report
        if report is not None and (not self.reports or self.reports[-1][1] is not report):
            self.reports.append((moment, report))
        else:
            self.told.append(moment)

    def known(self) -> snap.Progress:
        found = self.reader.get(KEY)
        assert found is not None
        return found


def _now() -> float:
    return asyncio.get_running_loop().time()


def play(body: cabc.Callable[[Story], cabc.Awaitable[None]]) -> None:
    async def whole() -> None:
        worker = Worker()
        app = web.Application()
        app.router.add_get("/{path:.*}", worker.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        story = Story(worker, runner.addresses[0][1])
        work = asyncio.create_task(story.reader.run())
        story.reader.follow(KEY, TARGET)
        await body(story)
        work.cancel()
        await asyncio.wait([work])
        await runner.cleanup()

    virtual_time.run(whole())


def test_a_step_that_stays_is_timed_and_told_when_the_time_is_over() -> None:
    async def body(story: Story) -> None:
        story.worker.step = 7
        await asyncio.sleep(590)
        assert story.told == []
        await asyncio.sleep(80)
        assert story.known().step == 7
        assert 600 <= story.known().still <= story.told[-1]

    play(body)


def test_a_step_that_moves_begins_anew() -> None:
    async def body(story: Story) -> None:
        for step in range(30):
            story.worker.step = step
            await asyncio.sleep(100)
        assert story.known().still <= 100
        assert story.told == []

    play(body)


def test_a_worker_that_never_makes_its_first_step_is_timed_too() -> None:
    async def body(story: Story) -> None:
        await asyncio.sleep(700)
        assert (story.known().step, story.told != []) == (None, True)

    play(body)


def test_what_cannot_be_read_is_no_standstill_but_said_after_a_minute() -> None:
    async def body(story: Story) -> None:
        story.worker.step = 7
        await asyncio.sleep(30)
        story.worker.status = 500
        await asyncio.sleep(50)
        assert story.known().problem == ""
        await asyncio.sleep(3000)
        known = story.known()
        assert (known.step, known.still, known.problem) == (7, 0.0, "127.0.0.1: status 500")
        assert len(story.told) == 1
        story.worker.status, story.worker.step = 200, 8
        await asyncio.sleep(61)
        assert story.known().problem == ""
        assert (len(story.told), story.reports[-1][1].step) == (1, 8), "told with the newest report"

    play(body)


def test_the_same_step_before_and_after_a_gap_is_a_standstill() -> None:
    """Steps don't come back, so there was none in between."""

    async def body(story: Story) -> None:
        story.worker.step = 7
        await asyncio.sleep(30)
        story.worker.status = 500
        await asyncio.sleep(3000)
        story.worker.status = 200
        await asyncio.sleep(61)
        assert story.known().still >= 3000

    play(body)


@pytest.mark.parametrize("change", [{"attempt_id": "other"}, {"step": "7"}, {"step": True}, {"step": -1}])
def test_another_programs_answer_is_none(change: dict[str, Any]) -> None:
    """Two pods on the host's network share its ports."""

    async def body(story: Story) -> None:
        vars(story.worker).update(change)
        await asyncio.sleep(400)
        known = story.known()
        assert (known.still, known.step) == (0.0, None)
        assert known.problem.startswith("127.0.0.1: the ")

    play(body)


def test_the_next_attempt_is_timed_from_its_own_beginning_and_nobody_else_is_asked() -> None:
    async def body(story: Story) -> None:
        story.worker.step = 7
        await asyncio.sleep(500)
        story.reader.follow(KEY, progress.Target("def", "127.0.0.1", 600.0))
        story.worker.attempt_id = "def"
        assert story.reader.get(KEY) is None
        await asyncio.sleep(61)
        assert story.known().still <= 61
        story.reader.follow(KEY, None)
        asked = story.worker.asked
        await asyncio.sleep(300)
        assert (story.worker.asked, story.reader.get(KEY)) == (asked, None)

    play(body)


FREE = progress.Target("abc", "127.0.0.1", timeout=None)


def test_what_is_told_for_the_status_comes_at_most_once_in_a_period_and_not_on_the_beat() -> None:
    async def body(story: Story) -> None:
        story.reader.follow(KEY, None)
        story.reader.follow(KEY, FREE)
        for step in range(600):
            story.worker.step = step
            await asyncio.sleep(1)
        moments = [moment for moment, _ in story.reports]
        pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
        assert min(pauses) >= progress.PERIOD
        assert len(pauses) >= 5
        assert len(set(pauses)) > 1

    play(body)


def test_a_report_that_says_nothing_new_is_not_told_again() -> None:
    async def body(story: Story) -> None:
        story.worker.step = 7
        await asyncio.sleep(400)
        assert [report.step for _, report in story.reports] == [7]

    play(body)


def test_a_report_holds_what_the_library_says() -> None:
    async def body(story: Story) -> None:
        story.worker.step = 41
        story.worker.more = {
            "total": 1000,
            "perSecond": 3.125,
            "resumedFrom": 20,
            "began": 1767225600.25,
            "checkpoint": {"step": 40, "time": 1767225600.25, "seconds": 12.1, "blockedSeconds": 0.8},
            "stop": {"seconds": 12.4, "graceSeconds": 25.0, "fits": True},
        }
        await asyncio.sleep(5)
        ((_, report),) = story.reports
        moment = dt.datetime(2026, 1, 1, 0, 0, 0, 250000, tzinfo=dt.UTC)
        assert report == snap.Report(
            step=41,
            time=report.time,
            total=1000,
            per_second=3.125,
            saved=status.Checkpoint(40, moment, 12.1),
            stop=snap.Stop(12.4, 25.0, fits=True),
            began=moment,
            resumed_from=20,
        )
        assert report.first == 21

    play(body)


@pytest.mark.parametrize(
    "more",
    [
        {"total": "x", "perSecond": "fast", "checkpoint": 7, "stop": []},
        {
            "total": -1,
            "resumedFrom": -1,
            "perSecond": -2.0,
            "checkpoint": {"step": -1},
            "stop": {"seconds": 1e300},
        },
        {
            "perSecond": True,
            "began": "noon",
            "checkpoint": {"step": "7", "time": 1e300},
            "stop": {"seconds": 1},
        },
        {"stop": None, "checkpoint": None, "total": 2**70},
    ],
)
def test_what_makes_no_sense_of_a_report_is_left_out(more: dict[str, Any]) -> None:
    async def body(story: Story) -> None:
        story.worker.step, story.worker.more = 7, more
        await asyncio.sleep(5)
        ((_, report),) = story.reports
        assert report == snap.Report(step=7, time=report.time)

    play(body)


def test_who_need_not_answer_and_does_not_is_asked_more_and_more_rarely() -> None:
    async def body(story: Story) -> None:
        story.reader.follow(KEY, None)
        story.worker.status = 404
        story.reader.follow(KEY, FREE)
        await asyncio.sleep(3600)
        assert 7 <= story.worker.asked <= 14
        story.reader.follow(KEY, dataclasses.replace(FREE, needed=True))
        asked = story.worker.asked
        await asyncio.sleep(3600)
        assert 45 <= story.worker.asked - asked <= 60, "a decision waits for it"
        story.reader.follow(KEY, FREE)
        story.worker.status, story.worker.step = 200, 7
        await asyncio.sleep(601)
        assert story.reports[-1][1].step == 7
        asked = story.worker.asked
        await asyncio.sleep(600)
        assert 12 <= story.worker.asked - asked <= 21

    play(body)
