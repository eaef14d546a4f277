"""A drill ends a gang as a notice does, under its own name, and is held against no pool."""

import datetime as dt

from spottrain.api import conditions, names
from spottrain.plan import actions, loss
from tests.unit.plan import virtual


def test_a_drill_is_a_reclaim_of_that_name_with_the_grace_of_its_window() -> None:
    cluster = virtual.Cluster().running()
    node = cluster.pod(1).node
    cluster.change_node(node, notice=names.DRILL, deadline=cluster.now + dt.timedelta(seconds=20))
    assert loss.classify(cluster.pod(1), cluster.snapshot()).fate is loss.Fate.DOOMED
    cluster.settle()

    stopped = {one.name: one.grace for one in cluster.done if isinstance(one, actions.DeletePod)}
    assert stopped.keys() == {"tr-0-1", "tr-1-1", "tr-2-1"}
    assert stopped["tr-1-1"] == 18
    assert (cluster.status.reclaims, cluster.status.failures) == (1, 0)
    assert cluster.status.last_reclaim is not None
    assert cluster.status.last_reclaim.cause == "Drill"
    assert node in cluster.overlays["tr-1-2"].avoid
    (event,) = [one.message for one in cluster.events if one.reason == conditions.RECLAIMED]
    assert f"node {node} is part of a drill" in event


def test_after_a_drill_the_job_runs_elsewhere_and_has_one_reclaim() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    node = cluster.pod(0).node
    cluster.change_node(node, notice=names.DRILL, deadline=cluster.now + dt.timedelta(seconds=20))
    cluster.recovered()
    cluster.run_all()
    cluster.settle()

    assert cluster.pod(0).node != node
    assert cluster.status.reclaims == 1
