"""Plans against a small API server: what is there already, what is refused, what is somebody else's."""

import asyncio
import collections.abc as cabc
import dataclasses
import datetime as dt
import json
from typing import Any

import pytest
from aiohttp import web

from spottrain.api import conditions, spec, status
from spottrain.kube import apply, errors
from spottrain.plan import actions, decide
from spottrain.plan import snapshot as snap
from tests.unit import virtual_time
from tests.unit.kube import local, test_observe
from tests.unit.plan import virtual

Object = dict[str, Any]
RAW: Object = {"metadata": {"namespace": "t", "name": "tr", "uid": "u", "resourceVersion": "1"}}
MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
START = (actions.EnsureService(), actions.CreateJob())


class Api:
    """Objects by path: POST refuses a name that is taken, GET and DELETE find what is there."""

    def __init__(self, **answers: web.Response) -> None:
        self.objects: dict[str, Object] = {}
        self.requests: list[str] = []
        self._answers = answers

    async def answer(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.split("/namespaces/t/")[-1].split("/")[0]
        self.requests.append(f"{request.method} {plural}")
        if f"{request.method}_{plural}" in self._answers:
            return self._answers[f"{request.method}_{plural}"]
        if request.method == "POST":
            body = await request.json()
            path = f"{request.path}/{body['metadata']['name']}"
            if path in self.objects:
                return local.refused(409, "exists")
            self.objects[path] = body
            body["metadata"] |= {"uid": f"u{len(self.objects)}", "resourceVersion": "7"}
            return web.json_response(body)
        found = self.objects.get(request.path)
        if found is None:
            return local.refused(404)
        if request.method == "DELETE":
            wanted = (await request.json())["preconditions"].get("resourceVersion")
            if wanted not in {None, found["metadata"]["resourceVersion"]}:
                return local.refused(409, "the ResourceVersion in the precondition does not match")
            del self.objects[request.path]
        return web.json_response(found)

    def put(self, plural: str, name: str, owner: str = "", labels: Object | None = None) -> None:
        """Somebody else's object, or that of the job with the UID `owner`."""
        prefix = {"services": "/api/v1", "jobs": "/apis/batch/v1", "pods": "/api/v1"}[plural]
        owners = (
            [{"kind": "SpotTrainingJob", "name": "tr", "uid": owner, "controller": True}] if owner else []
        )
        metadata = {
            "namespace": "t",
            "name": name,
            "uid": "x",
            "resourceVersion": "3",
            "labels": labels or {},
        }
        path = f"{prefix}/namespaces/t/{plural}/{name}"
        self.objects[path] = {"metadata": {**metadata, "ownerReferences": owners}, "spec": {}}


Story = cabc.Callable[["Bench"], cabc.Awaitable[None]]


@dataclasses.dataclass
class Bench:
    """An applier, the server, and what it learnt from it."""

    api: Api
    applier: apply.Applier
    learnt: list[str]

    async def carry_out(self, *acts: actions.Action, **changes: Any) -> apply.Outcome:
        snapshot = dataclasses.replace(virtual.Cluster().snapshot(), **changes)
        return await self.applier.carry_out(RAW, snapshot, actions.Plan(status.Status(), acts))


def play(api: Api, story: Story) -> None:
    async def body() -> None:
        async with local.server(api.answer) as client:
            learnt: list[str] = []

            def learn(raw: Object) -> None:
                learnt.append(raw["metadata"]["name"])

            applier = apply.Applier(client, test_observe.world(client), apply.Sinks(pod=learn, job=learn))
            await story(Bench(api, applier, learnt))

    local.run(body())


def test_the_job_is_not_made_before_its_service_is_the_jobs_own() -> None:
    """A deleted namesake's Service is about to go, and nobody would make another once the Job is there."""
    api = Api()
    api.put("services", "tr", owner="deleted")

    async def story(bench: Bench) -> None:
        outcome = await bench.carry_out(*START)
        assert (outcome.refusal, outcome.again) == (None, 1.0)
        assert "POST jobs" not in api.requests
        api.objects.clear()
        assert await bench.carry_out(*START) == apply.Outcome()
        assert "POST jobs" in api.requests

    play(api, story)


def test_a_strangers_service_is_a_name_conflict_and_stops_what_would_need_it() -> None:
    api = Api()
    api.put("services", "tr")

    async def story(bench: Bench) -> None:
        refusal = (await bench.carry_out(*START)).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.permanent) == (conditions.NAME_CONFLICT, False)
        assert refusal.message == "Service tr exists and is not this job's; delete or rename it"
        assert "POST jobs" not in api.requests

    play(api, story)


