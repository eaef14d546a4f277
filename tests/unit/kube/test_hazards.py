"""What is learnt from machines that carry workers, and how it is kept."""

import datetime as dt
from typing import Any

import pytest
from aiohttp import web

from spottrain.api import clouds, status
from spottrain.kube import client as clients
from spottrain.kube import hazards, losses, observe
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard, pools
from tests.unit.kube import local, test_observe

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
POOL = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5")


class Fleet:
    """Machines with a worker on each, and what a process sees of them."""

    def __init__(self) -> None:
        self.pods, self.nodes, self.losses = observe.Pods(), observe.Nodes(snap.Settings()), losses.Losses()
        self.learning = hazards.Hazards(self.pods, self.nodes, self.losses, 5.0)
        self.now = NOON

    def machine(self, name: str, *, gone: bool = False, uid: str = "", notice: bool = False) -> None:
        raw = test_observe.node(name, uid)
        raw["metadata"]["labels"] = {
            "karpenter.sh/capacity-type": "spot",
            "topology.kubernetes.io/zone": "zone-a",
            "node.kubernetes.io/instance-type": "g5",
        }
        raw["metadata"]["annotations"] = {"spottrain.dev/reclaim": "{}"} if notice else {}
        raw["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.nodes.put(raw, gone=gone)

    def worker(self, name: str, *, phase: str = "Running", gone: bool = False) -> None:
        number = int(name[1:])
        self.pods.put(test_observe.pod(1, number, node=name, phase=phase), gone=gone)

    def start(self, *names: str) -> None:
        for name in names:
            self.machine(name)
            self.worker(name)
        self.look(0)

    def look(self, minutes: float) -> hazard.Record:
        self.now += dt.timedelta(minutes=minutes)
        self.learning.look(self.now)
        return self.learning.known[POOL]

    def reclaimed(self, name: str) -> None:
        where = ("spot", "aws", int(name[1:]), 1, "g5")
        self.losses.note(status.Reclaim(self.now, "NodeGone", name, "zone-a", *where))


def test_hours_are_learnt_while_workers_hold_machines() -> None:
    fleet = Fleet()
    fleet.start("n1", "n2")
    record = fleet.look(60)
    assert sum(record.exits.hours) == pytest.approx(1.0)
    assert (record.state, sum(record.exits.events)) == (hazard.State.HELD, 0)


def test_a_zone_that_falls_is_one_loss_of_all_its_machines_though_one_job_named_one() -> None:
    fleet = Fleet()
    fleet.start("n1", "n2", "n3")
    fleet.look(60)
    for name in ("n1", "n2", "n3"):
        fleet.machine(name, gone=True)
    fleet.now += dt.timedelta(seconds=10)
    fleet.reclaimed("n2")
    record = fleet.look(0.3)
    assert (record.moments, record.machines, sum(record.exits.events)) == (1, 3, 1)
    assert record.state is hazard.State.AWAY


def test_a_machine_under_notice_is_lost_once_and_not_again_when_it_goes() -> None:
    fleet = Fleet()
    fleet.start("n1", "n2")
    fleet.look(60)
    fleet.machine("n1", notice=True)
    fleet.now += dt.timedelta(seconds=1)
    fleet.reclaimed("n1")
    fleet.look(0.5)
    fleet.machine("n1", gone=True)
    record = fleet.look(1)
    assert record.machines == pytest.approx(1)


@pytest.mark.parametrize(("digest", "hours"), [("", 1.0), ("c0ffee", 0.0)], ids=["any pool", "its list"])
def test_a_pool_that_is_away_is_tried_by_who_waits_for_any_pool_and_not_by_who_waits_for_others(
    digest: str, hours: float
) -> None:
    fleet = Fleet()
    fleet.start("n1")
    fleet.look(60)
    fleet.machine("n1", gone=True)
    fleet.now += dt.timedelta(seconds=10)
    fleet.reclaimed("n1")
    fleet.look(0.5)
    waits = test_observe.pod(2, 1, node="", phase="Pending")
    waits["metadata"]["annotations"] = {"spottrain.dev/pools": digest}
    waits["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node fits"}
    ]
    fleet.pods.put(waits, gone=False)
    assert sum(fleet.look(60).returns.hours) == pytest.approx(hours, abs=0.01)


def test_an_autoscaler_that_takes_back_what_nobody_needs_is_no_loss() -> None:
    fleet = Fleet()
    fleet.start("n1")
    fleet.look(60)
    fleet.worker("n1", phase="Succeeded")
    fleet.machine("n1", gone=True)
    record = fleet.look(0.5)
    assert (record.state, record.machines) == (hazard.State.LEFT, 0)


