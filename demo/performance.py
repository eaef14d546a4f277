"""One performance from the empty stage to the verdict, cleaned up however it ends."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from demo import clock, evidence, install, play, table, verdict
from demo.bucket import Bucket
from demo.errors import DemoError
from demo.facts import Run
from demo.play import Script, Stage
from demo.screen import Screen
from demo.summary import summary
from demo.target import Site, Target

PROGRAM = Path("examples/digits/train.py")
CHART = Path("charts/spottrain")


@dataclass
class _Played:
    """What is known of both runs."""

    unbroken: Run
    broken: Run

    def note(self, run: Run) -> None:
        self.broken = run


def perform(target: Target, script: Script, root: Path, out: Path, screen: Screen) -> int:
    """The exit code: 0 when the run ended as if nothing had happened. DemoError when none could be had."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = target.prepare()
    install.operator(site, root / CHART, screen, agent=target.agent)
    install.namespace(site, {"train.py": (root / PROGRAM).read_text()}, screen)
    with _store(site, out, screen) as site:
        stage = Stage(site, target, screen, out, script)
        nothing = Run(play.BROKEN, site.workers.count, script.interval)
        played = _Played(replace(nothing, name=play.UNBROKEN), nothing)
        with _cleaned_up(stage):
            problem = _play(stage, played)
    return _conclude(stage, played, problem)


def _play(stage: Stage, played: _Played) -> str:
    """Both runs; what went wrong, or nothing."""
    try:
        played.unbroken = play.unbroken(stage)
        played.broken = play.broken(stage, played.note)
    except DemoError as error:
        stage.screen.say(f"{error}")
        return str(error)
    return ""


@contextmanager
def _store(site: Site, out: Path, screen: Screen) -> Iterator[Site]:
    """The site with a place in the store for this run alone, which is emptied afterwards."""
    own = replace(site.store, uri=f"{site.store.uri}/run-{int(clock.wall())}")
    try:
        Bucket(own).make()
        if site.own_bucket:
            Bucket(site.store).empty()
    except DemoError as error:
        if site.own_bucket:
            raise
        screen.say(f"{error}; going on, as the workers may reach it")
    try:
        yield replace(site, store=own)
    finally:
        _leave(Bucket(own), out / "store.txt", screen)


def _leave(bucket: Bucket, listing: Path, screen: Screen) -> None:
    """Keep the list of what this run stored, and delete it."""
    try:
        listing.write_text("".join(f"{key}\n" for key in bucket.listing()))
        bucket.empty()
    except DemoError as error:
        screen.say(f"what this run stored stays there: {error}")


@contextmanager
def _cleaned_up(stage: Stage) -> Iterator[None]:
    """Whatever happens: evidence is kept, nodes come back, the namespace goes."""
    try:
        yield
    finally:
        programs, out = stage.site.programs, stage.out
        for problem in (*evidence.collect(programs, out), *evidence.report(programs, out, play.BROKEN)):
            stage.screen.say(problem)
        stage.screen.say("clean up: nodes come back, the demo's namespace goes")
        stage.target.heal()
        install.remove_namespace(stage.site.programs, stage.screen)


def _conclude(stage: Stage, played: _Played, problem: str) -> int:
    broken, unbroken = played.broken, played.unbroken
    text = table.report(broken, unbroken)
    result = summary(broken, unbroken)
    evidence.write_json(stage.out / "summary.json", {**result, "seconds": round(stage.screen.seconds, 1)})
    (stage.out / "table.txt").write_text(f"{text}\n")
    stage.screen.plain(f"\n{text}\n")
    found = [*([problem] if problem else []), *verdict.shortcomings(broken, unbroken)]
    for sentence in found:
        stage.screen.plain(f"NOT as it must be: {sentence}")
    if (report := stage.out / evidence.REPORT).exists():
        stage.screen.plain(f"The run as a page, by `kubectl spottrain report`: {report}")
    stage.screen.plain("Boards of reclaims for your Grafana: manifests/dashboards, see docs/boards.md")
    stage.screen.plain(f"Evidence: {stage.out}/ (summary.json, logs, events).\n{stage.target.farewell()}")
    return 1 if found else 0
