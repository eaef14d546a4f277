"""What the operator keeps of machines that are gone: no series, and no memory that grows with them."""

import concurrent.futures
import contextlib
import datetime as dt
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pytest
from prometheus_client import parser

from lab import clock, kwok
from lab.api import Api
from lab.errors import LabError
from tests.cluster import play
from tests.cluster.conftest import Operator
from tests.cluster.test_gang_cases import mark

T = TypeVar("T")

AT_ONCE, ROUNDS = 10, 10
MORE_LINES = 50
MORE_MEMORY = 1.5
CASE = "series"
MACHINE = {"case": CASE, "topology.kubernetes.io/zone": "zone-a", "node.kubernetes.io/instance-type": "p5"}


class Fleet:
    """Machines with room for one worker each, never two of one name; `seen`: every word that names one."""

    def __init__(self, api: Api, at_once: int) -> None:
        self._api, self._at_once = api, at_once
        self._made = 0
        self.now: list[str] = []
        self.seen: set[str] = set()

    def renew(self) -> list[str]:
        """As many machines as are needed, under new names; returns those that were there."""
        before, first = self.now, self._made + 1
        self._made += self._at_once
        self.now = [f"n-{number:04}" for number in range(first, self._made + 1)]
        self.seen |= set(self.now)
        self._all(self._make, self.now)
        return before

    def warn(self, names: Iterable[str]) -> None:
        """A notice for each, with an event of its own."""
        self._all(self._warn, names)

    def take(self, names: Iterable[str]) -> None:
        """They are gone."""
        self._all(lambda name: kwok.remove(self._api, name), names)

    def _make(self, name: str) -> None:
        labels = {**MACHINE, **play.SPOT}
        play.node(self._api, name, labels=labels, provider_id=f"aws:///zone-a/i-{name}", gpus=1)

    def _warn(self, name: str) -> None:
        now = dt.datetime.now(dt.UTC).replace(microsecond=0)
        event = f"event-of-{name}"
        self.seen.add(event)
        deadline = now + dt.timedelta(minutes=2)
        notice = {"cause": "Preempted", "event": event, "source": "aws", "by": "spottrain-agent"}
        times = {"deadline": deadline.isoformat(), "since": now.isoformat()}
        mark(self._api, name, json.dumps({**notice, **times}))

    @staticmethod
    def _all(act: Callable[[str], object], names: Iterable[str]) -> None:
        def until_done(name: str) -> None:
            clock.wait_for(f"the change of {name}", lambda: answered(lambda: [act(name)]), seconds=60)

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            list(threads.map(until_done, names))


def answered(ask: Callable[[], T]) -> T | None:
    """None where the API server answers too late: over minutes it may, where much else runs."""
    with contextlib.suppress(LabError):
        return ask()
    return None


@pytest.fixture
def fleet(api: Api) -> Iterator[Fleet]:
    """Ten machines, and ten others whenever it is renewed."""
    one = Fleet(api, AT_ONCE)
    one.renew()
    yield one
    one.take(one.now)


@pytest.mark.parametrize("jobs", [1, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_d1_a_thousand_lost_machines_leave_no_series_and_no_memory_behind(
    job: play.Job, fleet: Fleet, operator: Operator, jobs: int
) -> None:
    """Each round a notice comes for every machine, its worker goes on on a new one, and the machine goes.

    A job has ten rounds: an index that is reclaimed much more often waits. In `make test` it is one job.
    """
    operator.kill()
    operator.start()  # what it has of other tests' jobs would hide what this one leaves
    shown: list[int] = []
    memory: list[float] = []
    for number in range(jobs):
        one = play.Job(job.api, job.namespace, f"j{number}").applied(everywhere(f"j{number}"))
        reclaims = settle(one, fleet, least=0)
        shown.append(len(lines(operator)))
        for _ in range(ROUNDS):
            lost = fleet.renew()
            fleet.warn(lost)
            reclaims = settle(one, fleet, least=reclaims + AT_ONCE)
            fleet.take(lost)
            memory.append(operator.metric("process_resident_memory_bytes"))
        shown.append(len(lines(operator)))
        job.api.call("DELETE", one.path).expect("the end of the job")
        job.wait("its pods gone", functools.partial(answered, functools.partial(gone, one)), seconds=120)
    assert operator.metric("spottrain_reclaims_total", namespace=job.namespace) >= jobs * ROUNDS * AT_ONCE
    assert shown[-1] <= shown[0] + MORE_LINES
    assert [(name, text) for name, text in labels(operator) if any(one in text for one in fleet.seen)] == []
    assert memory[-1] < MORE_MEMORY * memory[len(memory) // 10 - 1]


def gone(job: play.Job) -> bool:
    """None of its pods is left."""
    return not job.pods()


def everywhere(name: str) -> play.Object:
    """A worker for each machine."""
    document = play.manifest(name, mode="Independent", workers=AT_ONCE, parallelism=AT_ONCE)
    pod = document["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"case": CASE}
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    return document


def settle(job: play.Job, fleet: Fleet, least: int) -> int:
    """Each machine of now has its worker, and so many were lost, or more: a kwok without CPU loses some too.

    Returns how many. What names a worker is remembered.
    """
    machines = set(fleet.now)

    def settled() -> bool:
        pods = list(job.pods().values())
        fleet.seen |= {pod["metadata"][word] for pod in pods for word in ("name", "uid")}
        live = {pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Running"}
        return live == machines and job.status()["reclaims"] >= least

    job.wait(f"{least} reclaims, and all at work", lambda: answered(settled), seconds=180)
    return int(job.status()["reclaims"])


def lines(operator: Operator) -> list[str]:
    return [line for line in operator.get("/metrics").splitlines() if not line.startswith("#")]


def labels(operator: Operator) -> Iterator[tuple[str, str]]:
    """Of every sample: its name, and each of its labels' values."""
    for family in parser.text_string_to_metric_families(operator.get("/metrics")):
        for sample in family.samples:
            yield from ((sample.name, value) for value in sample.labels.values())
