"""Ends of machines beside the notices for them: how long they lasted, and those that nobody announced."""

import datetime as dt
import json

from lab import clock
from lab.cluster import Lab
from spottrain.api import duration
from tests.agent.conftest import soon
from tests.cluster import play
from tests.cluster.conftest import Operator

AZURE = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm0"


def give_notice(lab: Lab, name: str, since: dt.datetime) -> None:
    """As the agent does."""
    mark = {"cause": "Preempted", "deadline": duration.format_time(soon(22)), "event": "e1"}
    mark |= {"since": duration.format_time(since)}
    lab.kubectl("annotate", "node", name, f"spottrain.dev/reclaim={json.dumps(mark)}")


def test_how_long_a_machine_lasted_after_its_notice_is_measured(
    job: play.Job, plane: Lab, operator: Operator
) -> None:
    """Once, by its cloud, from the moment that the mark says to the end of its Node."""
    since, before = soon(-8), measured(operator)
    with play.machines(plane.api, {"name": "ag-w", "labels": play.SPOT, "provider_id": AZURE}):
        give_notice(plane, "ag-w", since)
        job.applied(play.manifest(workers=1))
        job.wait("its pod", job.pods)  # the operator has seen the node by then
    clock.wait_for("the window", lambda: measured(operator)[0] == before[0] + 1, seconds=15)

    lasted = measured(operator)[1] - before[1]
    assert 8 <= lasted <= (soon(1) - since).total_seconds()


def test_a_machine_that_falls_silent_after_its_notice_is_measured_by_its_lease(
    plane: Lab, operator: Operator
) -> None:
    """Nobody works there any more, and its Node stays; what counts is when its lease was last renewed."""
    with play.hand_made(plane.api, "ag-l", play.SPOT) as dying:
        since, before = soon(0), measured(operator, "other")
        give_notice(plane, "ag-l", since)
        clock.poll(lambda: False, seconds=5)
        dying.fall_silent()
        lived = (soon(0) - since).total_seconds()
        clock.wait_for("the window", lambda: measured(operator, "other")[0] == before[0] + 1, seconds=30)

        lasted = measured(operator, "other")[1] - before[1]
        assert lived - 4 <= lasted <= lived + 5 + 1


def measured(operator: Operator, provider: str = "azure") -> tuple[float, float]:
    """How many windows, and their sum in seconds."""
    name = "spottrain_notice_window_seconds"
    return (
        operator.metric(f"{name}_count", provider=provider),
        operator.metric(f"{name}_sum", provider=provider),
    )


def test_c2_a_machine_that_shuts_down_without_a_word_of_the_cloud_is_a_reclaim_all_the_same(
    job: play.Job, plane: Lab
) -> None:
    """`preempted` stays FALSE, so no agent marks the node; its kubelet says that it shuts down."""
    labels = play.SPOT | {"cloud.google.com/gke-spot": "true", "case": "c2"}
    with (
        play.hand_made(plane.api, "ag-s", labels) as dying,
        play.machines(plane.api, {"name": "ag-n", "labels": labels}),
    ):
        document = play.manifest(workers=1, annotations=play.BY_HAND)
        document["spec"]["template"]["spec"]["nodeSelector"] = {"case": "c2"}
        plane.kubectl("cordon", "ag-n")
        job.applied(document)
        job.wait("the pod on it", lambda: node_of(job, "tr-0-1") == "ag-s")
        job.run("tr-0-1")
        job.wait_running(1)
        plane.kubectl("uncordon", "ag-n")

        dying.say_ready("False", "KubeletNotReady", "node is shutting down")
        words = "Pod was terminated in response to imminent node shutdown."
        job.patch_pod("tr-0-1", {"phase": "Failed", "reason": "Terminated", "message": words})

        job.wait_running(2)
        status = job.status()
        assert (status["reclaims"], status["failures"]) == (1, 0)
        assert status["lastReclaim"]["cause"] == "NodeShutdown"
        assert node_of(job, "tr-0-2") == "ag-n"


def node_of(job: play.Job, name: str) -> str:
    pods = job.pods()
    return str(pods[name]["spec"].get("nodeName", "")) if name in pods else ""
