"""How long machines last after a notice: what is timed, and what isn't."""

import dataclasses
import datetime as dt

from spottrain.api import clouds, names
from spottrain.kube import windows
from spottrain.plan import snapshot as snap

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
QUIET = snap.Node("n1", "u1", clouds.Capacity.SPOT, "azure")
UNDER_NOTICE = dataclasses.replace(QUIET, notice="Preempted", noticed=NOON)


def after(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


class Story:
    def __init__(self, *, counts: bool = True) -> None:
        self.told: list[tuple[str, float]] = []
        self.windows = windows.Windows(lambda *one: self.told.append(one))
        if counts:
            self.windows.begin()

    def look(self, node: snap.Node | None, seconds: float, *, at_work: bool = True) -> None:
        self.windows.look("n1", node, after(seconds), at_work=at_work)

    def silent(self, seconds: float) -> None:
        self.windows.ended("n1", after(seconds), at_work=True)


def test_a_node_that_goes_after_its_notice_has_had_that_window():
    story = Story()
    story.look(QUIET, 0)
    story.look(UNDER_NOTICE, 1)
    assert story.windows.nodes == {"n1"}
    story.look(None, 31)

    assert story.told == [("azure", 31.0)]
    assert story.windows.recent == (snap.Window("azure", 31.0, cut_off=True),)
    assert story.windows.nodes == set()


def test_a_node_that_falls_silent_is_timed_once_though_its_object_stays_for_a_while():
    story = Story()
    story.look(UNDER_NOTICE, 1)
    story.silent(12)
    story.look(dataclasses.replace(UNDER_NOTICE, ready=False), 40)
    story.look(None, 60)

    assert story.told == [("azure", 12.0)]


def test_another_machine_of_the_name_ends_the_window_of_the_one_before():
    story = Story()
    story.look(UNDER_NOTICE, 1)
    story.look(dataclasses.replace(QUIET, uid="u2"), 90)

    assert story.told == [("azure", 90.0)]
    assert story.windows.nodes == set()


def test_a_notice_that_is_withdrawn_is_no_window():
    story = Story()
    story.look(UNDER_NOTICE, 1)
    story.look(QUIET, 20)
    story.look(None, 3600)

    assert story.told == []


def test_a_drill_and_a_mark_without_a_time_are_not_timed():
    story = Story()
    for node in (
        dataclasses.replace(UNDER_NOTICE, notice=names.DRILL),
        dataclasses.replace(UNDER_NOTICE, noticed=None),
    ):
        story.look(node, 1)
        story.look(None, 30)

    assert story.told == []


def test_who_does_not_lead_counts_nothing_and_knows_what_is_under_way():
    story = Story(counts=False)
    story.look(dataclasses.replace(UNDER_NOTICE, uid="u0"), 0)
    story.look(None, 1)
    story.look(UNDER_NOTICE, 1)
    story.windows.begin()
    story.look(None, 30, at_work=False)

    assert story.windows.recent == (snap.Window("azure", 30.0, cut_off=False),)


def test_only_the_newest_of_a_provider_are_kept():
    story = Story()
    for second in range(30):
        story.look(dataclasses.replace(UNDER_NOTICE, uid=f"u{second}"), second)
        story.look(None, second)

    assert [one.seconds for one in story.windows.recent] == [float(one) for one in range(10, 30)]