def test_a_strangers_job_is_a_name_conflict_and_never_in_the_cache() -> None:
    """Our watch sees only Jobs with our label: nobody would tell when this one goes."""
    api = Api()
    api.put("jobs", "tr")

    async def story(bench: Bench) -> None:
        refusal = (await bench.carry_out(*START)).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.permanent) == (conditions.NAME_CONFLICT, False)
        assert bench.learnt == []

    play(api, story)


def test_a_job_from_an_earlier_try_is_learnt() -> None:
    api = Api()
    api.put("jobs", "tr", owner="u", labels={"spottrain.dev/job": "tr"})

    async def story(bench: Bench) -> None:
        assert await bench.carry_out(*START) == apply.Outcome()
        assert bench.learnt == ["tr"]

    play(api, story)


@pytest.mark.parametrize(("version", "learnt"), [({"resourceVersion": "9"}, ["tr-0-1"]), ({}, [])])
def test_the_answer_to_a_deletion_is_learnt_unless_the_pod_is_gone(
    version: dict[str, str], learnt: list[str]
) -> None:
    """Deleted by somebody else in the same moment, it comes without a version."""
    pod = {"kind": "Pod", "metadata": {"name": "tr-0-1", "uid": "p", **version}}

    async def story(bench: Bench) -> None:
        await bench.carry_out(actions.DeletePod("tr-0-1", "p", 10))
        assert bench.learnt == learnt

    play(Api(DELETE_pods=web.json_response(pod)), story)


@pytest.mark.parametrize(("seen", "gone"), [("2", False), ("3", True), ("", True)])
def test_a_pod_that_may_only_go_as_it_was_seen_stays_when_it_has_changed(seen: str, gone: bool) -> None:
    """The scheduler may have given it a node; that it hasn't gone is no error."""
    api = Api()
    api.put("pods", "tr-0-1")

    async def story(bench: Bench) -> None:
        outcome = await bench.carry_out(actions.DeletePod("tr-0-1", "x", version=seen))
        assert (outcome, not api.objects) == (apply.Outcome(), gone)

    play(api, story)


def test_a_gang_that_starts_anew_asks_for_its_service_and_makes_the_one_that_was_deleted() -> None:
    """A create that is refused each time would cost more; without the Service nobody would be found."""
    api = Api()
    job = snap.Job(uid="j", managed_by="spottrain.dev/operator", suspended=False, template_hash="t")

    async def story(bench: Bench) -> None:
        await bench.carry_out(actions.EnsureService(), job=job)
        await bench.carry_out(actions.EnsureService(), job=job)
        assert api.requests == ["GET services", "POST services", "GET services"]

    play(api, story)


def test_deletions_do_not_wait_for_the_service() -> None:
    api = Api()
    api.put("services", "tr")

    async def story(bench: Bench) -> None:
        await bench.carry_out(actions.EnsureService(), actions.DeletePod("tr-0-1", "p", 10))
        assert "DELETE pods" in api.requests

    play(api, story)


def test_a_report_that_the_server_refuses_holds_up_nothing() -> None:
    """Somebody else has closed our Job: its status is for other tools, the work goes on."""
    api = Api(PATCH_jobs=local.refused(422, "field is immutable"))

    async def story(bench: Bench) -> None:
        outcome = await bench.carry_out(actions.ReportJob(1, 1, 0, 0, 0))
        assert (outcome.refusal, outcome.again) == (None, apply.REPORT_AGAIN)

    play(api, story)


def test_a_webhooks_no_may_become_a_yes() -> None:
    """Policies change, and a webhook that names no code of its own answers 400."""
    words = 'admission webhook "validate.example" denied the request: no GPUs today'

    async def story(bench: Bench) -> None:
        refusal = (await bench.carry_out(*START)).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.permanent) == (conditions.CREATION_REFUSED, False)

    play(Api(POST_jobs=local.refused(400, words)), story)


