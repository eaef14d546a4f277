"""Which container decides: the main one, whatever runs on beside it."""

from spottrain.api import status
from spottrain.plan import pods
from tests.unit.plan import virtual


def test_a_gang_whose_proxies_run_on_is_complete_and_they_are_ended() -> None:
    cluster = virtual.Cluster().running()
    for index in range(3):
        cluster.finish_main(f"tr-{index}-1", 0)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    assert cluster.status.workers.succeeded == 3
    assert not any(pod.deleting for pod in cluster.pods.values()), "their kubelets may be about to say so"
    cluster.pass_time(pods.LAST_ROUNDS.total_seconds())
    cluster.settle()
    assert all(pod.deleting for pod in cluster.pods.values())
    cluster.recovered()
    assert cluster.job is not None
    assert cluster.job.finished


def test_a_worker_that_failed_beside_its_proxy_restarts_the_gang() -> None:
    cluster = virtual.Cluster().running()
    for index in range(3):
        cluster.finish_main(f"tr-{index}-1", 1)
    cluster.settle()
    cluster.pass_time(pods.LAST_ROUNDS.total_seconds())
    cluster.recovered()
    assert (cluster.status.failures, cluster.status.attempt) == (1, 2)
    assert cluster.status.phase is status.Phase.RUNNING


def test_a_worker_that_has_ended_alone_is_never_deleted_and_keeps_its_log() -> None:
    """Its container's end is known a second before its kubelet calls the pod ended."""
    cluster = virtual.Cluster(virtual.wishes(workers=1, max_failures=0)).running()
    cluster.finish_main("tr-0-1", 1)
    cluster.settle()
    assert cluster.status.phase is status.Phase.FAILED
    cluster.pass_time(1)
    cluster.end("tr-0-1", 1)
    cluster.settle()
    cluster.pass_time(60)
    cluster.settle()
    assert cluster.pods["tr-0-1"].deleting is None
