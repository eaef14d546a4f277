"""`spottrain drill` against a cluster whose agent behaves, or doesn't."""

import contextlib
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest

from spottrain import errors
from spottrain.api import duration, names
from spottrain.cli import drill
from tests.unit.train.virtual import VirtualClock

NOW = 1_800_000_000.0
Object = dict[str, Any]


def node(
    *, age: float = 10, labels: dict[str, str] | None = None, said: dict[str, str] | None = None
) -> Object:
    """A spot node of AWS whose agent was heard so many seconds ago."""
    heard = duration.format_time(dt.datetime.fromtimestamp(NOW - age, dt.UTC))
    condition = {"type": names.CONDITION_NOTICES, "status": "True", "lastHeartbeatTime": heard}
    spot = {"karpenter.sh/capacity-type": "spot"} if labels is None else labels
    return {
        "metadata": {"name": "n1", "labels": spot, "annotations": said or {}},
        "spec": {"providerID": "aws:///z/i-1"},
        "status": {"conditions": [condition]},
    }


class Cluster:
    """One node, whose agent begins a drill after so many seconds or never, and ends it if it `ends`."""

    def __init__(
        self, clock: VirtualClock, found: Object, *, begins: float | None = 2, ends: bool = True
    ) -> None:
        self.clock, self.node, self.begins, self.ends = clock, found, begins, ends
        self.asked_at: float | None = None
        self.commands: list[tuple[str, ...]] = []
        self.pods: list[Object] = []

    def get(self, *what: str) -> Object:
        if what[0] == "pods":
            return {"items": self.pods}
        self._agent()
        return self.node

    def run(self, *arguments: str) -> str:
        self.commands.append(arguments)
        key, separator, value = arguments[-1].partition("=")
        if separator:
            self._annotations[key] = value
            self.asked_at = self.clock.now
        else:
            self._annotations.pop(key.removesuffix("-"), None)
        return ""

    @property
    def _annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.node["metadata"]["annotations"]
        return found

    def _agent(self) -> None:
        if self.asked_at is None or self.begins is None:
            return
        asked = json.loads(self._annotations.get(names.ANNOTATION_DRILL, "{}"))
        began = self.asked_at + self.begins
        if self.ends and self.clock.now >= began + asked.get("window", 0):
            for key in (names.ANNOTATION_DRILL, names.ANNOTATION_RECLAIM):
                self._annotations.pop(key, None)
        elif asked and self.clock.now >= began:
            mark = {"cause": "Drill", "event": asked["id"], "deadline": "2027-01-15T08:00:32Z"}
            self._annotations[names.ANNOTATION_RECLAIM] = json.dumps(mark)


def run(
    found: Object,
    change: Callable[[Cluster], None] = lambda _: None,
    *,
    force: bool = False,
    window: float = 30,
) -> tuple[Cluster, list[str]]:
    clock, told = VirtualClock(NOW), []  # type: ignore[var-annotated]
    cluster = Cluster(clock, found)
    change(cluster)
    try:
        drill.run(drill.Wish("n1", window, force), cluster, clock, told.append)
    except errors.ClusterError as error:
        told.append(str(error))
    return cluster, told


def test_a_drill_is_asked_for_followed_and_over():
    def carry(cluster: Cluster) -> None:
        cluster.pods = [{"metadata": {"namespace": "ml", "name": "tr-0-1"}}]

    cluster, told = run(node(), carry)

    assert [one.partition(":")[0] for one in told] == [told[0].partition(":")[0], "workers on it", "over"]
    assert "for its workers n1 is taken at 2027-01-15T08:00:32Z" in told[0]
    assert told[1:] == ["workers on it: ml/tr-0-1", "over: n1 takes workers again"]
    ((_, _, _, annotation),) = cluster.commands
    asked = json.loads(annotation.partition("=")[2])
    assert (asked["window"], asked["asked"]) == (30, "2027-01-15T08:00:00Z")
    assert cluster.clock.now == pytest.approx(NOW + 32, abs=2)


def test_every_drill_is_another_one():
    ids = {json.loads(run(node())[0].commands[0][-1].partition("=")[2])["id"] for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            node() | {"status": {}},
            "n1 has no notice agent, and nobody else would begin the drill: install it",
        ),
        (node(age=1000), "the agent of n1 has not been heard since 2027-01-15T07:43:20Z: `kubectl describe`"),
        (node(labels={}), "n1 carries no mark of a spot node (unknown): --force"),
        (
            node(labels={"karpenter.sh/capacity-type": "on-demand"}),
            "n1 carries no mark of a spot node (on-demand)",
        ),
        (
            node(said={names.ANNOTATION_RECLAIM: '{"cause": "Preempted"}'}),
            "n1 is under notice already (Preempted): choose another node",
        ),
        (node(said={names.ANNOTATION_RECLAIM: "?"}), "n1 is under notice already (notice)"),
        (node(said={names.ANNOTATION_DRILL: "{}"}), "a drill on n1 has been asked for already"),
    ],
    ids=[
        "no-agent",
        "silent-agent",
        "unknown",
        "on-demand",
        "under-notice",
        "marked-by-hand",
        "asked-already",
    ],
)
def test_a_node_that_is_not_fit_for_it_is_refused_and_left_alone(found: Object, words: str):
    cluster, told = run(found)

    (sentence,) = told
    assert sentence.startswith(words)
    assert cluster.commands == []


def test_a_node_that_is_not_known_as_spot_is_drilled_when_forced():
    _, told = run(node(labels={}), force=True)

    assert told[-1] == "over: n1 takes workers again"


@pytest.mark.parametrize("window", [0, 4, 7200])
def test_a_window_that_makes_no_sense_is_refused(window: float):
    cluster, (sentence,) = run(node(), window=window)

    assert sentence == f"a window of {window:g} s: choose one from 5s to 1h"
    assert cluster.commands == []


def test_a_drill_that_no_agent_begins_is_called_off():
    def sleep(cluster: Cluster) -> None:
        cluster.begins = None

    cluster, (sentence,) = run(node(), sleep)

    assert sentence.startswith("the agent of n1 has not begun the drill within 30 s, so it is called off")
    assert cluster.commands[-1] == ("annotate", "node", "n1", "spottrain.dev/drill-")


def test_a_mark_that_stays_is_said_with_the_way_out():
    def die(cluster: Cluster) -> None:
        cluster.ends = False

    _, told = run(node(), die)

    assert "n1 is still marked, 30 s after the drill's end" in told[-1]
    assert "kubectl taint node n1 spottrain.dev/reclaim-" in told[-1]


def test_an_impatient_end_calls_it_off():
    clock = VirtualClock(NOW)
    cluster = Cluster(clock, node())

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        drill.run(drill.Wish("n1", 30), cluster, clock, interrupt)

    assert cluster.commands[-1][-1] == "spottrain.dev/drill-"
