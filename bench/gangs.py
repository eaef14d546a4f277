"""Making gangs, taking one pod from each, and timing how long they are not whole."""

import secrets
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.systems import Object, System
from bench.watching import Gangs
from lab import clock
from lab.api import Api
from lab.cluster import Lab

CREATE_SECONDS = 1800.0
RECOVER_SECONDS = 400.0
AT_ONCE = 8


@contextmanager
def running(lab: Lab, system: System, count: int, workers: int) -> Iterator[Gangs]:
    """`count` gangs of `workers` in a namespace of their own, all whole; gone afterwards."""
    namespace = f"{system.name}-{count}x{workers}-{secrets.token_hex(2)}"
    lab.kubectl("create", "namespace", namespace)
    lab.wait_namespace(namespace)
    path = system.collection(namespace)
    gangs = Gangs(lab.api, namespace, system.labels, workers)
    try:
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            made = pool.map(
                lambda number: _make(lab.api, path, system.gang(f"g{number}", workers)), range(count)
            )
            list(made)
        gangs.wait_quiet(count, CREATE_SECONDS)
        yield gangs
    finally:
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
    """Evict worker 1 of every gang at once, or of one alone; seconds until each runs whole again."""
    before = gangs.newest()
    gangs.wait_quiet(len(before), CREATE_SECONDS)
    before = {gang: attempt for gang, attempt in before.items() if only in {"", gang}}
    started = hit(api, gangs, before)
    moments = gangs.wait_whole(before, RECOVER_SECONDS)
    return sorted(moment - started for moment in moments.values())


def hit(api: Api, gangs: Gangs, which: Collection[str]) -> float:
    """Evict worker 1 of each of these gangs, as fast as eight connections can; the moment of the first."""
    workers = gangs.pods().values()
    victims = [one.name for one in workers if one.index == 1 and one.attempt.gang in which]
    started = clock.now()
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        list(pool.map(lambda name: evict(api, gangs.namespace, name), victims))
    return started


def evict(api: Api, namespace: str, pod: str) -> None:
    """Through the Eviction API."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body).expect(f"evicting {pod}")
