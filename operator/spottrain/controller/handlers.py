"""kopf's part: it watches SpotTrainingJobs and hands each event to the queue."""

import asyncio
import collections.abc as cabc
import itertools
import logging
import random
import threading
from typing import Any

import kopf

from spottrain.api import names
from spottrain.controller import reconciler
from spottrain.kube import errors, recovery

_log = logging.getLogger(__name__)

Deliver = cabc.Callable[[str | None, dict[str, Any]], None]


def registry(deliver: Deliver) -> kopf.OperatorRegistry:
    """One handler beside the login. `on.event` sets no finalizer; timers, daemons and `on.delete` would."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**given: Any) -> kopf.ConnectionInfo | None:
        """The service account, read anew at every login since its token rotates; else the kubeconfig."""
        return kopf.login_with_service_account(**given) or kopf.login_via_client(**given)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=handlers)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        deliver(event["type"], dict(event["object"]))

    return handlers


def take(work: reconciler.Reconciler, kind: str | None, raw: dict[str, Any]) -> None:
    """Take in one event of a SpotTrainingJob and ask for a pass."""
    key = (raw["metadata"]["namespace"], raw["metadata"]["name"])
    if kind == "DELETED":
        work.jobs.remove(key, raw["metadata"]["uid"])
        work.queue.add(key)
    elif work.jobs.put(raw):
        work.queue.add(key)


class EndlessPauses(cabc.Iterable[float]):
    """Jittered pauses without end: kopf's default list is over after 54 s, and the process with it."""

    def __iter__(self) -> cabc.Iterator[float]:
        for exponent in itertools.count():
            yield min(2.0 ** min(exponent, 5), 30.0) * random.uniform(0.5, 1.0)  # noqa: S311


def settings() -> kopf.OperatorSettings:
    """Kopf without its bookkeeping: no scanning of CRDs and namespaces, no Events of its own."""
    chosen = kopf.OperatorSettings()
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    chosen.networking.error_backoffs = EndlessPauses()
    return chosen


async def run(work: reconciler.Reconciler, namespaces: tuple[str, ...], recovered: recovery.Recovery) -> None:
    """Run kopf until cancelled, and begin anew when its watch may be dead.

    It lists then, and an object that is as it was asks for no pass.
    """
    while True:
        try:
            async with recovered.watching():
                return await _run(work, namespaces)
        except errors.UnreachableError as error:
            _log.warning("watch of %s: %s; beginning anew", names.PLURAL, error)


async def _run(work: reconciler.Reconciler, namespaces: tuple[str, ...]) -> None:
    """Run kopf in a thread and a loop of its own.

    In ours it would take over the signals, and on its way out cancel every task it finds. It is always
    standalone: another operator's peering must not pause ours.
    """
    ours = asyncio.get_running_loop()
    stop = threading.Event()

    def deliver(kind: str | None, raw: dict[str, Any]) -> None:
        ours.call_soon_threadsafe(take, work, kind, raw)

    def body() -> None:
        asyncio.run(
            kopf.operator(
                registry=registry(deliver),
                settings=settings(),
                standalone=True,
                clusterwide=not namespaces,
                namespaces=namespaces,
                stop_flag=stop,
            )
        )

    try:
        await asyncio.to_thread(body)
    finally:
        stop.set()
