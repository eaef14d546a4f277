"""A snapshot of one job from the caches. Only taken when every cache is synced."""

import dataclasses
import datetime as dt
from typing import Any

from spottrain.api import names, spec, status
from spottrain.kube import client as clients
from spottrain.kube import errors, leases, reflector, tails, views
from spottrain.plan import snapshot as snap
from spottrain.render import job as render_job

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Owned:
    """A pod and the UID of its controller."""

    owner: str
    pod: snap.Pod


class Pods:
    """Workers by the job that they name, parsed once each; gone ones stay as last seen, two attempts long."""

    def __init__(self) -> None:
        self._present: dict[reflector.Key, dict[str, Owned]] = {}
        self._departed: dict[reflector.Key, dict[str, Owned]] = {}

    def put(self, raw: Object, *, gone: bool) -> reflector.Key | None:
        """Take in a pod's newest state; returns the key of its job, or None if it is no worker."""
        if not views.is_worker(raw):
            return None
        metadata = raw["metadata"]
        key = (metadata["namespace"], metadata["labels"][names.LABEL_JOB])
        owned = Owned(views.controller_uid(raw), views.pod(raw))
        present = self._present.setdefault(key, {})
        if gone:
            present.pop(metadata["uid"], None)
            self._bury(key, owned)
        else:
            present[metadata["uid"]] = owned
        return key

    def _bury(self, key: reflector.Key, owned: Owned) -> None:
        departed = self._departed.setdefault(key, {})
        departed[owned.pod.uid] = owned
        newest = max(one.pod.attempt for one in departed.values())
        for uid in [uid for uid, one in departed.items() if one.pod.attempt < newest - 1]:
            del departed[uid]

    def present(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """The pods of that job whose controller has that UID."""
        return _of(self._present, key, owner)

    def departed(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """Those that are gone, the oldest first."""
        return _of(self._departed, key, owner)

    def nodes_of(self, key: reflector.Key) -> set[str]:
        """Names of the nodes that the job's pods are bound to."""
        return {one.pod.node for one in self._present.get(key, {}).values() if one.pod.node}

    def all_nodes(self) -> set[str]:
        """Names of the nodes that carry a worker that has not ended."""
        everyone = (one.pod for pods in self._present.values() for one in pods.values())
        return {pod.node for pod in everyone if pod.node and not pod.ended}

    def jobs_on(self, node: str) -> list[reflector.Key]:
        """The jobs that have a worker on that node."""
        return [
            key for key, pods in self._present.items() if any(one.pod.node == node for one in pods.values())
        ]

    def forget(self, key: reflector.Key) -> None:
        """The job is gone for good; what still exists of its pods stays."""
        self._departed.pop(key, None)
        if not self._present.get(key):
            self._present.pop(key, None)


def _of(where: dict[reflector.Key, dict[str, Owned]], key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
    return tuple(one.pod for one in where.get(key, {}).values() if one.owner == owner)


class Nodes:
    """Every node, parsed once per change."""

    def __init__(self, settings: snap.Settings) -> None:
        self._settings = settings
        self.by_name: dict[str, snap.Node] = {}
        self.gone: set[str] = set()
        """Names that the API server itself has answered with 404."""

    def put(self, raw: Object, *, gone: bool) -> bool:
        """Take in a node's newest state; returns whether anything that decisions depend on has changed."""
        name = raw["metadata"]["name"]
        before = self.by_name.get(name)
        if gone:
            return self.by_name.pop(name, None) is not None
        self.gone.discard(name)
        self.by_name[name] = views.node(raw, self._settings)
        return self.by_name[name] != before


@dataclasses.dataclass(frozen=True)
class Moment:
    """What a snapshot needs beside the caches."""

    now: dt.datetime
    fresh_id: str
    settings: snap.Settings
    refusal: snap.Refusal | None


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

    def _present(self, key: reflector.Key, owner: str) -> tuple[snap.Pod, ...]:
        """The job's pods, failed ones with the tail of their log."""
        pods = self.pods.present(key, owner)
        return tuple(
            dataclasses.replace(one, tail=self.tails.get(one.uid)) if one.phase == "Failed" else one
            for one in pods
        )

    def _nodes(self) -> dict[str, snap.Node]:
        """All nodes, with what their leases say of them."""
        watched = self.leases.watched
        return {
            name: dataclasses.replace(node, watched=name in watched, silent=self.leases.silent(name))
            for name, node in self.nodes.by_name.items()
        }

    async def look_for_absent_nodes(self, key: reflector.Key) -> None:
        """Ask the API server itself about nodes that pods name and the cache doesn't have.

        Two watches are never at the same moment: a pod on a machine that has just joined, or while the watch
        of nodes is down, must not look like a pod whose node is gone.
        """
        named = self.pods.nodes_of(key)
        for name in named - self.nodes.by_name.keys() - self.nodes.gone:
            try:
                raw = await self.client.request("GET", clients.NODES.path(name=name))
            except errors.NotFoundError:
                self.nodes.gone.add(name)
            else:
                self.node_cache.learn(raw)

    def live_job(self, key: reflector.Key) -> Object | None:
        """The batch/v1 Job of that name as the cluster has it."""
        return next((found for one in self.job_caches if (found := one.get(*key))), None)

    def snapshot(self, raw: Object, moment: Moment) -> snap.Snapshot:
        """The job as it stands; only pods of its live Job count."""
        metadata = raw["metadata"]
        key = (metadata["namespace"], metadata["name"])
        raw_job = self.live_job(key)
        job = views.job(raw_job, metadata["uid"]) if raw_job else None
        wishes = _spec(raw)
        return snap.Snapshot(
            namespace=key[0],
            name=key[1],
            uid=metadata["uid"],
            generation=metadata.get("generation", 0),
            spec=wishes,
            status=status.parse(raw.get("status") or {}),
            job=job,
            pods=self._present(key, job.uid) if job else (),
            departed=self.pods.departed(key, job.uid) if job else (),
            nodes=self._nodes(),
            now=moment.now,
            fresh_id=moment.fresh_id,
            template_hash="" if isinstance(wishes, Exception) else render_job.template_hash(wishes),
            settings=moment.settings,
            refusal=moment.refusal,
            deleting="deletionTimestamp" in metadata,
        )


def _spec(raw: Object) -> spec.Spec | spec.InvalidSpecError:
    try:
        return spec.parse(raw.get("spec") or {})
    except spec.InvalidSpecError as error:
        return error
