"""A grace that counts on more than machines really have is said to be a fiction."""

import dataclasses

from spottrain.api import conditions, spec
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual


def azure(*windows: snap.Window, grace: float | None = None) -> virtual.Cluster:
    """A gang on spot machines of Azure (a window of 30 s, so a grace of 28), after these ends."""
    cluster = virtual.Cluster(virtual.wishes(spot=spec.Spot(grace=grace)))
    for name, node in cluster.nodes.items():
        cluster.nodes[name] = dataclasses.replace(node, provider="azure")
    cluster.running()
    cluster.windows = windows
    cluster.settle()
    return cluster


def cut(*seconds: float) -> tuple[snap.Window, ...]:
    return tuple(snap.Window("azure", one, cut_off=True) for one in seconds)


def said(cluster: virtual.Cluster) -> conditions.Condition | None:
    return conditions.find(cluster.status.conditions, conditions.WINDOW_HOLDS)


def test_three_machines_that_ended_in_the_middle_of_the_grace_are_said_once() -> None:
    cluster = azure(*cut(8, 12.4, 9, 40))
    cluster.pass_time(60)
    cluster.settle()

    found = said(cluster)
    assert found is not None
    assert (found.status, found.reason) == (False, "WindowTooShort")
    assert found.message == (
        "3 of the last 4 machines of azure ended 8s to 12s after their notice with a worker at work, and "
        "workers count on 28s: a save that takes longer is lost. Set spec.spot.window to what holds, and "
        "save more often"
    )
    assert [one.reason for one in cluster.events].count("WindowTooShort") == 1


def test_two_such_machines_are_chance() -> None:
    assert said(azure(*cut(8, 9, 60))) is None


def test_a_machine_that_nobody_worked_on_any_more_shows_nothing() -> None:
    """A handler that drains a node may give it back long before the cloud takes it."""
    idle = [dataclasses.replace(one, cut_off=False) for one in cut(5, 5, 5, 5)]
    assert said(azure(*idle)) is None


def test_what_another_cloud_does_is_no_matter() -> None:
    other = [dataclasses.replace(one, provider="gcp") for one in cut(8, 9, 10)]
    assert said(azure(*other)) is None


def test_a_grace_that_fits_the_measured_windows_is_none() -> None:
    assert said(azure(*cut(8, 9, 10), grace=6)) is None


def test_it_is_taken_back_when_the_window_is_set_to_what_holds() -> None:
    cluster = azure(*cut(8, 9, 10))
    cluster.edit(virtual.wishes(spot=spec.Spot(window=8.0)))
    cluster.settle()

    found = said(cluster)
    assert found is not None
    assert (found.status, found.reason) == (True, "WindowLasts")


def test_it_stays_said_when_a_new_operator_has_measured_nothing_yet() -> None:
    cluster = azure(*cut(8, 9, 10))
    cluster.windows = ()
    cluster.settle()

    found = said(cluster)
    assert found is not None
    assert found.status is False


def test_it_is_said_of_jobs_whose_indexes_run_by_themselves() -> None:
    cluster = virtual.Cluster(virtual.shards()).running()
    cluster.windows = tuple(snap.Window("other", 4, cut_off=True) for _ in range(3))
    cluster.settle()

    assert said(cluster) is not None
