"""Every panel and every rule, asked of a real Prometheus that has read a real operator, agent and program."""

import dataclasses
import functools
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import clock, fakes, kwok
from lab.cluster import Lab
from manifests import render
from manifests.monitoring import files, promql, recorded
from spottrain.agent import cluster, settings
from spottrain.api import duration
from tests.agent import plane as agent_plane
from tests.agent.conftest import Agent, soon
from tests.cluster import play
from tests.cluster.conftest import Operator
from tests.contract import gateway
from tests.monitoring import pictures, prom
from tests.train import processes

PROGRAM = Path(__file__).parent / "programs" / "paced.py"
MACHINE = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm0"
ZONE, TYPE = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
LAST_WORD = {"spottrain": 1, "state": "preempted", "step": 41, "savedStep": 41, "saveSeconds": 1.5}
SLOWEST = 1.0
EMPTY = {"usual, week before", "to spare"}
"""Lines that this story can't draw: it has no week, and nobody knows how long its gang has to train."""
LED_TO = '{__name__=~"spottrain_reclaims_total|spottrain_reclaim_to_running_seconds_bucket"}'
"""The series whose exemplars name a job and its attempt."""
UNSEEN = {recorded.USUAL_RATE.name, "spottrain_job_deadline_slack_seconds"}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[int]:
    """An agent that has heard a notice; the port of its metrics."""
    (tmp_path / "token").write_text("t1\n")
    fake, port = fakes.Azure(), gateway.free_port()
    with agent_plane.running() as plane, fakes.running(fake):
        one = Agent(
            settings.Settings(
                node=agent_plane.NODE,
                provider="azure",
                metadata_url=fake.url,
                window=None,
                margin=2.0,
                http_port=port,
                log_level="INFO",
                server=cluster.Server(plane.url, tmp_path),
            )
        )
        one.start()
        try:
            clock.wait_for("the agent armed", lambda: one.ready, seconds=20)
            fake.give_notice(soon(30))
            yield port
        finally:
            one.stop()


@dataclasses.dataclass
class Training:
    """The lives of one program on one store."""

    bench: processes.Bench
    ports: tuple[int, int]
    _life: processes.Program | None = None

    def live(self, number: int) -> None:
        """Begin the first or the second life, and wait until it has saved."""
        self._life = self.bench.run(
            [sys.executable, str(PROGRAM), "100000", "0.1"],
            SPOTTRAIN_CHECKPOINT_URI=(self.bench.folder / "ck").as_uri(),
            SPOTTRAIN_CHECKPOINT_INTERVAL=2,
            SPOTTRAIN_ATTEMPT_ID=f"0{number}",
            SPOTTRAIN_PROGRESS_PORT=self.ports[number],
        )
        self._life.wait_for("event=saved")

    def lose(self) -> None:
        """Its machine is gone."""
        assert self._life is not None
        self._life.send(signal.SIGKILL)
        self._life.wait()


def config(
    folder: Path, job: play.Job, operator: int, agent: int, programs: tuple[int, int]
) -> dict[str, Any]:
    """As the chart's monitors make it, and all of it every second or two."""
    rules = yaml.safe_load((render.ROOT / "manifests/rules.yaml").read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))

    def target(port: int, **labels: str) -> dict[str, Any]:
        return {"targets": [f"127.0.0.1:{port}"], "labels": labels}

    own = {"namespace": job.namespace, "job": job.name}
    lives = [target(port, pod=f"{job.name}-0-{number}", **own) for number, port in enumerate(programs, 1)]
    return {
        "global": {"scrape_interval": "2s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [
            {"job_name": "operator", "honor_labels": True, "static_configs": [target(operator)]},
            {"job_name": "agents", "static_configs": [target(agent, node="n1")]},
            {"job_name": "workers", "static_configs": lives},
        ],
    }


def machines() -> list[play.Object]:
    """One of on-demand and three of spot capacity, each for one worker."""
    place = {ZONE: "zone-a", TYPE: "p5", "case": "bo"}
    spots = [
        {"name": f"bo-{index}", "labels": play.SPOT | place, "gpus": 1, "provider_id": MACHINE}
        for index in (1, 2, 3)
    ]
    return [{"name": "bo-od", "labels": play.ON_DEMAND | place, "gpus": 1}, *spots]


