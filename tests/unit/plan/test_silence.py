"""Silent nodes, and the brake when too many are silent at once."""

import dataclasses
import datetime as dt

import pytest

from spottrain.api import conditions, status
from tests.unit.plan import virtual


def gang(workers: int, zones: tuple[str, ...] = ("a",)) -> virtual.Cluster:
    """Workers on a node each, dealt out to the zones."""
    cluster = virtual.Cluster(virtual.wishes(workers=workers))
    for index in range(workers):
        node = f"m{index}"
        cluster.nodes[node] = dataclasses.replace(
            cluster.nodes["n1"], name=node, uid=node, zone=zones[index % len(zones)]
        )
    cluster.settle()
    for index in range(workers):
        cluster.bind(f"tr-{index}-1", f"m{index}")
        cluster.run(f"tr-{index}-1")
    cluster.settle()
    return cluster


def test_a_lease_that_stopped_is_a_loss_before_kubernetes_says_so() -> None:
    cluster = gang(4)
    cluster.change_node("m2", silent=True)
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert cluster.status.last_reclaim is not None
    assert cluster.status.last_reclaim.cause == "NodeLost"
    assert "tr-2-1" not in cluster.pods, "nobody is left there to end it"


@pytest.mark.parametrize("workers", [3, 4, 9])
def test_many_silent_nodes_at_once_are_the_control_planes_fault_until_proven(workers: int) -> None:
    cluster = gang(workers)
    for index in range(3):
        cluster.change_node(f"m{index}", silent=True)
    cluster.settle()
    assert cluster.status.attempt == 1
    assert len(cluster.pods) == workers, "nothing is deleted"
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert (running.status, running.reason) == (None, "ControlPlaneSuspect")
    assert running.message.startswith(f"3 of {workers} nodes that carry workers are silent at once")


def test_three_of_ten_in_no_whole_zone_are_believed() -> None:
    cluster = gang(10, zones=("a", "b"))
    for index in range(3):
        cluster.change_node(f"m{index}", silent=True)
    cluster.settle()
    assert cluster.status.attempt == 2


def test_a_whole_zone_of_many_is_suspect() -> None:
    cluster = gang(12, zones=("a", "b", "c", "d"))
    for index in (0, 4, 8):
        cluster.change_node(f"m{index}", silent=True)
    cluster.settle()
    assert cluster.status.attempt == 1


def test_two_silent_nodes_are_always_believed() -> None:
    cluster = gang(2)
    for index in range(2):
        cluster.change_node(f"m{index}", silent=True)
    cluster.settle()
    assert cluster.status.attempt == 2


def test_under_suspicion_kubernetes_own_verdict_counts() -> None:
    cluster = gang(6)
    for index in range(4):
        cluster.change_node(f"m{index}", silent=True)
    cluster.settle()
    cluster.evict("tr-0-1", "DeletionByTaintManager")
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (2, 1)
    assert "tr-0-1" not in cluster.pods
    assert "tr-1-1" in cluster.pods, "its node is only suspected"


def test_when_the_nodes_are_heard_again_nothing_has_happened() -> None:
    cluster = gang(4)
    for index in range(4):
        cluster.change_node(f"m{index}", silent=True)
        cluster.silence(f"m{index}")
    cluster.settle()
    cluster.pass_time(300)
    cluster.settle()
    for index in range(4):
        cluster.change_node(f"m{index}", silent=False, ready=True, ready_since=cluster.now)
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims, len(cluster.pods)) == (1, 0, 4)
    running = conditions.find(cluster.status.conditions, conditions.RUNNING)
    assert running is not None
    assert running.status is True


def test_another_machine_under_the_nodes_name_means_the_pod_is_lost() -> None:
    cluster = gang(3)
    later = cluster.now + dt.timedelta(seconds=10)
    cluster.change_node("m1", created=later, uid="new")
    for index in range(3):
        cluster.bound_at(f"tr-{index}-1", cluster.now)
    cluster.pass_time(20)
    cluster.settle()
    assert cluster.status.reclaims == 1
    assert cluster.status.attempts[-1].detail == "node m1 is another machine now"


def test_a_pod_that_waited_for_its_node_to_be_made_is_not_lost() -> None:
    cluster = gang(3)
    cluster.change_node("m1", created=cluster.now + dt.timedelta(seconds=10))
    cluster.bound_at("tr-1-1", cluster.now + dt.timedelta(seconds=15))
    cluster.pass_time(20)
    cluster.settle()
    assert cluster.status.attempt == 1


def shadowed() -> tuple[virtual.Cluster, str]:
    """A machine died, its peers exited 1, and a worker was put on it before anybody knew."""
    cluster = gang(3)
    cluster.end("tr-0-1", 1)
    cluster.end("tr-1-1", 1)
    cluster.settle()
    cluster.bind("tr-0-2", "m2")
    cluster.bind("tr-1-2", "m1")
    return cluster, "m2"


def test_a_dead_machine_counts_once_though_a_worker_was_put_on_it_meanwhile() -> None:
    cluster, dead = shadowed()
    cluster.pass_time(34)
    cluster.change_node(dead, silent=True)
    cluster.settle()
    assert (cluster.status.reclaims, cluster.status.failures, cluster.status.attempt) == (1, 0, 3)
    assert [one.cause for one in cluster.status.attempts[1:]] == [status.Cause.RECLAIMED] * 2


