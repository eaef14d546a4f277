"""`spec.completeBy` on a real control plane: on spot as long as that can go well, then on on-demand."""

import contextlib
import datetime as dt
from collections.abc import Iterator

from lab.api import Api
from spottrain.api import duration, names
from spottrain.plan import outlook
from spottrain.train import progress
from spottrain.train.clock import SystemClock
from spottrain.train.log import Log
from tests.cluster import play
from tests.cluster.conftest import Operator

WORK = 100.0
"""Seconds that the only checkpoint leaves to be done."""
START = outlook.START + 10.0 + 1.0
"""The prior, and what a loss takes: the interval between two saves, and one of them."""
ROOM = 20.0
"""Seconds from the edit until the last moment at which workers may wait for spot."""


@contextlib.contextmanager
def training(attempt_id: str) -> Iterator[None]:
    """A worker at step 500 of 600, at one step a second; it has just saved."""
    saved = {"step": 499, "time": dt.datetime.now(dt.UTC).timestamp(), "seconds": 1.0}
    more = {"total": 600, "perSecond": 1.0, "checkpoint": saved}
    told = progress.Progress(attempt_id, Log(SystemClock()), lambda: more)
    told.step = 499
    told.serve(names.PROGRESS_PORT)
    try:
        yield
    finally:
        told.close()


def written(moment: dt.datetime) -> str:
    return duration.format_time(moment)


def test_a_job_that_waits_for_spot_goes_to_on_demand_at_the_last_moment_and_not_before(
    job: play.Job, api: Api, operator: Operator
) -> None:
    checkpoint = {"uri": "s3://ck/tr", "interval": "10s"}
    far = written(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    bought = {"name": "deadline-od", "labels": play.ON_DEMAND}
    with play.machines(api, bought), play.hand_made(api, "deadline-spot", play.SPOT) as spot:
        wishes = play.manifest(workers=1, completeBy=far, checkpoint=checkpoint, annotations=play.BY_HAND)
        job.applied(wishes)
        job.wait("bound", lambda: job.pods().get("tr-0-1", {}).get("spec", {}).get("nodeName"))
        assert job.pod("tr-0-1")["spec"]["nodeName"] == "deadline-spot"
        told = {one["name"]: one.get("value") for one in job.pod("tr-0-1")["spec"]["containers"][0]["env"]}
        with training(told["SPOTTRAIN_ATTEMPT_ID"] or ""):
            here = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            job.patch_pod("tr-0-1", {"phase": "Running", **here})
            job.wait_running(1)
            known = lambda: job.condition("DeadlineFeasible").get("reason") == "OnTime"  # noqa: E731
            job.wait("its work known", known, seconds=60)
        spot.say_ready("False")
        job.evict("tr-0-1")
        job.end_all_deleted(143)
        job.wait("the next attempt", lambda: "tr-0-2" in job.pods())
        net = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(seconds=ROOM)
        due = net + dt.timedelta(seconds=WORK + 2 * START)
        job.patch({"spec": {"completeBy": written(due)}}).expect("the edit")
        waits = f"it waits for spot until {written(net)} at the latest"
        job.wait("the edit seen", lambda: waits in job.condition("DeadlineFeasible").get("message", ""))
        assert "nodeName" not in job.pod("tr-0-2")["spec"], "it waits, though on-demand has room"
        slack = operator.metric("spottrain_job_deadline_slack_seconds", namespace=job.namespace)
        assert 0 < slack - START < ROOM + 1
        job.wait_running(3, seconds=ROOM + 30)
    last = job.status()["attempts"][-1]
    assert (last["cause"], last["onDemand"]) == ("Moved", True)
    begun = duration.parse_time(last["startTime"])
    assert net <= begun <= net + dt.timedelta(seconds=10)
    assert "there is no more time to wait for spot" in last["detail"]
