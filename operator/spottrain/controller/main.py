"""`spottrain-operator`: puts the parts together and runs them until a signal or a broken part ends it."""

import asyncio
import collections.abc as cabc
import datetime as dt
import functools
import gc
import logging
import os
import signal
import sys
from typing import Any

from spottrain.api import names
from spottrain.controller import handlers, probes, reconciler
from spottrain.controller import settings as setting
from spottrain.kube import (
    apply,
    election,
    errors,
    hazards,
    leases,
    observe,
    prices,
    reflector,
    served,
    tails,
    views,
    windows,
)
from spottrain.kube import client as clients
from spottrain.kube import clock as clocks
from spottrain.metrics import registry
from spottrain.plan import agents

Object = dict[str, Any]
SWEEP_SECONDS = 120.0

_log = logging.getLogger("spottrain")


class Operator:
    """All parts of one process."""

    def __init__(self, client: clients.Client, settings: setting.Settings) -> None:
        self.settings = settings
        self._client = client
        self._election: election.Election | None = None
        if settings.lease:
            seat = election.Seat(clients.own_namespace(), settings.lease, settings.identity)
            self._election = election.Election(client, seat)
        self._pods = observe.Pods()
        self._nodes = observe.Nodes(settings.decisions)
        places = settings.namespaces or ("",)
        self._pod_caches = tuple(
            self._reflect(clients.PODS, self._pod_changed, place, views.trimmed_pod) for place in places
        )
        self._job_caches = tuple(
            self._reflect(clients.JOBS, self._job_changed, place, views.without_bookkeeping)
            for place in places
        )
        node_cache = reflector.Reflector(client, clients.NODES, self._node_changed, trim=views.metadata_alone)
        self.reflectors = (*self._pod_caches, *self._job_caches, node_cache)
        self.metrics = registry.Metrics(teams=bool(settings.team_label))
        client.sent = self.metrics.sent
        if settings.decisions.agents:
            self.metrics.count_deaf_nodes(
                lambda: len(agents.deaf(self._nodes.by_name.values(), clocks.now()))
            )
        self.tails = tails.Tails(client, self._tail_read)
        self._windows = windows.Windows(self.metrics.lasted)
        self.leases = leases.Leases(
            client, lambda: self._pods.at_work | self._windows.nodes, self._lease_changed
        )
        world = observe.World(
            client=client,
            job_caches=self._job_caches,
            node_cache=node_cache,
            pods=self._pods,
            nodes=self._nodes,
            leases=self.leases,
            tails=self.tails,
            windows=self._windows,
        )
        sinks = apply.Sinks(pod=self._learn_pod, job=self._learn_job)
        applier = apply.Applier(client, world, sinks)
        self.work = reconciler.Reconciler(reconciler.Jobs(), world, applier, settings.decisions, self.metrics)
        self.work.team_label = settings.team_label
        self._prices: prices.Prices | None = None
        if settings.prices_map:
            offers = self._prices = prices.Prices(client, clients.own_namespace(), settings.prices_map)
            self.work.prices = lambda: offers.table

        self.hazards = hazards.Hazards(
            self._pods, self._nodes, self.work.losses, settings.decisions.node_loss
        )
        self.work.known = self.hazards.known

    def _reflect(
        self,
        resource: clients.Resource,
        changed: cabc.Callable[[Object, bool], None],
        namespace: str,
        trim: cabc.Callable[[Object], Object],
    ) -> reflector.Reflector:
        return reflector.Reflector(
            self._client, resource, changed, namespace=namespace, labels=names.LABEL_JOB, trim=trim
        )

    def _pod_changed(self, raw: Object, gone: bool) -> None:  # noqa: FBT001 - the reflector's callback
        key = self._pods.put(raw, gone=gone)
        if key is not None:
            self.work.queue.soon(key)
            if not gone:
                self.tails.want(raw)

    def _tail_read(self, raw: Object) -> None:
        self.work.queue.soon((raw["metadata"]["namespace"], raw["metadata"]["labels"][names.LABEL_JOB]))

    def _job_changed(self, raw: Object, gone: bool) -> None:  # noqa: ARG002, FBT001
        self.work.queue.soon(reflector.key_of(raw))

    def _node_changed(self, raw: Object, gone: bool) -> None:  # noqa: FBT001
        name = raw["metadata"]["name"]
        if self._nodes.put(raw, gone=gone):
            node, end = self._nodes.by_name.get(name), self._last_sign(name)
            self._windows.look(name, node, end, at_work=name in self._pods.at_work)
            self._node_spoke(name)

    def _lease_changed(self, name: str) -> None:
        if self.leases.silent(name):
            self._windows.ended(name, self._last_sign(name), at_work=name in self._pods.at_work)
        self._node_spoke(name)

    def _last_sign(self, name: str) -> dt.datetime:
        return clocks.now() - dt.timedelta(seconds=self.leases.dead_for(name))

    def _node_spoke(self, name: str) -> None:
        for key in self._pods.jobs_on(name):
            self.work.queue.add(key)

    def _learn_pod(self, raw: Object) -> None:
        self._cache(self._pod_caches, raw).learn(raw)

    def _learn_job(self, raw: Object) -> None:
        self._cache(self._job_caches, raw).learn(raw)

    def _cache(self, caches: tuple[reflector.Reflector, ...], raw: Object) -> reflector.Reflector:
        if not self.settings.namespaces:
            return caches[0]
        return caches[self.settings.namespaces.index(raw["metadata"]["namespace"])]

    async def sweep(self) -> None:
        """List all jobs every two minutes: a DELETED event that kopf missed, or a lost wake-up, ends here."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._sweep_once()

    async def _sweep_once(self) -> None:
        items: list[Object] = []
        versions: list[int] = []
        for place in self.settings.namespaces or ("",):
            try:
                answer = await self._client.request("GET", clients.SPOT_TRAINING_JOBS.path(place))
            except errors.KubeError as error:
                _log.warning("sweep: %s", error)
                return
            items += answer["items"]
            versions.append(int(answer["metadata"]["resourceVersion"]))
        found = self.work.jobs.replace(items, min(versions))
        for number, key in enumerate(found):  # spread out, so that a fresh loss finds the queue short
            self.work.queue.add(key, number * SWEEP_SECONDS / (2 * len(found)))

    async def synced(self) -> None:
        """Until every cache is filled."""
        await asyncio.gather(*(one.synced.wait() for one in self.reflectors))

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`, or until a part ends that should not; its error is raised.

        Without an election this process leads. With one it fills its caches and stands by until it does.
        """
        resource = served.Served(self._client)
        self.work.lacking = lambda: resource.lacking
        health = probes.Health(self.reflectors, resource)
        for one in self.reflectors:
            self.metrics.time_watch(one.name, functools.partial(health.silence, one))
        server = await probes.serve(self.settings.http_port, health, self.metrics)
        parts = [asyncio.create_task(one.run(), name=one.name) for one in self.reflectors]
        parts += [
            asyncio.create_task(resource.run(), name="resource"),
            asyncio.create_task(self._lead(), name="leader"),
            asyncio.create_task(_wait(stop), name="stop"),
        ]
        try:
            ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                return
            for part in ended:
                part.result()
                raise RuntimeError(f"{part.get_name()} ended by itself")
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            if self._election is not None:
                await self._election.resign()
            await server.cleanup()

    async def _lead(self) -> None:
        """Everything that only the leader does, once it leads."""
        async with asyncio.TaskGroup() as parts:
            if self._election is not None:
                await self._election.win()
                parts.create_task(self._election.hold(), name="election")
            self._windows.begin()
            if self._prices is not None:
                await self._prices.read()
                parts.create_task(self._prices.run(), name="prices")
            parts.create_task(self.work.run(self.synced()), name="workers")
            parts.create_task(self.sweep(), name="sweep")
            parts.create_task(self._learn(), name="hazards")
            parts.create_task(self.leases.run(), name="leases")
            parts.create_task(self.work.progress.run(), name="progress")
            parts.create_task(self.work.deadlines.run(), name="deadlines")
            parts.create_task(
                handlers.run(self.work, self.settings.namespaces, self._client.recovery), name="kopf"
            )

    async def _learn(self) -> None:
        await self.synced()
        keeper = None
        if self.settings.pools_map:
            keeper = hazards.Keeper(self._client, clients.own_namespace(), self.settings.pools_map)
        await hazards.run(self.hazards, keeper, self._show_pools)

    def _show_pools(self, known: hazards.Records, now: float) -> None:
        self.metrics.pools(
            {
                (str(pool.capacity), pool.zone, pool.instance_type): (record.hazard, record.resting(now))
                for pool, record in known.items()
            }
        )


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def run(settings: setting.Settings) -> None:
    """Connect, run, and leave on SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = await clients.Client.connect()
    try:
        await Operator(client, settings).run(stop)
    finally:
        await client.close()


def main() -> None:
    """Entry point of the console script."""
    settings = setting.parse(sys.argv[1:], os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # kopf logs every event that it hands on; what was done about it is logged by us.
    logging.getLogger("kopf.objects").setLevel(max(logging.WARNING, logging.root.level))
    # What was imported stays: collections of garbage need not walk over it again and again.
    gc.freeze()
    asyncio.run(run(settings))
