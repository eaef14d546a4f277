"""The play: an unbroken run, then one that loses two nodes."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from demo import clock, facts, manifests
from demo.errors import DemoError
from demo.facts import Attempt, Fault, Member, Run
from demo.gang import Gang
from demo.manifests import Pace
from demo.screen import Screen
from demo.target import Site, Target

T = TypeVar("T")

BROKEN, UNBROKEN = "digits", "digits-unbroken"


_WORDS = {
    facts.NOTICE: "gets notice from its cloud",
    facts.EVICT: "is cordoned, its worker evicted",
    facts.KILL: "is killed, without notice",
    facts.UNPLUG: "is killed, without notice and without a last packet",
}


@dataclass(frozen=True)
class Script:
    """Lengths: `steps` of training; seconds per step and between saves; `deadline` seconds for each scene."""

    steps: int = 300
    seed: int = 1
    step_seconds: float = 0.1
    interval: float = 5.0
    deadline: float = 240.0

    def env(self, *, pause: float) -> dict[str, str]:
        """The environment of examples/digits."""
        return {
            "DIGITS_STEPS": str(self.steps),
            "DIGITS_SEED": str(self.seed),
            "DIGITS_STEP_SECONDS": f"{pause:g}",
        }


@dataclass(frozen=True)
class Stage:
    """Where and how the play is given; `out` gets the evidence."""

    site: Site
    target: Target
    screen: Screen
    out: Path
    script: Script


def unbroken(stage: Stage) -> Run:
    """The same program with the same seed and workers, at full speed and with nothing happening to it."""
    script = stage.script
    # No interval ends within this run: it saves at its end alone.
    pace = Pace(interval=3600, env=script.env(pause=0))
    stage.screen.say(f"the run to compare with: {script.steps} steps, nothing happens to it")
    with started(stage, UNBROKEN, pace) as gang:
        return _until_complete(stage, gang)


def broken(stage: Stage, note: Callable[[Run], None]) -> Run:
    """The run that loses two nodes; `note` gets what is known whenever this ends, well or badly."""
    script = stage.script
    pace = Pace(interval=script.interval, env=script.env(pause=script.step_seconds))
    workers = stage.site.workers
    stage.screen.say(
        f"{workers.count} workers, {workers.floor} of them on on-demand, a save every {script.interval:g} s"
    )
    with started(stage, BROKEN, pace) as gang:
        try:
            first = strike(stage, gang, kind=stage.target.faults[0])
            strike(stage, gang, kind=stage.target.faults[1], after=first.attempt, spared=(first.rank,))
            return _until_complete(stage, gang)
        finally:
            note(gang.so_far())


def started(stage: Stage, name: str, pace: Pace) -> Gang:
    """A job of this name, applied and watched."""
    site = stage.site
    site.programs.apply(manifests.job(name, site.workers, site.store, pace))
    run = Run(name=name, workers=site.workers.count, interval=pace.interval)
    return Gang(site, run, stage.out / name)


def strike(stage: Stage, gang: Gang, *, kind: str, after: int = 0, spared: tuple[int, ...] = ()) -> Fault:
    """Wait for an attempt later than number `after` to be half an interval past a save, and take a node away.

    Never that of rank 0, nor of a `spared` rank.
    """
    current = wait(
        stage, gang, "a committed save, passed by every rank,", functools.partial(ripe, after=after)
    )
    member = victim(current, spared)
    step = -1 if current.last_step is None else current.last_step
    fault = Fault(kind, current.number, member.node, member.index, step, clock.wall())
    others = [one.index for one in current.members if one.node == member.node and one != member]
    also = f" (and of rank {', '.join(map(str, others))})" if others else ""
    stage.screen.say(f"node {member.node} of rank {member.index}{also} {_WORDS[kind]} at step {fault.step}")
    gang.struck(fault)
    stage.target.strike(kind, node=member.node, pod=member.pod)
    return fault


def ripe(run: Run, *, after: int) -> Attempt | None:
    """The attempt that runs, if it is later than number `after` and each rank half an interval past a save.

    DemoError when the job is over already.
    """
    if run.completed:
        raise DemoError(f"{run.name} completed before a node could be taken: give it more --steps")
    current = run.attempts[-1] if run.attempts else None
    if current is None or current.number <= after or current.running(run.workers) is None:
        return None
    half = round((current.rate() or 0) * run.interval / 2)
    return current if current.passed_save(run.workers, beyond=max(1, half)) else None


def victim(attempt: Attempt, spared: tuple[int, ...]) -> Member:
    """A member whose node can go: not rank 0's, not one of `spared`, by preference alone on its node."""
    home = {one.node for one in attempt.members if one.index == 0}
    candidates = [
        one for one in attempt.members if one.index > 0 and one.node not in home and one.index not in spared
    ]
    if not candidates:
        places = ", ".join(f"rank {one.index} on {one.node}" for one in attempt.members)
        raise DemoError(f"no other rank has a node that rank 0 is not on: {places}")
    crowd = [one.node for one in attempt.members]
    return min(candidates, key=lambda one: (crowd.count(one.node), one.index))


def _until_complete(stage: Stage, gang: Gang) -> Run:
    run = wait(stage, gang, "the end of the job", lambda run: run if run.completed else None)
    last = run.attempts[-1].number
    clock.wait_for("the end of the workers' logs", lambda: gang.logs_read(last), seconds=20)
    run = gang.so_far()
    stage.screen.say(
        f"{run.name} is complete after {len(run.attempts)} attempts: final loss {run.final_loss}"
    )
    return run


def wait(stage: Stage, gang: Gang, what: str, probe: Callable[[Run], T | None]) -> T:
    """What `probe` finds in the run; DemoError when the job has failed, or the scene takes too long."""

    def ask() -> T | None:
        run = gang.so_far()
        if run.phase == "Failed":
            raise DemoError(f"{run.name} failed: {run.message}")
        return probe(run)

    def tell() -> str:
        return standing(gang.so_far())

    return clock.wait_for(
        f"{what} of {gang.so_far().name}",
        ask,
        seconds=stage.script.deadline,
        tell=tell,
        show=stage.screen.stands,
    )


def standing(run: Run) -> str:
    """How a run stands, in one line."""
    if not run.attempts:
        return f"{run.name}: {run.phase or 'not seen by the operator yet'} {run.message}".rstrip()
    last = run.attempts[-1]
    running = sum(member.running is not None for member in last.members)
    parts = [f"{run.name}: attempt {last.number}", f"{running} of {run.workers} workers have started"]
    if last.last_step is not None:
        parts.append(f"step {last.last_step}")
        if last.saves:
            parts.append(f"saved step {last.saves[-1].step}")
    elif run.message:
        parts.append(run.message)
    return ", ".join(parts)
