"""What is learnt of pools from the machines that workers hold, and the ConfigMap that keeps it over restarts.

Every half minute it is looked at which machines carry workers, and which of those that did are gone. One that
goes when its worker has ended was not taken: an autoscaler gives back what nobody needs. So a loss is only
believed where some job has recorded a reclaim in that pool; the other machines of the pool that go in the
same half minute, or are under notice, are then part of it.
"""

import asyncio
import collections.abc as cabc
import dataclasses
import datetime as dt
import logging
from typing import Any

from spottrain.api import clouds
from spottrain.kube import client as clients
from spottrain.kube import clock, errors, losses, observe, recent
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard, pools

LOOK = 30.0
SAVE = 300.0
"""Seconds between two writes, at least: what a restart may lose of what was learnt."""
LOST_KEPT = 1024
DRAIN = dt.timedelta(minutes=5)
"""A machine may go so long after its workers were evicted."""

Records = dict[snap.Pool, hazard.Record]
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Machine:
    """One that carries workers, and since when we know of it (hours since 1970)."""

    uid: str
    pool: snap.Pool
    since: float


class Hazards:
    """Learns while it runs; what it knows is of help, and never needed."""

    def __init__(
        self, pods: observe.Pods, nodes: observe.Nodes, lost: losses.Losses, patience: float
    ) -> None:
        self.known: Records = {}
        self._pods, self._nodes, self._losses, self._patience = pods, nodes, lost, patience
        self._held: dict[str, Machine] = {}
        self._taken: recent.Recent[None] = recent.Recent(LOST_KEPT)
        self._counted: recent.Recent[None] = recent.Recent(LOST_KEPT)
        self._begun: dt.datetime | None = None

    def look(self, now: dt.datetime) -> None:
        """Take in how things are."""
        hours, before = now.timestamp() / 3600, self._held
        self._begun = self._begun or now
        taken = self._newly_taken(max(self._begun, now - DRAIN), now)
        for name in taken.keys() & before.keys():
            self._taken.set(before[name].uid, None)
        self._held = self._holding(hours)
        waits = self._pods.find_no_place
        for pool in {one.pool for one in (*before.values(), *self._held.values())} | set(self.known):
            lost = {name for name, where in taken.items() if where == pool}
            had = {name for name, one in before.items() if one.pool == pool} | lost
            record = self.known.get(pool, hazard.Record())
            away = record.state is hazard.State.AWAY
            mine = [one for one in self._held.values() if one.pool == pool]
            held = any(one.since > record.since for one in mine) if away else bool(mine)
            self.known[pool] = record.after(hours, held=held, lost=len(lost), of=len(had), tried=waits)
        newest = sorted(self.known, key=lambda pool: self.known[pool].seen, reverse=True)
        for pool in newest[pools.MOST :]:
            del self.known[pool]

    def _holding(self, hours: float) -> dict[str, Machine]:
        """The spot machines that carry workers and were not taken."""
        nodes = self._nodes.by_name
        there = {name: node for name in self._pods.at_work if (node := nodes.get(name))}
        return {
            name: self._same(name, node) or Machine(node.uid, node.pool, hours)
            for name, node in there.items()
            if node.capacity is clouds.Capacity.SPOT and node.pool.named and node.uid not in self._taken
        }

    def _same(self, name: str, node: snap.Node) -> Machine | None:
        known = self._held.get(name)
        return known if known is not None and known.uid == node.uid else None

    def _newly_taken(self, since: dt.datetime, now: dt.datetime) -> dict[str, snap.Pool]:
        """Machines that go, with their pools; each loss that a job has recorded `since` then counts once."""
        named = {}
        for one in self._losses.since(since):
            mark = f"{one.node} {one.time}"
            spot = one.pool.capacity is clouds.Capacity.SPOT and one.pool.named
            if spot and mark not in self._counted and self._goes(one.node, now):
                named[one.node] = one.pool
                self._counted.set(mark, None)
        hit = set(named.values())
        held = self._held.items()
        return {
            **{name: one.pool for name, one in held if one.pool in hit and self._goes(name, now)},
            **named,
        }

    def _goes(self, name: str, now: dt.datetime) -> bool:
        """It is gone, another one has its name, or it is about to go: an eviction alone takes no machine."""
        node, held = self._nodes.by_name.get(name), self._held.get(name)
        if node is None or (held is not None and held.uid != node.uid):
            return True
        return bool(node.notice) or node.unschedulable or node.unheard(now, self._patience)


class Keeper:
    """One ConfigMap. What can't be read or written is told in the log once, and done without."""

    def __init__(self, client: clients.Client, namespace: str, name: str) -> None:
        self._client, self._namespace, self._name = client, namespace, name
        self._troubled = False

    async def load(self) -> Records:
        """What was kept; nothing where there is none, or none that can be read."""
        try:
            found = await self._client.request("GET", self._path(self._name))
            records = pools.decode((found.get("data") or {}).get(pools.KEY) or pools.encode({}))
        except errors.NotFoundError:
            return {}
        except (errors.KubeError, ValueError) as error:
            self._tell(error)
            return {}
        return {pool: one for key, one in records.items() if (pool := pool_of(key)) is not None}

    async def save(self, known: cabc.Mapping[snap.Pool, hazard.Record]) -> None:
        """Write it."""
        data = {pools.KEY: pools.encode({pool.key: one for pool, one in known.items()})}
        body: dict[str, Any] = {"metadata": {"name": self._name, "namespace": self._namespace}, "data": data}
        try:
            try:
                await self._client.request(
                    "PATCH", self._path(self._name), body={"data": data}, content_type=clients.MERGE_PATCH
                )
            except errors.NotFoundError:
                await self._client.request("POST", self._path(), body=body)
        except errors.KubeError as error:
            self._tell(error)
        else:
            self._troubled = False

    def _path(self, name: str = "") -> str:
        return clients.CONFIG_MAPS.path(self._namespace, name)

    def _tell(self, error: Exception) -> None:
        level = logging.INFO if self._troubled else logging.WARNING
        _log.log(level, "what is learnt of pools is not kept: ConfigMap %s: %s", self._name, error)
        self._troubled = True


def pool_of(key: str) -> snap.Pool | None:
    """The pool that a record is of; None where a newer version has other words."""
    capacity, _, rest = key.partition("/")
    zone, _, instance_type = rest.partition("/")
    known = [one for one in clouds.Capacity if one == capacity]
    return snap.Pool(known[0], zone, instance_type) if known else None


async def run(learning: Hazards, keeper: Keeper | None, show: cabc.Callable[[Records, float], None]) -> None:
    """Learn, show and keep, until cancelled."""
    if keeper is not None:
        kept, hours = await keeper.load(), clock.now().timestamp() / 3600
        learning.known.update({pool: record.resumed(hours) for pool, record in kept.items()})
    saved = asyncio.get_running_loop().time()
    while True:
        now = clock.now()
        learning.look(now)
        show(learning.known, now.timestamp() / 3600)
        if keeper is not None and asyncio.get_running_loop().time() - saved >= SAVE and learning.known:
            await keeper.save(learning.known)
            saved = asyncio.get_running_loop().time()
        await asyncio.sleep(LOOK)
