"""Plans of Independent jobs against a small API server: stale ones make nothing, a quota is asked little."""

import collections.abc as cabc
import dataclasses
import json
from typing import Any

from aiohttp import web

from spottrain.api import clouds, conditions, indexes, shards, spec, status
from spottrain.kube import apply, mirror, views
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from tests.unit.kube import local, test_observe
from tests.unit.kube.test_apply import MOMENT, RAW
from tests.unit.plan import virtual

Object = dict[str, Any]
JOB: Object = {
    "metadata": {"namespace": "t", "name": "tr", "uid": "j1", "resourceVersion": "1"},
    "spec": {"template": {"spec": {"containers": [{"name": "trainer", "image": "i"}]}}},
}
QUOTA = snap.Refusal(conditions.CREATION_REFUSED, "exceeded quota", 1, permanent=False)


def snapshot(**changes: Any) -> snap.Snapshot:
    return dataclasses.replace(virtual.Cluster(virtual.shards()).snapshot(), **changes)


def pods(count: int) -> tuple[actions.Action, ...]:
    return tuple(
        actions.CreatePod(actions.Overlay(index, 1, f"id{index}", ask=clouds.Ask.SPOT, grace=28))
        for index in range(count)
    )


def play(
    answer: cabc.Callable[[web.Request], cabc.Awaitable[web.StreamResponse]],
    story: cabc.Callable[[apply.Applier], cabc.Awaitable[None]],
) -> None:
    async def body() -> None:
        async with local.server(answer) as client:
            world = test_observe.world(client)
            world.job_caches[0].learn(JOB)
            await story(apply.Applier(client, world, apply.Sinks(lambda _: None, lambda _: None)))

    local.run(body())


class Quota:
    """Room for so many pods."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.room == 0:
            return local.refused(403, "exceeded quota")
        self.room -= 1
        return web.json_response(await request.json())


def made(room: int, refusal: snap.Refusal | None, wanted: int = 40) -> tuple[int, bool]:
    """How often the server was asked for pods, and whether it refused one."""
    quota = Quota(room)
    outcomes: list[apply.Outcome] = []

    async def story(applier: apply.Applier) -> None:
        plan = actions.Plan(status.Status(), pods(wanted))
        outcomes.append(await applier.carry_out(RAW, snapshot(refusal=refusal), plan))

    play(quota.answer, story)
    return quota.asked, outcomes[0].refusal is not None


def test_as_long_as_nothing_is_refused_all_pods_are_made_at_once() -> None:
    assert made(40, None) == (40, False)


def test_while_a_quota_refuses_pods_it_is_asked_for_few() -> None:
    assert made(0, QUOTA) == (1, True)
    assert made(1, QUOTA) == (2, True)
    assert made(6, QUOTA) == (8, True)


def test_when_there_is_room_again_all_pods_are_made() -> None:
    assert made(40, QUOTA) == (40, False)


def test_a_plan_that_makes_pods_is_written_though_nothing_differs_so_that_a_stale_one_fails() -> None:
    sent: list[Object] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        sent.append(await request.json())
        return web.json_response({"metadata": {}})

    async def story(applier: apply.Applier) -> None:
        now = status.Status(attempt=1, shards=shards.Shards())
        raw = {**RAW, "status": status.render(now)}
        assert await applier.write_status(raw, snapshot(status=now), now) == apply.Written()
        assert (await applier.write_status(raw, snapshot(status=now), now, sure=True)).raw is not None

    play(answer, story)
    assert [one["metadata"]["resourceVersion"] for one in sent] == ["1"]


def test_another_parallelism_is_patched_into_our_job() -> None:
    sent: list[tuple[str, str, Object]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        sent.append((request.method, request.path, await request.json()))
        return web.json_response(JOB)

    async def story(applier: apply.Applier) -> None:
        await applier.carry_out(RAW, snapshot(), actions.Plan(status.Status(), (actions.ScaleJob(4),)))

    play(answer, story)
    path = "/apis/batch/v1/namespaces/t/jobs/tr"
    assert sent == [("PATCH", path, {"spec": {"parallelism": 4}})]


def test_our_jobs_status_has_the_indexes_as_it_goes_on_and_says_why_it_failed() -> None:
    report = actions.ReportJob(1, 1, 0, 2, 3, indexes=("0,1", "4"))
    body = mirror.status(report, snapshot())
    assert (body["completedIndexes"], body["failedIndexes"]) == ("0,1", "4")
    over = dataclasses.replace(report, outcome="Failed", reason=conditions.FAILED_INDEXES, message="m")
    ended = mirror.status(over, snapshot(now=MOMENT))
    assert [(one["type"], one["reason"]) for one in ended["conditions"]] == [
        ("FailureTarget", "FailedIndexes"),
        ("Failed", "FailedIndexes"),
    ]
    assert "completionTime" not in ended


def test_a_gangs_job_has_no_indexes_before_it_is_complete() -> None:
    body = mirror.status(actions.ReportJob(1, 1, 0, 2, 0), snapshot(spec=virtual.wishes()))
    assert not {"completedIndexes", "failedIndexes"} & body.keys()


def test_whether_a_pod_was_made_for_the_floor_is_read_from_its_label() -> None:
    raw = test_observe.pod(1)
    assert views.pod(raw).ask is clouds.Ask.SPOT
    raw["metadata"]["labels"]["spottrain.dev/capacity"] = "on-demand"
    assert views.pod(raw).ask is clouds.Ask.ON_DEMAND


def test_the_last_indexes_to_go_are_remembered_and_not_ten_thousand() -> None:
    caches = test_observe.known()
    for index in range(2500):
        caches.put(test_observe.pod(1, index), gone=True)
    gone = caches.departed(test_observe.KEY, "u")
    assert [one.index for one in gone] == list(range(500, 2500))


def test_the_status_of_an_independent_job_is_read_as_it_was_written() -> None:
    now = status.Status(
        attempt=1, shards=shards.Shards(completed=indexes.below(3)), workers=status.Workers(indexes=9)
    )
    raw = json.loads(json.dumps(status.render(now)))
    assert status.parse(raw) == now
    assert raw["finishedText"] == "0/9"


def test_what_has_finished_is_written_at_once_and_counts_wait() -> None:
    one = status.Status(attempt=1, shards=shards.Shards())
    other = dataclasses.replace(one, shards=shards.Shards(completed=indexes.below(1)))
    assert not other.decides_as(one)
    assert dataclasses.replace(one, workers=status.Workers(running=3)).decides_as(one)


def test_a_spec_that_cannot_be_read_is_still_that_of_an_independent_job() -> None:
    invalid = spec.InvalidSpecError("no")
    assert snapshot(spec=invalid, status=status.Status(shards=shards.Shards())).independent
    assert not snapshot(spec=invalid).independent
