"""One run from the empty stage to the verdict."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos import harm, jobs, judge, ledger, leftovers, records, schedule
from chaos.crew import Crew
from chaos.facts import JobFacts
from chaos.harm import Done, Harm
from chaos.jobs import SLOTS, JobRun
from chaos.judge import Verdict
from chaos.node_logs import NodeLogs
from chaos.seen import Seen
from demo import clock, evidence, install
from demo.bucket import Bucket
from demo.errors import DemoError
from demo.lab_target import LabTarget
from demo.screen import Screen
from demo.target import Site
from lab import clock as lab_clock
from lab.cluster import Lab
from lab.config import Config, NodeSpec
from lab.errors import LabError

NODES: Final = (
    NodeSpec("od-1", "on-demand", "zone-a"),
    NodeSpec("od-2", "on-demand", "zone-b"),
    NodeSpec("spot-1", "spot", "zone-a"),
    NodeSpec("spot-2", "spot", "zone-b"),
    NodeSpec("spot-3", "spot", "zone-c"),
)
OPERATORS: Final = 2
IMAGE: Final = "docker.io/spottrain/operator:chaos"
"""Of its own: machines that are replaced during a run must not get what another lab has built since."""
HEAL_SECONDS: Final = 120.0
END_SECONDS: Final = 300.0
"""How long jobs may take to their end once nothing happens any more."""
TIDY_SECONDS: Final = 90.0
"""How long what is left of them may be there."""


@dataclass(frozen=True)
class Script:
    """What is to happen. `seconds`: for how long faults begin."""

    seed: int
    seconds: float
    keep: bool = False


@dataclass(frozen=True)
class Stage:
    """Where it happens; `out` gets the evidence."""

    lab: Lab
    site: Site
    screen: Screen
    out: Path

    @property
    def ledger(self) -> Path:
        """The folder in which workers write."""
        return self.out / "ledger"


def perform(lab: Lab, script: Script, root: Path, out: Path, screen: Screen) -> int:
    """The exit code: 0 when all is as it must be. DemoError or LabError when there could be no run."""
    out = out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    faults = schedule.schedule(script.seed, script.seconds, [node.name for node in NODES])
    (out / "schedule.txt").write_text("".join(f"{one.at:7.1f} s  {one.words()}\n" for one in faults))
    screen.say(f"{len(faults)} faults in {script.seconds:.0f} s: {out}/schedule.txt")
    with _stage(lab, root, out, screen, keep=script.keep) as stage:
        verdict, done = _run(stage, schedule.acts(faults))
    return _conclude(stage, script, verdict, done)


@contextmanager
def _stage(lab: Lab, root: Path, out: Path, screen: Screen, *, keep: bool) -> Iterator[Stage]:
    """The lab with operator, program and an empty bucket; gone afterwards unless it is to be kept."""
    lab.down()
    try:
        lab.up(Config(nodes=NODES))
        site = LabTarget(lab, root, screen, IMAGE).prepare()
        install.operator(site, root / "charts" / "spottrain", screen, {"replicas": OPERATORS})
        install.namespace(site, jobs.program(), screen)
        Bucket(site.store).make()
        stage = Stage(lab, site, screen, out)
        stage.ledger.mkdir()
        stage.ledger.chmod(0o777)  # workers are nobody in particular
        try:
            yield stage
        except (DemoError, LabError):
            _collect(stage)
            raise
    finally:
        if not keep:
            screen.say(f"lab {lab.name}: removed")
            lab.remove()


def _run(stage: Stage, acts: Sequence[schedule.Act]) -> tuple[Verdict, tuple[Done, ...]]:
    """All faults, the end of the jobs, and what is left of them."""
    seen = Seen(stage.site.programs, stage.out)
    crew = Crew(stage.lab.api, seen, SLOTS, lambda run: _document(stage, run))
    doer = Harm(stage.lab, crew.cancel)
    with ExitStack() as ends:
        for part in (NodeLogs(stage.lab, stage.out / "logs"), seen, crew):
            part.start()
            ends.callback(part.stop)
        _do_harm(stage, doer, crew, acts)
        crew.no_more()
        trouble = [*_heal(stage), *_wait_for_the_end(stage, crew)]
        left = _tidy(stage, crew)
    facts = _facts(stage, crew, seen, doer.done)
    found = Verdict(tuple(judge.judge(one) for one in facts), tuple(left), tuple(trouble))
    return found, tuple(doer.done)


def _document(stage: Stage, run: JobRun) -> dict[str, Any]:
    return jobs.document(run, stage.site.workers, stage.site.store, stage.ledger)


def _do_harm(stage: Stage, doer: Harm, crew: Crew, acts: Sequence[schedule.Act]) -> None:
    began = clock.now()
    for act in acts:
        harm.wait_until(began + act.at)
        done = doer.carry_out(act)
        stage.screen.say(f"{done.words()}; {crew.standing()}")


def _heal(stage: Stage) -> list[str]:
    """Whatever is still away comes back; a sentence when it does not."""

    def healed() -> bool:
        try:
            stage.screen.say(f"no more faults: {stage.lab.up()}")
        except LabError as error:
            stage.screen.say(f"{error}")
            return False
        return True

    if lab_clock.poll(healed, seconds=HEAL_SECONDS, every=1.0):
        return []
    return [f"the lab could not be healed within {HEAL_SECONDS:.0f} s"]


def _wait_for_the_end(stage: Stage, crew: Crew) -> list[str]:
    def over() -> bool:
        stage.screen.stands(crew.standing())
        return crew.all_over()

    if lab_clock.poll(over, seconds=END_SECONDS, every=0.5):
        return []
    return [f"the jobs did not end within {END_SECONDS:.0f} s: {crew.standing()}"]


def _tidy(stage: Stage, crew: Crew) -> list[str]:
    """What is left of jobs that are over, and then, when all are deleted, of any."""
    deleted = crew.deleted()
    left = _settled(lambda: leftovers.now_when_complete(stage.lab, deleted))
    _collect(stage)
    for run in crew.jobs:
        stage.lab.api.call("DELETE", f"{leftovers.OWNED['SpotTrainingJob']}/{run.name}")
    return [*left, *_settled(lambda: leftovers.now_when_deleted(stage.lab))]


def _collect(stage: Stage) -> None:
    """What the cluster says now, into the output folder."""
    for problem in evidence.collect(stage.site.programs, stage.out):
        stage.screen.say(problem)


def _settled(objections: Callable[[], list[str]]) -> list[str]:
    """The objections that still stand when the time is over."""
    lab_clock.poll(lambda: not objections(), seconds=TIDY_SECONDS, every=1.0)
    return objections()


def _facts(stage: Stage, crew: Crew, seen: Seen, done: Sequence[Done]) -> tuple[JobFacts, ...]:
    lines = ledger.read(stage.ledger)
    claims = records.read(Bucket(stage.site.store), crew.jobs)
    cut = harm.windows(done)
    return tuple(
        JobFacts(
            name=run.name,
            mode=run.slot.mode,
            workers=run.slot.workers,
            steps=run.slot.steps,
            lines=tuple(line for line in lines if line.job == run.name),
            claims=claims[run.name],
            told=seen.told(run.name),
            cut=cut,
            cancelled_at=crew.cancelled.get(run.name),
        )
        for run in sorted(crew.jobs, key=lambda run: run.name)
    )


def _conclude(stage: Stage, script: Script, verdict: Verdict, done: Sequence[Done]) -> int:
    began = done[0].at if done else 0.0
    told = [{"at": round(one.at - began, 1), "time": one.at, "what": one.words()} for one in done]
    report = {"seed": script.seed, "minutes": script.seconds / 60, **judge.summary(verdict), "faults": told}
    evidence.write_json(stage.out / "report.json", report)
    text = judge.table(verdict)
    (stage.out / "table.txt").write_text(f"{text}\n")
    stage.screen.plain(f"\n{text}\n")
    for sentence in verdict.sentences:
        stage.screen.plain(f"NOT as it must be: {sentence}")
    word = "passed" if verdict.passed else "FAILED"
    stage.screen.plain(
        f"seed {script.seed}: {word}; {len(verdict.jobs)} jobs, {len(done)} acts; {stage.out}/report.json"
    )
    return 0 if verdict.passed else 1
