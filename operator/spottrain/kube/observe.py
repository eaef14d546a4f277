"""A snapshot of one job from the caches. Only taken when every cache is synced."""

import collections
import collections.abc as cabc
import dataclasses
import datetime as dt
from typing import Any

from spottrain.api import clouds, names, spec, status
from spottrain.api import prices as price
from spottrain.kube import client as clients
from spottrain.kube import clock, errors, leases, recent, reflector, tails, views, windows
from spottrain.plan import snapshot as snap
from spottrain.policy import deadline, hazard
from spottrain.render import job as render_job

Object = dict[str, Any]
GONE_KEPT = 1024


@dataclasses.dataclass(frozen=True)
class Owned:
    """A pod and the UID of its controller."""

    owner: str
    pod: snap.Pod
    nodeless: bool = False
    """The API server itself has said that there is no node of the name that the pod is bound to."""

    @property
    def at_work_on(self) -> str:
        """The name of its node, until it has ended."""
        return "" if self.pod.ended else self.pod.node


INDEXES_DEPARTED = 2000
"""Twice the largest gang, and far more indexes of an Independent job than end between two passes."""


class Pods:
    """Workers by the job that they name, parsed once each.

    Gone ones stay as last seen: the last two of an index, and those of so many indexes that went last.
    """

    def __init__(self) -> None:
        self._present: dict[reflector.Key, dict[str, Owned]] = {}
        self._departed: dict[reflector.Key, collections.OrderedDict[tuple[str, int], tuple[Owned, ...]]] = {}
        self._at_work: collections.Counter[str] = collections.Counter()
        self._batch_jobs: dict[reflector.Key, tuple[str, set[str]]] = {}

    def put(self, raw: Object, *, gone: bool) -> reflector.Key | None:
        """Take in a pod's newest state; returns the key of its job, or None if it is no worker."""
        if not views.is_worker(raw):
            return None
        metadata = raw["metadata"]
        key = (metadata["namespace"], metadata["labels"][names.LABEL_JOB])
        owned = Owned(views.controller_uid(raw), views.pod(raw))
        present = self._present.setdefault(key, {})
        before = present.pop(metadata["uid"], None)
        if before is not None:
            self._count(before, -1)
            asked = before.pod.asked
            owned = dataclasses.replace(owned, pod=dataclasses.replace(owned.pod, first_asked=asked))
        if gone:
            self._bury(key, dataclasses.replace(owned, pod=dataclasses.replace(owned.pod, left=clock.now())))
        else:
            present[metadata["uid"]] = owned
            self._count(owned, 1)
        return key

    def _count(self, owned: Owned, difference: int) -> None:
        node = owned.at_work_on
        if node:
            self._at_work[node] += difference
            if not self._at_work[node]:
                del self._at_work[node]

    def _bury(self, key: reflector.Key, owned: Owned) -> None:
        departed = self._departed.setdefault(key, collections.OrderedDict())
        place = (owned.owner, owned.pod.index)
        before = [one for one in departed.pop(place, ()) if one.pod.uid != owned.pod.uid]
        departed[place] = (*before, owned)[-2:]
        while len(departed) > INDEXES_DEPARTED:
            departed.popitem(last=False)

    def present(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """The pods of that job whose controller has that UID."""
        pods = self._present.get(key, {}).values()
        return tuple(one.pod for one in pods if one.owner == owner)

    def leftover(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """Those that have not ended and whose controller is another one; orphans have none."""
        pods = self._present.get(key, {}).values()
        return tuple(one.pod for one in pods if one.owner not in {"", owner} and not one.pod.ended)

    def own(self, key: reflector.Key, uid: str, batch_job: str) -> None:
        """That Job is the one of the SpotTrainingJob with the UID `uid`, which may have had others before."""
        whose, known = self._batch_jobs.get(key, ("", set()))
        self._batch_jobs[key] = (uid, {batch_job} if whose != uid else {*known, batch_job})

    def departed(self, key: reflector.Key, uid: str) -> tuple[snap.Pod, ...]:
        """Those of the SpotTrainingJob with that UID that are gone; of an index and a Job the oldest first.

        Also those of a Job that somebody has deleted: a worker that went with it unrecorded was there.
        """
        whose, owners = self._batch_jobs.get(key, ("", set()))
        gone = self._departed.get(key)
        if gone is None or whose != uid:
            return ()
        return tuple(one.pod for (owner, _), pods in gone.items() if owner in owners for one in pods)

    def nodes_of(self, key: reflector.Key) -> set[str]:
        """Names of the nodes that the job's pods are bound to, without those that are known not to be."""
        pods = self._present.get(key, {}).values()
        return {one.pod.node for one in pods if one.pod.node and not one.nodeless}

    def mark_nodeless(self, key: reflector.Key, node: str) -> None:
        """There is no such node. Said of the pods of this moment: the next one may run on its successor."""
        pods = self._present.get(key, {})
        for uid, one in pods.items():
            if one.pod.node == node:
                pods[uid] = dataclasses.replace(one, nodeless=True)

    @property
    def at_work(self) -> cabc.Set[str]:
        """Names of the nodes that carry a worker that has not ended."""
        return self._at_work.keys()

    @property
    def find_no_place(self) -> bool:
        """Some worker that may run on spot, in every pool, finds room nowhere."""
        everyone = (one.pod for pods in self._present.values() for one in pods.values())
        return any(
            one.unschedulable and one.ask is not clouds.Ask.ON_DEMAND and not (one.pools or one.ended)
            for one in everyone
        )

    def jobs_on(self, node: str) -> list[reflector.Key]:
        """The jobs that have a worker on that node."""
        return [
            key for key, pods in self._present.items() if any(one.pod.node == node for one in pods.values())
        ]

    def forget(self, key: reflector.Key) -> None:
        """The job is gone for good; what still exists of its pods stays."""
        self._departed.pop(key, None)
        self._batch_jobs.pop(key, None)
        if not self._present.get(key):
            self._present.pop(key, None)


class Nodes:
    """Every node, parsed once per change."""

    def __init__(self, settings: snap.Settings) -> None:
        self._settings = settings
        self.by_name: dict[str, snap.Node] = {}
        self._seen: dict[str, tuple[snap.Node, snap.Node]] = {}
        self.gone: recent.Recent[snap.Node] = recent.Recent(GONE_KEPT)
        """Those that are gone, as they were last seen: what they were, not that they are."""

    def put(self, raw: Object, *, gone: bool) -> bool:
        """Take in a node's newest state; returns whether anything that decisions depend on has changed."""
        name = raw["metadata"]["name"]
        before = self.by_name.get(name)
        if gone:
            if before is not None and before.uid == raw["metadata"]["uid"]:
                self.gone.set(name, self.by_name.pop(name))
                self._seen.pop(name, None)
                return True
            return False
        self.by_name[name] = views.node(raw, self._settings)
        return self.by_name[name] != before

    def seen(self, name: str, *, watched: bool, silent: bool, doubtful: bool = False) -> snap.Node:
        """The node with what else is known of it; kept, since every snapshot holds all of them."""
        node, kept = self.by_name[name], self._seen.get(name)
        known = None if kept is None else (kept[1].watched, kept[1].silent, kept[1].doubtful)
        if kept is None or kept[0] is not node or known != (watched, silent, doubtful):
            now = dataclasses.replace(node, watched=watched, silent=silent, doubtful=doubtful)
            kept = self._seen[name] = (node, now)
        return kept[1]


@dataclasses.dataclass(frozen=True)
class Moment:
    """What a snapshot needs beside the caches."""

    now: dt.datetime
    fresh_id: str
    settings: snap.Settings
    refusal: snap.Refusal | None
    tried: str = ""
    losses: tuple[snap.Loss, ...] = ()
    known: cabc.Mapping[snap.Pool, hazard.Record] = dataclasses.field(default_factory=dict)
    progress: snap.Progress | None = None
    prices: price.Table = price.NO_PRICES
    plan: deadline.Plan | None = None
    lacking: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class World:
    """The caches that snapshots are taken from."""

    client: clients.Client
    job_caches: tuple[reflector.Reflector, ...]
    node_cache: reflector.Reflector
    pods: Pods
    nodes: Nodes
    leases: leases.Leases
    tails: tails.Tails
    windows: windows.Windows

    def _present(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """The job's pods, failed ones with the tail of their log."""
        pods = self.pods.present(key, owner)
        return tuple(
            dataclasses.replace(one, tail=self.tails.get(one.uid)) if one.outcome == "Failed" else one
            for one in pods
        )

    def _nodes(self) -> dict[str, snap.Node]:
        """All nodes, with who carries workers and what their leases say of them."""
        nodes = dict(self.nodes.by_name)
        for name in nodes.keys() & (self.pods.at_work | self.leases.silenced):
            watched, silent = name in self.pods.at_work, self.leases.silent(name)
            doubtful = self.leases.doubtful(name)
            nodes[name] = self.nodes.seen(name, watched=watched, silent=silent, doubtful=doubtful)
        return nodes

    def _gone_nodes(self, pods: tuple[snap.Pod, ...]) -> dict[str, snap.Node]:
        absent = {one.node for one in pods} - self.nodes.by_name.keys()
        return {name: node for name in absent if (node := self.nodes.gone.get(name))}

    async def look_for_absent_nodes(self, key: reflector.Key) -> None:
        """Ask the API server itself about nodes that pods name and the cache doesn't have.

        Two watches are never at the same moment: a pod on a machine that has just joined, or while the watch
        of nodes is down, must not look like a pod whose node is gone. When this returns, every node of the
        job's pods is known, or known to be gone: pods that came while it asked are looked at too.
        """
        while absent := self.pods.nodes_of(key) - self.nodes.by_name.keys():
            await clients.in_parallel(self._look_for(key, name) for name in absent)

    async def _look_for(self, key: reflector.Key, name: str) -> None:
        try:
            raw = await self.client.request("GET", clients.NODES.path(name=name))
        except errors.NotFoundError:
            self.pods.mark_nodeless(key, name)
        else:
            self.node_cache.learn(raw)
            if name not in self.nodes.by_name:
                raise errors.UnreachableError(f"node {name} is there, and its watch says that it is gone")

    def live_job(self, key: reflector.Key) -> Object | None:
        """The batch/v1 Job of that name as the cluster has it."""
        return next((found for one in self.job_caches if (found := one.get(*key))), None)

    def snapshot(self, raw: Object, moment: Moment) -> snap.Snapshot:
        """The job as it stands; only pods of its live Job count."""
        metadata = raw["metadata"]
        key = (metadata["namespace"], metadata["name"])
        raw_job = self.live_job(key)
        job = views.job(raw_job, metadata["uid"]) if raw_job else None
        owner = job.uid if job else ""
        wishes = _spec(raw)
        if job is not None and job.ours:
            self.pods.own(key, metadata["uid"], owner)
        pods, departed = self._present(key, owner), self.pods.departed(key, metadata["uid"])
        return snap.Snapshot(
            namespace=key[0],
            name=key[1],
            uid=metadata["uid"],
            generation=metadata.get("generation", 0),
            spec=wishes,
            status=status.parse(raw.get("status") or {}),
            job=job,
            pods=pods if job else (),
            departed=departed if job else (),
            leftover=self.pods.leftover(key, owner),
            nodes=self._nodes(),
            gone_nodes=self._gone_nodes((*pods, *departed)),
            now=moment.now,
            fresh_id=moment.fresh_id,
            template_hash="" if isinstance(wishes, Exception) else render_job.template_hash(wishes),
            settings=moment.settings,
            refusal=moment.refusal,
            tried=moment.tried,
            losses=moment.losses,
            windows=self.windows.recent,
            known=moment.known,
            progress=moment.progress,
            prices=moment.prices,
            plan=moment.plan,
            lacking=moment.lacking,
            deleting="deletionTimestamp" in metadata,
        )


def _spec(raw: Object) -> spec.Spec | spec.InvalidSpecError:
    try:
        return spec.parse(raw.get("spec") or {})
    except spec.InvalidSpecError as error:
        return error
