"""One active operator of several, by a Lease (coordination.k8s.io/v1), as client-go does it.

Whether the holder is alive is judged by when *we* last saw the Lease change, on our monotonic clock, never by
comparing its times with ours. A leader that could not renew for RENEW_DEADLINE gives up by itself, before
anybody else may take over.
"""

import asyncio
import dataclasses
import logging
from typing import Any

from spottrain.kube import client as clients
from spottrain.kube import clock, errors, leases

Object = dict[str, Any]

DURATION = 15.0
RENEW_DEADLINE = 10.0
RETRY = 2.0

_log = logging.getLogger(__name__)


class LeadershipLostError(Exception):
    """The Lease could not be renewed in time, or somebody else holds it: this process must end."""


@dataclasses.dataclass(frozen=True)
class Seat:
    """The Lease that is fought for, the name of the candidate, and how long things take, in seconds."""

    namespace: str
    name: str
    identity: str
    duration: float = DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry: float = RETRY


class Election:
    """A candidate; later perhaps the leader."""

    def __init__(self, client: clients.Client, seat: Seat) -> None:
        self._client = client
        self._seat = seat
        self._seen_version = ""
        self._seen_at = 0.0
        self.leading = False
        self.renewed = 0.0
        """Monotonic seconds: when the last renewal that went through was asked for. Others time the Lease
        from its change, which is before our answer comes."""

    async def win(self) -> None:
        """Return as the leader, however long that takes."""
        while not self.leading:
            begun = _monotonic()
            taken = await self._try()
            self.renewed = begun
            self.leading = taken and not self._run_out()
            if not self.leading:
                await asyncio.sleep(self._seat.retry)
        _log.info("%s leads", self._seat.identity)

    async def hold(self) -> None:
        """Renew until cancelled.

        Raises:
            LeadershipLostError: not renewed for the seat's `renew_deadline`.

        """
        while True:
            await asyncio.sleep(self._seat.retry)
            begun = _monotonic()
            try:
                async with asyncio.timeout_at(self.renewed + self._seat.renew_deadline):
                    if await self._try():
                        self.renewed = begun
            except TimeoutError:
                _log.warning("no answer to a renewal of the Lease")
            if self._run_out():
                self.leading = False
                raise LeadershipLostError(f"the Lease {self._seat.name} was not renewed in time")

    def _run_out(self) -> bool:
        return _monotonic() - self.renewed >= self._seat.renew_deadline

    async def resign(self) -> None:
        """Give the Lease up, so that the next one need not wait for it to run out."""
        if not self.leading:
            return
        self.leading = False
        try:
            lease = await self._get()
            if lease is not None and lease["spec"].get("holderIdentity") == self._seat.identity:
                await self._put(lease, holder="")
        except errors.KubeError as error:
            _log.info("the Lease will run out by itself: %s", error)

    async def _try(self) -> bool:
        """Take the Lease or renew it; False if it is somebody else's, or nothing can be said."""
        try:
            lease = await self._get()
            if lease is None:
                await self._create()
                return True
            if not self._free(lease):
                return False
            await self._put(lease, holder=self._seat.identity)
        except errors.ConflictError:
            return False
        except errors.KubeError as error:
            _log.warning("leader election: %s", error)
            return False
        return True

    def _free(self, lease: Object) -> bool:
        holder = lease["spec"].get("holderIdentity")
        now = _monotonic()
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, now
        duration = lease["spec"].get("leaseDurationSeconds") or self._seat.duration
        return holder in {"", None, self._seat.identity} or now - self._seen_at >= duration

    def _path(self, name: str = "") -> str:
        return leases.LEASES.path(self._seat.namespace, name)

    async def _get(self) -> Object | None:
        try:
            return await self._client.request("GET", self._path(self._seat.name))
        except errors.NotFoundError:
            return None

    async def _create(self) -> None:
        now = _micro_time()
        body = {
            "metadata": {"name": self._seat.name, "namespace": self._seat.namespace},
            "spec": {
                "holderIdentity": self._seat.identity,
                "leaseDurationSeconds": int(self._seat.duration),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        await self._client.request("POST", self._path(), body=body)

    async def _put(self, lease: Object, holder: str) -> None:
        """The resource version in the body makes it a compare-and-swap."""
        now, spec = _micro_time(), dict(lease["spec"])
        if spec.get("holderIdentity") != holder:
            spec |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
        spec |= {"holderIdentity": holder, "renewTime": now, "leaseDurationSeconds": int(self._seat.duration)}
        await self._client.request("PUT", self._path(self._seat.name), body={**lease, "spec": spec})


def _monotonic() -> float:
    return asyncio.get_running_loop().time()


def _micro_time() -> str:
    return clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
