"""Passes over one job against a small API server."""

import asyncio
from typing import Any

from aiohttp import web

from spottrain.controller import reconciler
from spottrain.kube import apply
from spottrain.kube import client as clients
from spottrain.metrics import registry
from spottrain.plan import snapshot as snap
from tests.unit.kube import local, test_observe

Object = dict[str, Any]
KEY = ("t", "tr")
SPEC: Object = {
    "checkpoint": {"uri": "s3://ck/tr"},
    "template": {"spec": {"containers": [{"name": "trainer", "image": "i"}]}},
}


def job(uid: str, version: int) -> Object:
    metadata = {"namespace": "t", "name": "tr", "uid": uid, "resourceVersion": str(version), "generation": 1}
    return {"metadata": metadata, "spec": SPEC}


class Api:
    """Takes writes of a status, less a field that it may lack, and refuses each Job with these words."""

    def __init__(self, code: int, words: str, lacks: str = "") -> None:
        self.posts = self.patches = 0
        self._lacks = lacks
        self.uid = "u1"
        self.status: Object = {}
        self._refusal = (code, words)
        self._version = 100

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if request.path.endswith("/status"):
            self._version += 1
            self.patches += 1
            self.status = {name: value for name, value in body["status"].items() if name != self._lacks}
            return web.json_response({**job(self.uid, self._version), "status": self.status})
        if request.path.endswith("/jobs"):
            self.posts += 1
            return local.refused(*self._refusal)
        return web.json_response({"metadata": {**body["metadata"], "uid": "x", "resourceVersion": "5"}})


def worker(client: clients.Client) -> reconciler.Reconciler:
    world = test_observe.world(client)
    applier = apply.Applier(client, world, apply.Sinks(pod=lambda _: None, job=lambda _: None))
    return reconciler.Reconciler(reconciler.Jobs(), world, applier, snap.Settings(), registry.Metrics())


async def settled(work: reconciler.Reconciler) -> None:
    """Passes until nothing is due at once."""
    work.queue.add(KEY)
    while True:
        try:
            key = await asyncio.wait_for(work.queue.take(), 0.05)
        except TimeoutError:
            return
        await work._pass(key)
        work.queue.done(key)


def test_what_was_refused_of_a_deleted_job_does_not_stop_the_one_applied_in_its_place() -> None:
    """Both are of generation 1, and the second came before anybody looked at the deletion of the first."""
    api = Api(422, "spec.template: no")

    async def body() -> None:
        async with local.server(api.answer) as client:
            work = worker(client)
            work.jobs.put(job("u1", 1))
            await settled(work)
            assert api.posts == 1, "what is wrong with the spec stays wrong"
            work.jobs.remove(KEY, "u1")
            api.uid = "u2"
            work.jobs.put(job("u2", 200))
            await settled(work)
            assert api.posts == 2

    local.run(body())


def test_a_refusal_that_may_pass_is_tried_again_with_pauses() -> None:
    api = Api(403, "exceeded quota")

    async def body() -> None:
        async with local.server(api.answer) as client:
            work = worker(client)
            work.jobs.put(job("u1", 1))
            await settled(work)
            assert 2 <= api.posts <= 3
            assert len(work.queue) == 1, "another try is planned"
            reasons = {one["type"]: one["reason"] for one in api.status["conditions"]}
            assert reasons["Running"] == "CreationRefused"

    local.run(body())


def test_what_an_older_resource_drops_is_written_once_and_when_the_resource_has_it() -> None:
    api = Api(422, "spec.template: no", lacks="observedGeneration")

    async def body() -> None:
        async with local.server(api.answer) as client:
            work = worker(client)
            work.lacking = lambda: frozenset({"status.observedGeneration"})
            work.jobs.put(job("u1", 1))
            await settled(work)
            written = api.patches
            for _ in range(3):
                await work._pass(KEY)
            assert api.patches == written
            work.lacking = frozenset
            await work._pass(KEY)
            assert api.patches == written + 1

    local.run(body())
