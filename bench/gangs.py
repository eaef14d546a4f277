"""Making gangs, taking one pod from each, and timing how long they are not whole."""

import secrets
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.systems import Object, System
from bench.watching import Gangs, Worker
from lab import clock
from lab.api import Api
from lab.cluster import Lab

CREATE_SECONDS = 1800.0
RECOVER_SECONDS = 400.0
AT_ONCE = 8


@contextmanager
def running(lab: Lab, system: System, count: int, workers: int, teams: int = 1) -> Iterator[Gangs]:
    """`count` gangs of `workers`, all whole, in so many namespaces of their own; gone afterwards."""
    mark = secrets.token_hex(2)
    namespaces = [f"{system.name}-{count}x{workers}-{mark}-{team}" for team in range(teams)]
    for namespace in namespaces:
        lab.kubectl("create", "namespace", namespace)
        lab.wait_namespace(namespace)
    gangs = Gangs(lab.api, namespaces, system.labels, workers)
    try:
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            made = pool.map(
                lambda number: _make(
                    lab.api,
                    system.collection(namespaces[number % teams]),
                    system.gang(f"g{number}", workers),
                ),
                range(count),
            )
            list(made)
        gangs.wait_quiet(count, CREATE_SECONDS)
        yield gangs
    finally:
        for namespace in namespaces:
            _remove(lab, system, namespace)
        gangs.close()


def _make(api: Api, path: str, gang: Object) -> None:
    api.call("POST", path, gang).expect("a gang")


def _remove(lab: Lab, system: System, namespace: str) -> None:
    lab.api.call("DELETE", system.collection(namespace)).expect("deleting the gangs")
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def gone() -> bool:
        lab.api.call("DELETE", pods, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        return not lab.api.get(pods).expect("pods")["items"]

    clock.wait_for(f"the end of {namespace}", gone, seconds=CREATE_SECONDS, every=1.0)
    lab.kubectl("delete", "namespace", namespace, "--timeout=300s")


def recover(api: Api, gangs: Gangs, only: str = "") -> list[float]:
    """Evict worker 1 of every gang at once, or of one alone.

    Returns seconds from the first eviction until each runs whole again.
    """
    before = gangs.newest()
    gangs.wait_quiet(len(before), CREATE_SECONDS)
    before = {gang: attempt for gang, attempt in before.items() if only in {"", gang}}
    started = min(hit(api, gangs, before).values())
    moments = gangs.wait_whole(before, RECOVER_SECONDS)
    return sorted(moment - started for moment in moments.values())


def hit(api: Api, gangs: Gangs, which: Collection[str]) -> dict[str, float]:
    """Evict worker 1 of each of these gangs, as fast as eight connections can; when each was asked for."""
    workers = gangs.pods().values()
    victims = [one for one in workers if one.index == 1 and one.attempt.gang in which]

    def take(victim: Worker) -> tuple[str, float]:
        asked = clock.now()
        evict(api, victim.attempt.namespace, victim.name)
        return victim.attempt.gang, asked

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return dict(pool.map(take, victims))


def evict(api: Api, namespace: str, pod: str) -> None:
    """Through the Eviction API."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body).expect(f"evicting {pod}")
