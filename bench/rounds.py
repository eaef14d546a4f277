"""Notices to one machine after another, on real kubelets, with the operator from its image and chart."""

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench import agents, cold, moments, warned
from bench.report import Report
from demo import facts, install, lab_target, play
from demo.bucket import Bucket
from demo.errors import DemoError
from demo.facts import Attempt, Run
from demo.lab_target import LabTarget
from demo.manifests import Pace
from demo.play import Stage
from demo.screen import Screen
from demo.target import Site
from lab import clock
from lab.cluster import Lab
from lab.config import DEFAULT_TIMINGS, GPUS_PER_NODE, Config, NodeSpec

SPOTS: Final = tuple(f"spot-{number}" for number in range(1, 7))
"""For a gang of four, the machine that replaces one of them, and one whose mark is just going."""
WINDOW: Final = 120.0
STANDS_FOR: Final = {"gcp": 6.0}
"""Least seconds: on GCP the agent hears half a minute later that one is withdrawn which stood for under 5."""
CONTROL_EVERY: Final = 4
BLOCK: Final = 16
"""Notices to one job: one that is reclaimed 20 times in a row without progress is braked."""
NOTICE, DELETE = "notice", "bare DELETE"
"""Cases of the report: seconds by cloud until SIGTERM has reached all workers; the other for one pod."""


@dataclass(frozen=True)
class Trained:
    """What notices cost a gang that trains.

    Of each the steps done again, and the share of the window in which steps were still made.
    """

    lost: list[int]
    shares: list[float]

    @classmethod
    def of(cls, run: Run) -> "Trained":
        """From what its workers said."""
        lost = [one.lost_steps for one in run.losses()]
        lasts = {one.number: max(_step_times(one), default=0.0) for one in run.attempts}
        shares = [(lasts[one.attempt] - one.time) / lab_target.WINDOW for one in run.faults]
        return cls([one for one in lost if one is not None], shares)


def _step_times(attempt: Attempt) -> Iterator[float]:
    return (mark.time for member in attempt.members for mark in member.steps)


@dataclass(frozen=True)
class Bench:
    """A lab, and where the words of its workers and what is measured go."""

    lab: Lab
    target: LabTarget
    site: Site
    screen: Screen
    words: Path
    report: Report

    def of(self, cloud: str) -> None:
        """All spot machines are that cloud's from now on, with an agent on each."""
        self._install("")
        self.lab.up()
        for name in SPOTS:
            self.lab.node_cloud(name, cloud)
        self._install(cloud)

    def _install(self, agent: str) -> None:
        install.operator(self.site, cold.ROOT / "charts" / "spottrain", self.screen, agent=agent)

    def notices(self, cloud: str, count: int) -> None:
        """So many, one after the other, and now and then a bare DELETE on the machine that is next."""
        for begun in range(0, count, BLOCK):
            with warned.running(self.lab, f"{cloud}-{begun}", self.words, warned.LEAVES, WINDOW) as gang:
                after = 0
                for number in range(begun, min(begun + BLOCK, count)):
                    attempt = gang.stands(after)
                    node = list(attempt.nodes.values())[number % warned.WORKERS]
                    if number % CONTROL_EVERY == 0:
                        self._control(f"alone-{cloud}-{number}", node)
                    self._notice(gang, attempt, node, cloud)
                    after = attempt.number

    def _control(self, name: str, node: str) -> None:
        self.report.add(DELETE, "kubelet", warned.deleted(self.lab, name, node, self.words))

    def _notice(self, gang: warned.Gang, attempt: warned.Attempt, node: str, cloud: str) -> None:
        notice = self.lab.notice(node, cloud, WINDOW)
        self.report.add(NOTICE, cloud, max(gang.told(attempt)) - notice.since)
        gang.stands(attempt.number)
        least = STANDS_FOR.get(cloud, 0)
        clock.wait_for("its least time", lambda: clock.wall() >= notice.since + least, seconds=least + 1)
        notice.withdraw()

    def share(self, cloud: str, window: float) -> float:
        """Of the window, for a worker on the machine that uses all that it gets; the machine does die.

        Meanwhile nothing happens to the agents of the other machines, so they are measured.
        """
        with warned.running(self.lab, f"share-{cloud}", self.words, warned.STAYS, window) as gang:
            attempt = gang.stands(0)
            pod, node = list(attempt.nodes.items())[-1]
            notice = self.lab.notice(node, cloud, window)
            told = dict(zip(attempt.nodes, gang.told(attempt), strict=True))
            others = [name for name in SPOTS if name != node]
            self.report.figure(f"agent_millicores_{cloud}", agents.millicores(self.lab, others, window / 2))
            notice.wait()
            shares = {name: (gang.last_alive(name) - moment) / window for name, moment in told.items()}
            self.report.notes[f"shares_{window:g}"] = {name: round(one, 4) for name, one in shares.items()}
            return shares[pod]

    def trained(self, out: Path, times: int, *, keep: bool) -> Trained:
        """A gang of torchrun that saves with the library, and so many notices of AWS to it.

        `keep`: it trains on after a notice (`keepTraining`).
        """
        # Half a machine each, so that each has one of its own, and what is left holds all four.
        workers = replace(
            self.site.workers, count=cold.WORKERS, gpus=GPUS_PER_NODE // 2, spot={"keepTraining": keep}
        )
        site = replace(self.site, workers=workers)
        install.namespace(site, cold.program(), self.screen)
        Bucket(site.store).make()
        stage = Stage(site, self.target, self.screen, out, cold.SCRIPT)
        pace = Pace(cold.SCRIPT.interval, cold.SCRIPT.env(pause=cold.SCRIPT.step_seconds))
        with play.started(stage, "keeps" if keep else "notice", pace) as gang:
            attempt = 0
            for _ in range(times):
                fault = play.strike(stage, gang, kind=facts.NOTICE, after=attempt)
                play.wait(stage, gang, "a step of every rank", functools.partial(moments.after, fault=fault))
                attempt = fault.attempt
            found = Trained.of(gang.so_far())
        install.remove_namespace(site.programs, self.screen)
        if len(found.lost) < times:
            raise DemoError(f"what a notice cost is unknown: the logs in {out} don't say")
        return found


@contextmanager
def prepared(lab: Lab, out: Path, report: Report, *, keep: bool) -> Iterator[Bench]:
    """The lab with Kubernetes' own timings; gone afterwards unless it is to be kept."""
    words = out / "words"
    words.mkdir(parents=True)
    screen = Screen(sys.stdout)
    spots = (NodeSpec(name, "spot", f"zone-{name}") for name in SPOTS)
    lab.down()
    try:
        lab.up(Config(nodes=(NodeSpec("od-1", "on-demand", "zone-od"), *spots), timings=DEFAULT_TIMINGS))
        target = LabTarget(lab, cold.ROOT, screen, cloud="aws")
        site = target.prepare()
        lab.kubectl("create", "namespace", warned.NAMESPACE)
        lab.wait_namespace(warned.NAMESPACE)
        yield Bench(lab, target, site, screen, words, report)
    finally:
        if not keep:
            lab.remove()