def test_a_machine_under_notice_that_then_goes_counts_once() -> None:
    cluster = gang(3)
    cluster.change_node("m2", notice="spot")
    cluster.recovered()
    cluster.bind("tr-2-2", "m2")
    cluster.settle()
    del cluster.nodes["m2"]
    cluster.recovered()
    assert (cluster.status.attempt, cluster.status.reclaims) == (3, 1)


def test_an_eviction_may_have_any_reason_and_counts_beside_the_nodes_end() -> None:
    cluster = gang(3)
    cluster.evict("tr-2-1")
    cluster.recovered()
    cluster.bind("tr-2-2", "m2")
    cluster.settle()
    cluster.change_node("m2", silent=True)
    cluster.recovered()
    assert (cluster.status.attempt, cluster.status.reclaims) == (3, 2)


@pytest.mark.parametrize("later", ["long after", "another machine"])
def test_the_next_loss_on_a_node_of_that_name_counts(later: str) -> None:
    cluster = gang(3)
    cluster.change_node("m2", silent=True)
    cluster.recovered()
    seconds = 75 if later == "long after" else 20
    cluster.pass_time(seconds)
    cluster.change_node("m2", silent=False)
    if later == "another machine":
        cluster.change_node("m2", uid="new", created=cluster.now)
    cluster.bind("tr-2-2", "m2")
    cluster.settle()
    cluster.change_node("m2", silent=True)
    cluster.settle()
    assert (cluster.status.attempt, cluster.status.reclaims) == (3, 2)


def test_a_kubelets_eviction_under_pressure_counts_each_time() -> None:
    cluster = gang(3)
    for name in ("tr-2-1", "tr-2-2"):
        cluster.bind(name, "m2")
        cluster.settle()
        cluster.evict(name, "TerminationByKubelet")
        cluster._change(name, reason="Evicted")
        cluster.recovered()
    assert (cluster.status.attempt, cluster.status.reclaims) == (3, 2)
    assert cluster.status.last_reclaim is not None
    assert cluster.status.last_reclaim.cause == "Evicted"


def test_the_new_machine_of_a_name_counts_though_it_came_before_the_old_one_was_found_gone() -> None:
    cluster = gang(3)
    cluster.bound_at("tr-2-1", cluster.now)
    cluster.pass_time(5)
    cluster.change_node("m2", uid="new", created=cluster.now)
    cluster.pass_time(1)
    cluster.recovered()
    assert cluster.status.reclaims == 1
    cluster.bind("tr-2-2", "m2")
    cluster.bound_at("tr-2-2", cluster.now)
    cluster.settle()
    cluster.change_node("m2", notice="spot")
    cluster.settle()
    assert cluster.status.reclaims == 2


def test_the_old_machine_of_a_name_counts_once_though_a_new_one_came_since() -> None:
    cluster = gang(3)
    cluster.bound_at("tr-2-1", cluster.now)
    cluster.change_node("m2", notice="spot")
    cluster.settle()
    cluster.bind("tr-2-2", "m2")
    cluster.bound_at("tr-2-2", cluster.now)
    cluster.pass_time(2)
    cluster.change_node("m2", uid="new", created=cluster.now, notice="")
    cluster.recovered()
    assert (cluster.status.attempt, cluster.status.reclaims) == (3, 1)


def test_a_dead_node_is_found_though_the_template_was_edited_before_anybody_knew() -> None:
    """Its peers' exit looked like a failure of the program; the user edits the job at once."""
    cluster = gang(3)
    cluster.end("tr-0-1", 1)
    cluster.settle()
    assert cluster.status.attempts[-1].cause is status.Cause.UNDETERMINED
    cluster.end("tr-1-1", 1)
    cluster.edit(virtual.wishes(template={"spec": {"containers": [{"name": "trainer", "image": "new"}]}}))
    cluster.settle()
    cluster.pass_time(30)
    cluster.change_node("m2", silent=True)
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.failures) == (1, 0)
    assert cluster.status.phase is status.Phase.RUNNING


def test_the_old_job_stays_until_it_is_known_what_ended_its_workers() -> None:
    """What is known of them goes with it."""
    cluster = gang(3)
    cluster.end("tr-0-1", 1)
    cluster.settle()
    cluster.end("tr-1-1", 1)
    cluster.remove("tr-2-1")
    cluster.edit(virtual.wishes(template={"spec": {"containers": [{"name": "trainer", "image": "new"}]}}))
    cluster.settle()
    assert cluster.job is not None
    cluster.change_node("m2", silent=True)
    cluster.recovered()
    assert (cluster.status.reclaims, cluster.status.failures) == (1, 0)


def test_a_node_that_is_not_ready_after_an_outage_is_given_the_time_of_a_lease() -> None:
    """Kubernetes saw old leases as well, and the kubelets may just not have been back."""
    cluster = gang(2)
    since = cluster.now
    cluster.change_node("m1", ready=False, ready_since=since, doubtful=True)
    cluster.pass_time(30)
    cluster.settle()
    assert cluster.status.attempt == 1
    cluster.change_node("m1", doubtful=False)
    cluster.settle()
    assert cluster.status.attempt == 2
