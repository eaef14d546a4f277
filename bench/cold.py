"""How long a gang does not train after one of its nodes has died without notice, on real kubelets.

A lab of its own (`cold`) with Kubernetes' own timings, the operator from its image and chart, and the demo's
training program: four ranks under torchrun, each on a node of its own, with room on any three of them.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import moments
from bench.moments import Moments
from demo import evidence, facts, install, play
from demo.bucket import Bucket
from demo.facts import Fault
from demo.gang import Gang
from demo.lab_target import LabTarget
from demo.manifests import Pace
from demo.play import Script, Stage
from demo.screen import Screen
from lab.cluster import Lab
from lab.config import DEFAULT_TIMINGS, GPUS_PER_NODE, Config, NodeSpec

ROOT: Final = Path(__file__).parents[1]
JOB: Final = "cold"
WORKERS: Final = 4
NODES: Final = (
    NodeSpec("od-1", "on-demand", "zone-a"),
    NodeSpec("spot-1", "spot", "zone-b"),
    NodeSpec("spot-2", "spot", "zone-c"),
    NodeSpec("spot-3", "spot", "zone-d"),
)
SCRIPT: Final = Script(steps=1_000_000)
"""More steps than are done before it is deleted."""

Note = Callable[[Fault, Moments], None]


def measure(name: str, kinds: Sequence[str], out: Path, note: Note, *, keep: bool) -> None:
    """One gang, and a death of each of these kinds (KILL or UNPLUG), one after the other.

    `note` gets each as soon as it is known. LabError or DemoError when it cannot be done.
    """
    with _stage(Lab(name), out, keep=keep) as stage:
        pace = Pace(interval=SCRIPT.interval, env=SCRIPT.env(pause=SCRIPT.step_seconds))
        with play.started(stage, JOB, pace) as gang:
            attempt = 0
            for kind in kinds:
                fault = play.strike(stage, gang, kind=kind, after=attempt)
                note(fault, _trains_again(stage, gang, fault))
                Lab(name).node_start(fault.node)
                attempt = fault.attempt


def _trains_again(stage: Stage, gang: Gang, fault: Fault) -> Moments:
    return play.wait(stage, gang, "a step of every rank", lambda run: moments.after(run, fault))


@contextmanager
def _stage(lab: Lab, out: Path, *, keep: bool) -> Iterator[Stage]:
    """The lab with operator, program and an empty bucket; gone afterwards unless it is to be kept."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    screen = Screen(sys.stdout)
    lab.down()
    try:
        lab.up(Config(nodes=NODES, timings=DEFAULT_TIMINGS))
        target = LabTarget(lab, ROOT, screen)
        site = target.prepare()
        # Half a node each: one node can go, and what is left still holds all four.
        site = replace(site, workers=replace(site.workers, count=WORKERS, gpus=GPUS_PER_NODE // 2))
        install.operator(site, ROOT / "charts" / "spottrain", screen)
        install.namespace(site, program(), screen)
        Bucket(site.store).make()
        try:
            yield Stage(site, target, screen, out, SCRIPT)
        finally:
            for problem in evidence.collect(site.programs, out):
                screen.say(problem)
    finally:
        if not keep:
            lab.remove()


def program() -> dict[str, str]:
    """The files that the workers run."""
    return {
        "train.py": (ROOT / "bench" / "loaded.py").read_text(),
        "digits.py": (ROOT / "examples" / "digits" / "train.py").read_text(),
    }


def deaths(rounds: int) -> tuple[str, ...]:
    """What happens to the nodes, in order: so many sudden deaths, and one whose last packets are lost too."""
    return (*[facts.KILL] * rounds, facts.UNPLUG)
