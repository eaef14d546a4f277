"""The Lease: who leads, and from when on a leader's time counts."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from spottrain.kube import client as clients
from spottrain.kube import election
from tests.unit.kube import local

Object = dict[str, Any]


class LeaseApi:
    """One Lease with compare-and-swap; answers to writes may come late, or never."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.late = 0.0
        self.down = False
        self.written: list[float] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return local.refused(503)
        if request.method == "GET":
            return local.refused(404) if self.lease is None else web.json_response(self.lease)
        body = await request.json()
        sent = body["metadata"].get("resourceVersion")
        if self.lease is not None and sent != self.lease["metadata"]["resourceVersion"]:
            return local.refused(409)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        self.written.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.late)
        return web.json_response(body)

    @property
    def holder(self) -> str:
        return "" if self.lease is None else str(self.lease["spec"]["holderIdentity"])


def candidate(client: clients.Client, name: str, **times: float) -> election.Election:
    return election.Election(client, election.Seat("s", "lease", name, **times))


def test_the_second_leads_when_the_first_has_resigned() -> None:
    async def body() -> None:
        api = LeaseApi()
        async with local.server(api.answer) as client:
            first, second = candidate(client, "a"), candidate(client, "b")
            await first.win()
            assert await second._try() is False
            await first.resign()
            await second.win()
            assert (api.holder, first.leading, second.leading) == ("b", False, True)

    local.run(body())


def test_a_leaders_time_counts_from_when_it_asked_for_the_lease_not_from_the_answer() -> None:
    """Others time the Lease from its change; an answer that came late must not lengthen the reign."""

    async def body() -> None:
        api = LeaseApi()
        api.late = 0.3
        async with local.server(api.answer) as client:
            leader = candidate(client, "a")
            await leader.win()
            assert leader.renewed <= api.written[0]

    local.run(body())


def test_a_lease_whose_answer_came_too_late_is_no_lease() -> None:
    """By then somebody else may hold it."""

    async def body() -> None:
        api = LeaseApi()
        api.late = 0.3
        async with local.server(api.answer) as client:
            leader = candidate(client, "a", renew_deadline=0.2, retry=0.05)
            winning = asyncio.create_task(leader.win())
            await local.until(lambda: len(api.written) == 2)
            assert leader.leading is False
            api.late = 0.0
            await winning
            api.down = True
            with pytest.raises(election.LeadershipLostError):
                await leader.hold()
            assert leader.leading is False

    local.run(body())