def test_an_eviction_from_a_machine_that_stays_is_no_loss() -> None:
    fleet = Fleet()
    fleet.start("n1")
    fleet.look(60)
    fleet.now += dt.timedelta(seconds=1)
    fleet.reclaimed("n1")
    record = fleet.look(0.5)
    assert (record.state, record.machines) == (hazard.State.HELD, 0)


def test_a_machine_that_goes_a_while_after_its_worker_was_evicted_is_lost_and_once() -> None:
    fleet = Fleet()
    fleet.start("n1")
    fleet.look(60)
    fleet.now += dt.timedelta(seconds=1)
    fleet.reclaimed("n1")
    fleet.worker("n1", gone=True)
    fleet.look(0.5)
    fleet.machine("n1", gone=True)
    assert fleet.look(1).machines == 1
    assert fleet.look(0.5).machines == pytest.approx(1)


def test_a_loss_that_was_recorded_before_this_process_began_is_not_counted_again() -> None:
    fleet = Fleet()
    fleet.reclaimed("n1")
    fleet.start("n2")
    assert fleet.look(0.5).machines == 0


def test_what_a_fallen_pool_has_left_is_no_return_and_a_new_machine_is() -> None:
    fleet = Fleet()
    fleet.start("n1", "n2", "n3")
    fleet.look(60)
    for name in ("n1", "n2"):
        fleet.machine(name, gone=True)
    fleet.now += dt.timedelta(seconds=1)
    fleet.reclaimed("n1")
    assert fleet.look(0.5).state is hazard.State.AWAY
    assert fleet.look(30).state is hazard.State.AWAY
    fleet.machine("n4")
    fleet.worker("n4")
    back = fleet.look(0.5)
    assert (back.state, sum(back.returns.events)) == (hazard.State.HELD, 1)


def test_no_more_pools_are_kept_than_the_budget_has_room_for() -> None:
    fleet = Fleet()
    for number in range(pools.MOST + 5):
        pool = snap.Pool(clouds.Capacity.SPOT, f"zone-{number}", "g5")
        fleet.learning.known[pool] = hazard.Record(seen=float(number))
    fleet.start("n1")
    assert len(fleet.learning.known) == pools.MOST
    assert POOL in fleet.learning.known


# The ConfigMap.


class MapApi:
    """One ConfigMap, or none; `code` refuses everything."""

    def __init__(self, code: int = 0) -> None:
        self.map: dict[str, Any] | None = None
        self.code = code
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.method)
        if self.code:
            return local.refused(self.code)
        if request.method == "POST":
            self.map = await request.json()
        elif self.map is None:
            return local.refused(404)
        elif request.method == "PATCH":
            self.map["data"] |= (await request.json())["data"]
        return web.json_response(self.map)


def keeper(client: clients.Client) -> hazards.Keeper:
    return hazards.Keeper(client, "s", "spottrain-pools")


def test_what_was_kept_is_known_after_a_restart() -> None:
    known = {POOL: hazard.Record().after(1.0, held=True).after(5.0, held=False, lost=1, of=1)}

    async def body() -> None:
        api = MapApi()
        async with local.server(api.answer) as client:
            assert await keeper(client).load() == {}
            await keeper(client).save(known)
            await keeper(client).save(known)
            found = await keeper(client).load()
            assert found.keys() == {POOL}
            assert found[POOL].exits.hours == pytest.approx(known[POOL].exits.hours, rel=0.01)
            assert api.asked == ["GET", "PATCH", "POST", "PATCH", "GET"]

    local.run(body())


def test_without_rights_it_learns_all_the_same_and_says_once_why_nothing_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        async with local.server(MapApi(403).answer) as client:
            one = keeper(client)
            assert await one.load() == {}
            await one.save({})
            assert [record.levelname for record in caplog.records].count("WARNING") == 1

    local.run(body())


def test_a_text_that_cannot_be_read_is_begun_anew(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        api = MapApi()
        api.map = {"data": {"pools.json": '{"version":9}'}}
        async with local.server(api.answer) as client:
            assert await keeper(client).load() == {}
            assert "is of version 9" in caplog.text

    local.run(body())


def test_a_pool_is_named_by_its_parts() -> None:
    assert hazards.pool_of(POOL.key) == POOL
    assert hazards.pool_of("leased/zone-a/g5") is None