def test_completed_indexes_are_those_that_ran_though_the_spec_was_edited_since() -> None:
    sent: list[Object] = []

    class Patched(Api):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            sent.append(json.loads(await request.text()))
            return await super().answer(request)

    async def story(bench: Bench) -> None:
        report = actions.ReportJob(0, 0, 0, 3, 0, outcome="Complete")
        done = status.Status(workers=status.Workers(desired=3))
        await bench.carry_out(report, status=done, spec=spec.InvalidSpecError("edited"))
        assert sent[0]["status"]["completedIndexes"] == "0-2"

    play(Patched(), story)


def _decided(**changes: Any) -> status.Status:
    return decide.decide(dataclasses.replace(virtual.Cluster().snapshot(), **changes)).status


def test_a_refusal_of_the_very_first_object_is_told() -> None:
    refusal = snap.Refusal(
        conditions.CREATION_REFUSED, "exceeded quota: count/jobs.batch", 1, permanent=False
    )
    running = conditions.find(_decided(refusal=refusal).conditions, conditions.RUNNING)
    assert running is not None
    assert (running.reason, running.message) == (conditions.CREATION_REFUSED, refusal.message)


def test_a_name_conflict_before_there_is_a_job_is_told_in_accepted() -> None:
    refusal = snap.Refusal(conditions.NAME_CONFLICT, "Service tr exists", 1, permanent=False)
    accepted = conditions.find(_decided(refusal=refusal).conditions, conditions.ACCEPTED)
    assert accepted is not None
    assert (accepted.status, accepted.reason) == (False, conditions.NAME_CONFLICT)


# What of a status may wait.


def write(old: status.Status, new: status.Status) -> apply.Written:
    """The new status written over the old one, by an operator that has just started."""
    found: list[apply.Written] = []

    async def body() -> None:
        async with local.server(_as_written) as client:
            applier = apply.Applier(
                client, test_observe.world(client), apply.Sinks(lambda _: None, lambda _: None)
            )
            snapshot = dataclasses.replace(virtual.Cluster().snapshot(), status=old)
            found.append(await applier.write_status({**RAW, "status": status.render(old)}, snapshot, new))

    local.run(body())
    return found[0]


async def _as_written(_: web.Request) -> web.StreamResponse:
    return web.json_response({"metadata": {}})


def _waiting(reason: str, message: str, **changes: Any) -> status.Status:
    condition = conditions.Condition(conditions.RUNNING, False, reason, message, MOMENT, 1)
    return status.Status(phase=status.Phase.RESTARTING, conditions=(condition,), **changes)


PREDECESSORS = _waiting(conditions.WAITING_FOR_PREDECESSORS, "0 of 3 workers run", workers=status.Workers(3))
WORKERS = _waiting(
    conditions.WAITING_FOR_WORKERS, "2 of 3 workers run", workers=status.Workers(3, 2), go_attempt=2
)


def test_how_far_a_gang_has_come_back_waits_to_be_written() -> None:
    assert write(PREDECESSORS, WORKERS) == apply.Written(again=apply.STATUS_PACE)


def test_what_waited_is_written_when_its_time_has_come_and_tried_again_when_that_fails() -> None:
    answers = [web.json_response({"metadata": {}}), local.refused(500)]

    async def answer(_: web.Request) -> web.StreamResponse:
        return answers.pop()

    async def body() -> None:
        async with local.server(answer) as client:
            applier = apply.Applier(
                client, test_observe.world(client), apply.Sinks(lambda _: None, lambda _: None)
            )
            snapshot = dataclasses.replace(virtual.Cluster().snapshot(), status=PREDECESSORS)
            raw = {**RAW, "status": status.render(PREDECESSORS)}
            first = await applier.write_status(raw, snapshot, WORKERS)
            assert first.again == apply.STATUS_PACE
            await asyncio.sleep(first.again)
            with pytest.raises(errors.ApiError):
                await applier.write_status(raw, snapshot, WORKERS)
            assert (await applier.write_status(raw, snapshot, WORKERS)).raw is not None

    virtual_time.run(body())


def test_what_is_decided_on_is_written_at_once_and_the_rest_with_it() -> None:
    for changes in (
        {"reclaims": 1},
        {"attempt": 2},
        {"phase": status.Phase.RUNNING},
        {"observed_generation": 2},
    ):
        assert write(PREDECESSORS, dataclasses.replace(WORKERS, **changes)).raw is not None