def begin(job: play.Job) -> None:
    """A gang of three, one of them on demand."""
    spot = {"onDemandFloor": 1, "window": "10m"}
    prices = {"spot": 1.1, "onDemand": 3.67}
    document = play.manifest(workers=3, annotations=play.BY_HAND, spot=spot, prices=prices)
    pod = document["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"case": "bo"}
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    job.applied(document)
    job.wait_running(1)


def take_away(job: play.Job, plane: Lab) -> None:
    """A machine with a worker is announced, the gang saves and stops, and the machine goes."""
    name = next(
        where
        for pod in job.pods().values()
        if (where := pod["spec"]["nodeName"]).startswith("bo-") and where != "bo-od"
    )
    mark = {"cause": "Preempted", "deadline": duration.format_time(soon(22)), "event": "e1"}
    mark["since"] = duration.format_time(soon(0))
    plane.kubectl("annotate", "node", name, f"spottrain.dev/reclaim={json.dumps(mark)}")
    job.wait("all asked to stop", lambda: len(stopping(job)) == 3)
    for pod in stopping(job):
        job.end(pod, 75, message=json.dumps(LAST_WORD))
        job.vanish(pod)
    kwok.remove(plane.api, name)
    job.wait_running(2)


def stopping(job: play.Job) -> list[str]:
    return [name for name, pod in job.pods().items() if "deletionTimestamp" in pod["metadata"]]


def filled(expression: str, job: play.Job) -> str:
    """As Grafana fills it in for this job."""
    values = {"__rate_interval": "10s", "__range": "5m", "namespace": job.namespace, "job": job.name}
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expression)


@dataclasses.dataclass(frozen=True)
class Line:
    """One query of a board, as it is asked: over time, or for this moment alone."""

    where: str
    expression: str
    over_time: bool

    def drawn(self, server: prom.Server) -> bool:
        """Whether there is anything to show."""
        now = clock.wall()
        found = (
            server.history(self.expression, now - 300, now) if self.over_time else server.now(self.expression)
        )
        return bool(found)


def lines(job: play.Job) -> Iterator[Line]:
    """Of all boards: panels, marks and choices."""
    for board in files.BOARDS:
        for panel in board.panels:
            for query in panel.queries:
                where = f"{board.title}: {panel.title}: {query.legend}"
                if query.legend not in EMPTY:
                    yield Line(where, filled(query.expression, job), panel.kind not in {"stat", "table"})
        if board.marks:
            yield Line(f"{board.title}: marks", filled(board.marks.expression, job), over_time=True)
        for one in board.variables:
            expression = f"count by ({one.name}) ({filled(one.series, job)})"
            yield Line(f"{board.title}: {one.name}", expression, over_time=False)


def test_every_panel_has_something_to_show_and_every_rule_can_be_computed(
    job: play.Job, plane: Lab, operator: Operator, agent: int, tmp_path: Path
) -> None:
    """After a gang has lost a machine, and a program has been killed and gone on."""
    ports = (gateway.free_port(), gateway.free_port())
    setup, begun = config(tmp_path, job, operator.port, agent, ports), clock.wall()
    with (
        processes.bench(tmp_path) as bench,
        prom.running(setup, tmp_path) as server,
        play.machines(plane.api, *machines()),
    ):
        training = Training(bench, ports)
        training.live(0)
        begin(job)
        first = filled('spottrain_job_attempt{namespace="$namespace"} == 1', job)
        clock.wait_for("the first attempt to be seen", lambda: server.now(first), seconds=20)
        take_away(job, plane)
        training.lose()
        training.live(1)

        asked = list(lines(job))
        clock.poll(lambda: not empty(server, asked), seconds=90, every=2)
        assert empty(server, asked) == []
        assert {one.where: took for one in asked if (took := seconds(server, one)) > SLOWEST} == {}
        assert promql.known().keys() - set(server.get("label/__name__/values")) == UNSEEN
        rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
        assert {(rule["health"], rule.get("lastError", "")) for rule in rules} == {("ok", "")}
        # Of the operator's whole life: to this Prometheus, what it counted in earlier tests is new as well.
        ((_, counted),) = server.now('sum(spottrain_reclaims_total{capacity="spot", cause!="Drill"})')
        assert counted >= 1
        assert server.now("fleet:spottrain_reclaims:increase1h")[0][1] == pytest.approx(counted, rel=0.1)
        found = server.get("query_exemplars", start=f"{begun}", end=f"{clock.wall()}", query=LED_TO)
        assert {
            (one["seriesLabels"]["__name__"], *point["labels"].values())
            for one in found
            if one["seriesLabels"]["namespace"] == job.namespace
            for point in one["exemplars"]
        } == {
            ("spottrain_reclaims_total", "1", "tr"),
            ("spottrain_reclaim_to_running_seconds_bucket", "2", "tr"),
        }
        draw(server, job, begun)


def empty(server: prom.Server, asked: list[Line]) -> list[str]:
    """What has nothing to show yet."""
    return [one.where for one in asked if not one.drawn(server)]


def seconds(server: prom.Server, line: Line) -> float:
    """What the answer takes: the least of three, since others compute here too."""

    def once() -> float:
        began = clock.now()
        line.drawn(server)
        return clock.now() - began

    return min(once() for _ in range(3))


def draw(server: prom.Server, job: play.Job, begun: float) -> None:
    """Pictures of all boards, where `make pictures` wants them."""
    if folder := os.environ.get("SPOTTRAIN_PICTURES"):
        span = pictures.Span(begun, clock.wall(), functools.partial(filled, job=job))
        for board in sorted((render.ROOT / "manifests/dashboards").glob("*.json")):
            pictures.take(server, board, span, Path(folder).resolve() / f"{board.stem}.png")
