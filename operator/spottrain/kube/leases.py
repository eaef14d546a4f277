"""Which nodes have fallen silent, by the leases that their kubelets renew.

Kubernetes calls a node NotReady after 50 s by default; the lease shows it sooner. What is timed is when *we*
saw the lease change, on our monotonic clock: `renewTime` is the kubelet's clock, and after an outage of the
API every lease looks old. A failed or late read starts all counts again from zero; a node that was silent
before it stays so until its lease is seen to change.
"""

import asyncio
import collections.abc as cabc
import dataclasses
import logging
import math
from typing import Any

from spottrain.kube import client as clients
from spottrain.kube import errors

Object = dict[str, Any]

LEASES = clients.Resource("/apis/coordination.k8s.io/v1", "leases")
NAMESPACE = "kube-node-lease"
POLL_SECONDS = 2.0
LATE_SECONDS = 3 * POLL_SECONDS
SILENCE_SHARE = 0.85
"""Of the lease's duration (40 s by default, renewed every 10 s): after 34 s three renewals have failed."""
RENEWAL_SHARE = 0.25
"""Of the lease's duration: after so long a kubelet renews it."""
AFTER_GAP = 3.0
"""No node is called silent sooner after an outage than that took, or than so many times as long as else: who
asked in vain for minutes asks again more rarely (seen: kwok's machines, after 300 s without an API server,
took longer than 34 s, and one that had renewed once didn't again for 34 s)."""
DEFAULT_DURATION = 40.0
MOST_SINGLE_READS = 20

_log = logging.getLogger(__name__)


@dataclasses.dataclass
class _Sight:
    """What was last seen of one lease: its version, and since when on our clock."""

    version: str
    since: float
    limit: float
    doubt: float = 0.0
    """Until when, on our clock, nothing is made of what Kubernetes says of the node."""


class Leases:
    """Reads the leases of the nodes that carry workers and tells which have stopped being renewed.

    `wanted` gives their names; `changed` is called with the name of each node that falls silent or is heard
    again.
    """

    def __init__(
        self,
        client: clients.Client,
        wanted: cabc.Callable[[], cabc.Set[str]],
        changed: cabc.Callable[[str], None],
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._changed = changed
        self._sights: dict[str, _Sight] = {}
        self._silent: set[str] = set()
        self._read_at: float | None = None
        self._gap: float | None = None
        """Since when, on our clock, reads have failed."""
        self._back: float = -math.inf
        """When, on our clock, reads went well again after the last outage."""
        self._outage: float = 0.0
        """How long that was, in seconds."""

    @property
    def silenced(self) -> cabc.Set[str]:
        """Names of the nodes whose leases have not changed for too long."""
        return self._silent

    def silent(self, name: str) -> bool:
        """The node's lease has not changed for too long."""
        return name in self._silent

    def doubtful(self, name: str) -> bool:
        """Nothing can be said of the node yet: for a while we could not read, and so perhaps nobody could.

        After an outage of the API Kubernetes calls nodes NotReady whose kubelets could not renew leases, and
        takes it back some time after they have.
        """
        sight = self._sights.get(name)
        return sight is not None and sight.doubt > 0 and name not in self._silent

    def dead_for(self, name: str) -> float:
        """For how many seconds the node has been dead, to half a renewal: 0 while none is missing."""
        sight = self._sights.get(name)
        if sight is None:
            return 0.0
        quiet = asyncio.get_running_loop().time() - sight.since
        renewal = sight.limit / SILENCE_SHARE * RENEWAL_SHARE
        return quiet - renewal / 2 if quiet > renewal + 2 * POLL_SECONDS else 0.0

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                # Silent ones also when their last worker is gone: no new one may be put there.
                found = await self._read(self._wanted() | self._silent)
            except errors.KubeError as error:
                _log.warning("leases: %s", error)
                self._gap = asyncio.get_running_loop().time() if self._gap is None else self._gap
                self._forget_times()
            else:
                self._look(found, asyncio.get_running_loop().time())
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self, names: cabc.Set[str]) -> dict[str, Object]:
        """The leases of those nodes, one by one, or in one list where they are many."""
        if len(names) > MOST_SINGLE_READS:
            answer = await self._client.request("GET", LEASES.path(NAMESPACE))
            return {
                one["metadata"]["name"]: one for one in answer["items"] if one["metadata"]["name"] in names
            }
        found = await clients.in_parallel(self._read_one(name) for name in sorted(names))
        return {one["metadata"]["name"]: one for one in found if one is not None}

    async def _read_one(self, name: str) -> Object | None:
        try:
            return await self._client.request("GET", LEASES.path(NAMESPACE, name))
        except errors.NotFoundError:
            return None

    def _forget_times(self) -> None:
        """Nothing that was timed across a gap counts."""
        self._read_at = None
        for name in self._sights.keys() - self._silent:
            del self._sights[name]

    def _look(self, found: dict[str, Object], now: float) -> None:
        if self._read_at is not None and now - self._read_at > LATE_SECONDS:
            self._forget_times()
        self._read_at = now
        if self._gap is not None:
            self._back, self._outage = now, now - self._gap
        for name in self._sights.keys() - found.keys():
            del self._sights[name]
            self._set(name, silent=False)
        for name, lease in found.items():
            self._look_at(name, lease, now)
        self._gap = None

    def _look_at(self, name: str, lease: Object, now: float) -> None:
        version = lease["metadata"]["resourceVersion"]
        known = self._sights.get(name)
        if known is None or known.version != version:
            seconds = (lease.get("spec") or {}).get("leaseDurationSeconds") or DEFAULT_DURATION
            usual = SILENCE_SHARE * seconds
            after_outage = self._back + min(self._outage, AFTER_GAP * usual) - now
            limit, doubt = max(usual, after_outage), self._doubt(known, now + usual)
            self._sights[name] = _Sight(version, now, limit, doubt)
            self._set(name, silent=False)
        elif now - known.since >= known.limit:
            self._set(name, silent=True)
        if known is not None and 0 < known.doubt <= now:
            self._sights[name].doubt = 0.0
            self._changed(name)

    def _doubt(self, known: _Sight | None, end: float) -> float:
        """After a gap: without an end until the lease changes, and from then on until that one."""
        if known is None:
            return 0.0 if self._gap is None else math.inf
        return end if known.doubt == math.inf else known.doubt

    def _set(self, name: str, *, silent: bool) -> None:
        if silent == (name in self._silent):
            return
        if silent:
            self._silent.add(name)
            _log.warning("node %s has stopped renewing its lease", name)
        else:
            self._silent.discard(name)
        self._changed(name)
