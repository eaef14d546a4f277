"""Which container decides: the main one, whatever runs on beside it."""

from spottrain.api import status
from tests.unit.plan import virtual


def test_a_gang_whose_proxies_run_on_is_complete_and_they_are_ended() -> None:
    cluster = virtual.Cluster().running()
    for index in range(3):
        cluster.finish_main(f"tr-{index}-1", 0)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    assert cluster.status.workers.succeeded == 3
    assert all(pod.deleting for pod in cluster.pods.values())
    cluster.recovered()
    assert cluster.job is not None
    assert cluster.job.finished


def test_a_worker_that_failed_beside_its_proxy_restarts_the_gang() -> None:
    cluster = virtual.Cluster().running()
    for index in range(3):
        cluster.finish_main(f"tr-{index}-1", 1)
    cluster.recovered()
    assert (cluster.status.failures, cluster.status.attempt) == (1, 2)
    assert cluster.status.phase is status.Phase.RUNNING