def test_what_is_said_of_another_generation_is_written_at_once() -> None:
    """Whether a spec was tried already is decided by it."""

    def told(generation: int) -> status.Status:
        one = conditions.Condition(
            conditions.ACCEPTED, False, conditions.UNSUPPORTED_CLUSTER, "m", MOMENT, generation
        )
        return status.Status(observed_generation=2, conditions=(one,))

    assert write(told(1), told(2)).raw is not None


def test_a_refusal_is_told_at_once() -> None:
    refused = _waiting(conditions.CREATION_REFUSED, "exceeded quota", workers=status.Workers(3))
    assert write(PREDECESSORS, refused).raw is not None


def test_a_first_status_is_written_at_once() -> None:
    assert write(status.Status(), dataclasses.replace(status.Status(), step=1)).raw is not None


def test_counts_of_our_job_wait_and_its_start_does_not() -> None:
    async def story(bench: Bench) -> None:
        job = snap.Job(
            uid="j", managed_by="", suspended=False, template_hash="", started=MOMENT, finished=False
        )
        running = actions.ReportJob(1, 1, 0, 0, 0)
        assert (await bench.carry_out(running, job=job)).again == apply.REPORT_PACE
        assert (await bench.carry_out(dataclasses.replace(running, started=False), job=job)).again is None

    play(Api(PATCH_jobs=web.json_response({"metadata": {"name": "tr"}})), story)


def test_a_queue_hears_at_once_that_what_it_suspended_has_ended() -> None:
    """It holds the job's share of the quota until then."""

    async def story(bench: Bench) -> None:
        job = snap.Job("j", "", suspended=True, template_hash="")
        ended = actions.ReportJob(0, 0, 0, 0, 0, started=False)
        assert (await bench.carry_out(dataclasses.replace(ended, terminating=1), job=job)).again is not None
        assert (await bench.carry_out(ended, job=job)).again is None

    play(Api(PATCH_jobs=web.json_response({"metadata": {"name": "tr"}})), story)


TRIALS = {
    "invalid": (422, "spec.template.spec.containers[0].image: Required value", (True, False, None)),
    "webhook": (
        403,
        'admission webhook "i.example" denied the request: not from there',
        (False, False, None),
    ),
    "policy": (
        403,
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        (False, False, None),
    ),
    "quota": (403, "exceeded quota: jobs, requested: count/jobs.batch=1", (None, True, None)),
    "side effects": (400, 'admission webhook "w.example" does not support dry run', (None, True, None)),
    "no webhook": (500, "failed calling webhook", (None, False, apply.TRY_AGAIN)),
}


@pytest.mark.parametrize(("code", "words", "expected"), TRIALS.values(), ids=TRIALS)
def test_what_a_dry_run_of_an_edited_job_tells(
    code: int, words: str, expected: tuple[bool | None, bool, float | None]
) -> None:
    """Whether it is refused for good (None: not at all), whether it would be taken, when to ask again."""
    asked: list[tuple[str, Object]] = []

    class Tried(Api):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            asked.append((request.query["dryRun"], (await request.json())["metadata"]))
            return local.refused(code, words)

    async def story(bench: Bench) -> None:
        outcome = await bench.carry_out(actions.TryJob())
        for_good = outcome.refusal.permanent if outcome.refusal else None
        assert (for_good, outcome.taken, outcome.again) == expected
        assert [(how, "name" in metadata) for how, metadata in asked] == [("All", False)]

    play(Tried(), story)


def test_fields_of_a_newer_version_are_left_alone_and_ours_that_are_gone_are_removed() -> None:
    """It was taken back; what it wrote is there again when it comes once more."""
    bodies: list[Object] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return web.json_response({"metadata": {}})

    async def body() -> None:
        async with local.server(answer) as client:
            applier = apply.Applier(
                client, test_observe.world(client), apply.Sinks(lambda _: None, lambda _: None)
            )
            old = status.Status(next_retry=MOMENT)
            raw = {**RAW, "status": {**status.render(old), "pools": [{"name": "a"}]}}
            snapshot = dataclasses.replace(virtual.Cluster().snapshot(), status=old)
            await applier.write_status(raw, snapshot, status.Status())

    local.run(body())
    assert "pools" not in bodies[0]["status"]
    assert bodies[0]["status"]["nextRetryTime"] is None
