"""`spottrain`: the arguments, and from errors to exit codes.

Exit code 0: as asked; 1: it could not be done, or what was checked is damaged or differs; 2: not understood.
"""

import argparse
import datetime as dt
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.api import duration
from spottrain.batch import reading
from spottrain.checkpoint import location
from spottrain.checkpoint.store import Store
from spottrain.cli import (
    batches,
    checkpoints,
    cluster,
    drill,
    kubectl,
    lives,
    overview,
    planning,
    verify_resume,
    words,
)
from spottrain.policy import estimate
from spottrain.train.clock import SystemClock

_EPILOG = """A checkpoint is named by `latest`, by its step, or by the beginning of its NAME in `ls`.
Credentials are found where the store's own tools find them."""


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Do what the arguments say; the exit code."""
    given = parser(env).parse_args(arguments)
    try:
        code: int = given.act(given)
    except errors.SpottrainError as error:
        sys.stderr.write(f"spottrain: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `| head` has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    """All commands; see completion.py for who else reads it."""
    root = argparse.ArgumentParser(
        prog=_program(), description="Spot jobs: how they fare, forecasts, checkpoints, results, nodes."
    )
    topics = root.add_subparsers(required=True, metavar="TOPIC")
    cluster.add_arguments(topics)
    _verify_resume_arguments(topics)
    planning.add_arguments(topics).set_defaults(act=_plan)
    topic = topics.add_parser("checkpoints", help="what lies below a checkpoint URI")
    acts = topic.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, act: Any, text: str) -> argparse.ArgumentParser:
        made = acts.add_parser(name, help=text, description=text, epilog=_EPILOG)
        made.set_defaults(act=act)
        _place_arguments(made, env)
        made.add_argument("-o", "--output", choices=("table", "json"), default="table")
        return made

    command("ls", _ls, "List the checkpoints, the one that a new attempt goes on from first.")
    one = command("verify", _verify, "Read every byte and compare it with what was saved.")
    which = one.add_mutually_exclusive_group()
    which.add_argument("--checkpoint", default="latest", help="which one (latest)")
    which.add_argument("--all", action="store_true", help="every one that was committed")
    one = command("diff", _diff, "Compare two checkpoints: files, world size, versions.")
    one.add_argument("first", metavar="CHECKPOINT")
    one.add_argument("second", metavar="CHECKPOINT")
    one = command("prune", _prune, "Remove old checkpoints; never the newest, nor one that was gone on from.")
    one.add_argument("--keep", type=_at_least_one, required=True, help="how many to keep")
    one.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    one = command("copy", _copy, "Copy a checkpoint to an empty place, for a new job to go on from.")
    one.add_argument("target", metavar="TARGET", help="URI of the place")
    one.add_argument("--checkpoint", default="latest", help="which one (latest)")
    one.add_argument("--target-endpoint", help="if it isn't --endpoint")
    one.add_argument("--target-region", help="if it isn't --region")
    _batch_arguments(topics, env)
    _drill_arguments(topics)
    return root


def _program() -> str:
    """What the user wrote: kubectl runs the program `kubectl-spottrain` for `kubectl spottrain`."""
    return "kubectl spottrain" if Path(sys.argv[0]).stem == "kubectl-spottrain" else "spottrain"


def _place_arguments(one: argparse.ArgumentParser, env: Mapping[str, str]) -> None:
    one.add_argument("uri", metavar="URI", help="s3://, gs://, az:// or file:// URI, or a directory")
    one.add_argument("--endpoint", default=env.get("SPOTTRAIN_CHECKPOINT_ENDPOINT", ""))
    one.add_argument("--region", default=env.get("SPOTTRAIN_CHECKPOINT_REGION", ""))


def _batch_arguments(topics: Any, env: Mapping[str, str]) -> None:
    topic = topics.add_parser("batch", help="results of batch inference")
    acts = topic.add_subparsers(required=True, metavar="COMMAND")
    text = "List the batches: model, parameters, and how many inputs are done with."
    one = acts.add_parser("ls", help=text, description=text)
    one.set_defaults(act=_batch_ls)
    _place_arguments(one, env)
    one.add_argument("-o", "--output", choices=("table", "json"), default="table")
    text = "Print the results that are committed, one JSON a line, each input's once."
    one = acts.add_parser("cat", help=text, description=text)
    one.set_defaults(act=_batch_cat)
    _place_arguments(one, env)
    one.add_argument("batch", metavar="BATCH", nargs="?", default="", help="beginning of its name in `ls`")


def _plan(given: argparse.Namespace) -> int:
    now = dt.datetime.now(dt.UTC).timestamp() / 3600
    answer = estimate.estimate(planning.ask(given, now))
    _say(given, planning.table(answer), planning.plain(answer))
    return 0


def _batch_ls(given: argparse.Namespace) -> int:
    store = _store(given)
    found = batches.look(store)
    text = batches.table(found) if found else f"no batches in {store.uri}"
    _say(given, text, [batches.plain(one) for one in found])
    return 0


def _batch_cat(given: argparse.Namespace) -> int:
    store = _store(given)
    for result in reading.read(store, batches.find(store, given.batch)):
        sys.stdout.write(f"{json.dumps(result)}\n")
    return 0


def _drill_arguments(topics: Any) -> None:
    text = (
        "Rehearse the loss of a node: its agent gives notice as a cloud does, and takes it back at the end."
    )
    one = topics.add_parser("drill", help="rehearse the loss of a node", description=text)
    one.set_defaults(act=_drill)
    one.add_argument("node", metavar="NODE")
    one.add_argument("--window", type=_duration, default=30.0, help="how long the notice is (30s)")
    one.add_argument("--force", action="store_true", help="also on a node that isn't known as a spot node")
    kubectl.add_arguments(one)


def _drill(given: argparse.Namespace) -> int:
    wish = drill.Wish(given.node, given.window, given.force)
    try:
        drill.run(wish, kubectl.chosen(given), SystemClock(), _tell)
    except KeyboardInterrupt:
        _tell(f"called off: the agent takes {given.node}'s mark away")
        return 1
    return 0


def _duration(text: str) -> float:
    try:
        return duration.parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _verify_resume_arguments(topics: Any) -> None:
    text = "Run a program unbroken and through kills, and compare: printed steps, and the last state."
    one = topics.add_parser(
        "verify-resume", help="does a program end alike when it is killed?", description=text
    )
    one.set_defaults(act=_verify_resume)
    one.add_argument("--kills", type=_at_least_one, default=2, help="by SIGKILL and SIGTERM in turn (2)")
    one.add_argument("--interval", type=float, default=0.5, help="seconds between saves (0.5)")
    one.add_argument("--limit", type=float, default=600.0, help="seconds that one life may take (600)")
    one.add_argument("--seed", type=int, default=1, help="of the moments of the kills (1)")
    line, ignored = re.compile(verify_resume.LINE), re.compile(verify_resume.IGNORE)
    help_line = f"finds the step in a line of output ({line.pattern})"
    one.add_argument("--line", type=re.compile, default=line, help=help_line)
    one.add_argument("--ignore", type=re.compile, default=ignored, help=f"not compared ({ignored.pattern})")
    one.add_argument("--tolerance", type=float, help="of numbers, relative; states then need not be equal")
    one.add_argument("--folder", help="where logs and checkpoints stay; a temporary one goes at the end")
    one.add_argument("program", nargs="+", metavar="PROGRAM", help="after --: python train.py …")


def _verify_resume(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="spottrain-") as temporary:
        parent = Path(given.folder or temporary).absolute()
        parent.mkdir(parents=True, exist_ok=True)

        def make(name: str) -> lives.Program:
            folder = verify_resume.folder_of(parent, name)
            return lives.Program(given.program, folder, os.environ, given.interval, given.limit)

        wish = verify_resume.Wish(given.kills, given.seed, given.line, given.ignore, given.tolerance)
        problems = verify_resume.run(make, wish, _tell)
    for problem in problems:
        _tell(problem)
    _tell(
        "the broken run ended elsewhere"
        if problems
        else "alike: a broken run ends where an unbroken one does"
    )
    return 1 if problems else 0


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number


def _store(given: argparse.Namespace) -> Store:
    return location.open_store(location.Location(given.uri, given.endpoint, given.region))


def _say(given: argparse.Namespace, text: str, value: Any) -> None:
    sys.stdout.write(f"{words.as_json(value) if given.output == 'json' else text}\n")


def _ls(given: argparse.Namespace) -> int:
    store = _store(given)
    found = overview.look(store)
    text = words.saves(found) if found.saves else f"no checkpoints in {store.uri}"
    _say(given, text, [words.save(one) for one in found.saves])
    return 0


def _verify(given: argparse.Namespace) -> int:
    store = _store(given)
    found = overview.look(store)
    chosen = found.committed if given.all else [found.find(given.checkpoint)]
    outcome: list[checkpoints.Verified] = []

    def told(one: checkpoints.Verified) -> None:
        outcome.append(one)
        if given.output == "table":
            sys.stdout.write(f"{words.verified(one)}\n")
            sys.stdout.flush()

    sound = checkpoints.verify(store, chosen, told)
    if given.output == "json":
        sys.stdout.write(f"{words.as_json([_plain(one) for one in outcome])}\n")
    return 0 if sound else 1


def _diff(given: argparse.Namespace) -> int:
    found = overview.look(_store(given))
    first, second = found.find(given.first), found.find(given.second)
    differences = checkpoints.diff(first, second)
    text = words.differences(differences, first.directory.name, second.directory.name)
    _say(given, text, [asdict(one) for one in differences])
    return 1 if differences else 0


def _prune(given: argparse.Namespace) -> int:
    store = _store(given)
    removed = checkpoints.prune(store, overview.look(store), keep=given.keep, dry_run=given.dry_run)
    _say(given, words.removals(removed, dry_run=given.dry_run), [_plain(one) for one in removed])
    return 0


def _copy(given: argparse.Namespace) -> int:
    store = _store(given)
    endpoint = given.endpoint if given.target_endpoint is None else given.target_endpoint
    region = given.region if given.target_region is None else given.target_region
    target = location.open_store(location.Location(given.target, endpoint, region))
    save = overview.look(store).find(given.checkpoint)
    commit = checkpoints.copy(store, save, target)
    name = commit.directory.name
    _say(given, f"copied {name} to {target.uri}", {"name": name, "step": commit.step, "uri": target.uri})
    return 0


def _plain(one: checkpoints.Verified | checkpoints.Removal) -> dict[str, Any]:
    values = {key: value for key, value in asdict(one).items() if key != "directory"}
    return {"step": one.directory.step, "name": one.directory.name, **values}
