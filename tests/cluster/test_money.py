"""Money: what the status and the metrics say is what the pods' own times come to, to the cent."""

import collections
import datetime as dt
import json
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from lab.api import Api
from spottrain.api import duration
from tests.cluster import play
from tests.cluster.conftest import Operator

SPOT, ON_DEMAND = Decimal("1100.25"), Decimal("3670.5")
"""Per worker-hour, so that a second too many or too few costs 30 cents."""
SAVED = json.dumps({"spottrain": 1, "state": "preempted", "step": 7, "savedStep": 7, "saveSeconds": 0})
PRICE = {"spot": SPOT, "on-demand": ON_DEMAND}


class Witness:
    """Plays the kubelets, and notes of each pod when it got its node and ended, and what was kept of it."""

    def __init__(self, job: play.Job, nodes: dict[str, str]) -> None:
        self._job, self._nodes = job, nodes
        self.seconds: collections.Counter[tuple[str, str]] = collections.Counter()
        self._ended: list[tuple[dict[str, Any], str]] = []

    def end(self, name: str, code: int, outcome: str, **how: str) -> None:
        self._job.end(name, code, **how)
        self._ended.append((self._job.pod(name), outcome))

    def end_deleted(self, outcome: str, message: str = "") -> bool:
        """All that were asked to stop; True once there are none."""
        going = [name for name, pod in self._job.pods().items() if "deletionTimestamp" in pod["metadata"]]
        for name in going:
            if self._job.pod(name)["spec"].get("nodeName"):
                self.end(name, 143, outcome, message=message)
            self._job.vanish(name)
        return not going

    def add_up(self) -> None:
        """Seconds by capacity and outcome: they wait until all run, and then it is as it came out."""
        running = {
            one["number"]: duration.parse_time(one["runningTime"]) for one in self._job.status()["attempts"]
        }
        for pod, outcome in self._ended:
            (scheduled,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
            bound = duration.parse_time(scheduled["lastTransitionTime"])
            (container,) = pod["status"]["containerStatuses"]
            finished = duration.parse_time(container["state"]["terminated"]["finishedAt"])
            mark = max(running[int(pod["metadata"]["labels"]["spottrain.dev/attempt"])], bound)
            capacity = self._nodes[pod["spec"]["nodeName"]]
            self.seconds[capacity, "waiting"] += int((mark - bound).total_seconds())
            self.seconds[capacity, outcome] += int((finished - mark).total_seconds())

    @property
    def cost(self) -> Decimal:
        return cents(sum(count * PRICE[capacity] for (capacity, _), count in self.seconds.items()))

    @property
    def saved(self) -> Decimal:
        useful = sum(count for (_, outcome), count in self.seconds.items() if outcome == "useful")
        spent = sum(count * PRICE[capacity] for (capacity, _), count in self.seconds.items())
        return cents(useful * ON_DEMAND - spent)


def cents(priced: Decimal | int) -> Decimal:
    return (Decimal(priced) / 3600).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def works_for_a_while(job: play.Job, attempt: int) -> None:
    """All run, and have for some seconds: what is counted in whole seconds is then more than one."""
    job.wait_running(attempt)
    since = duration.parse_time(job.status()["attempts"][-1]["runningTime"])
    job.wait("some seconds of work", lambda: dt.datetime.now(dt.UTC) > since + dt.timedelta(seconds=3))


def counted(operator: Operator, namespace: str) -> tuple[float, float]:
    """Cost, and what it would have been on demand, as the operator's page has it."""
    names = ("spottrain_cost_total", "spottrain_cost_on_demand_total")
    cost, instead = (operator.metric(name, namespace=namespace) for name in names)
    return cost, instead


def test_money_adds_up_to_the_pods_own_times_to_the_cent(api: Api, job: play.Job, operator: Operator) -> None:
    """Through reclaims, one of the floor's node, and an operator that dies and finds a worker gone."""
    nodes = {"m-od-1": "on-demand", "m-od-2": "on-demand", "m-spot-1": "spot", "m-spot-2": "spot"}
    labels = {"on-demand": play.ON_DEMAND, "spot": play.SPOT}
    witness = Witness(job, nodes)
    with play.machines(api, *({"name": name, "labels": labels[kind]} for name, kind in nodes.items())):
        document = play.manifest(
            workers=3,
            annotations=play.BY_HAND,
            spot={"onDemandFloor": 1},
            prices={"spot": float(SPOT), "onDemand": float(ON_DEMAND)},
        )
        job.applied(document)
        for attempt, index in ((1, 2), (2, 0)):
            works_for_a_while(job, attempt)
            witness.end(f"tr-{index}-{attempt}", 143, "lost", disruption="EvictionByEvictionAPI")
            job.wait(f"attempt {attempt} ends", lambda: job.status()["attempt"] > attempt)  # noqa: B023
            job.wait("its pods end", lambda: witness.end_deleted("lost"))
        works_for_a_while(job, 3)
        before = counted(operator, job.namespace)
        operator.kill()
        witness.end("tr-1-3", 143, "useful", disruption="EvictionByEvictionAPI", message=SAVED)
        operator.start()
        job.wait("attempt 4", lambda: job.status()["attempt"] == 4)
        job.wait("its pods end", lambda: witness.end_deleted("useful", SAVED))
        works_for_a_while(job, 4)
        for index in range(3):
            witness.end(f"tr-{index}-4", 0, "useful")
        job.wait_phase("Complete")
        cost = job.wait("all decided", lambda: decided(job))
        witness.add_up()
    found = {
        (account["capacity"], outcome): account[outcome]
        for account in cost["ledger"]["accounts"]
        for outcome in ("useful", "lost", "restoring", "waiting")
    }
    assert {key: count for key, count in found.items() if count} == dict(+witness.seconds)
    assert (Decimal(cost["cost"]), Decimal(cost["saved"])) == (witness.cost, witness.saved)
    after = counted(operator, job.namespace)
    assert round(before[0] + after[0], 2) == float(witness.cost)
    assert round(before[1] + after[1] - before[0] - after[0], 2) == float(witness.saved)


def decided(job: play.Job) -> dict[str, Any] | None:
    """`status.cost`, once nothing is under way any more."""
    cost: dict[str, Any] = job.status().get("cost") or {}
    under_way = [one for one in cost["ledger"]["open"] if one["workers"] or one["rest"]]
    return None if under_way else cost
