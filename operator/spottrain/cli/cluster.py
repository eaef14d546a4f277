"""The commands that ask a cluster: their arguments, and what they do."""

import argparse
import datetime as dt
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.cli import events, history, jobs, kubectl, listing, logs, paint, report, story, words
from spottrain.train.clock import SystemClock


def add_arguments(topics: Any) -> None:
    """All of them."""
    one = _command(topics, "list", _list, "List jobs: how long, how often lost, how far, and on what.")
    one.add_argument("-A", "--all-namespaces", action="store_true")
    one.add_argument("-l", "--selector", default="", metavar="LABELS", help="such as team=vision")
    _output(one)
    text = "Tell the story of a job: its conditions, and each attempt with its cause and its cost."
    _output(_of_a_job(topics, "describe", _describe, text))
    one = _of_a_job(topics, "logs", _logs, "Print a worker's log, attempt after attempt.")
    one.add_argument("--index", type=int, default=0, help="which worker (0)")
    one.add_argument("--attempt", type=int, help="only this one (all that are still there)")
    one.add_argument("-f", "--follow", action="store_true", help="go on, into the attempts to come")
    one = _of_a_job(topics, "events", _events, "Print what the operator told of a job.")
    one.add_argument("-w", "--watch", action="store_true", help="and what it goes on to tell")
    one = _of_a_job(topics, "report", _report, "Write the life of a job to one page for a browser.")
    one.add_argument("-o", "--output", metavar="FILE", help="where to; - is the standard output (NAME.html)")


def _command(topics: Any, name: str, act: Callable[[argparse.Namespace], int], text: str) -> Any:
    one = topics.add_parser(name, help=text, description=text)
    one.set_defaults(act=act)
    one.add_argument("-n", "--namespace", default="", help="(the current one)")
    kubectl.add_arguments(one)
    return one


def _of_a_job(topics: Any, name: str, act: Callable[[argparse.Namespace], int], text: str) -> Any:
    one = _command(topics, name, act, text)
    one.add_argument("name", metavar="NAME", help="of the job")
    return one


def _output(one: Any) -> None:
    one.add_argument("-o", "--output", choices=("table", "json"), default="table")


def scope(given: argparse.Namespace) -> tuple[str, ...]:
    """The flags of kubectl for the namespace."""
    if getattr(given, "all_namespaces", False):
        return ("--all-namespaces",)
    return (f"--namespace={given.namespace}",) if given.namespace else ()


def _now() -> dt.datetime:
    return dt.datetime.fromtimestamp(SystemClock().unix(), dt.UTC)


def _print(lines: Iterable[paint.Line]) -> None:
    colours = paint.colourful(sys.stdout, os.environ)
    for line in lines:
        sys.stdout.write(f"{paint.painted(line, colours=colours)}\n")
    sys.stdout.flush()


def _note(text: str) -> None:
    """Beside what is asked for, so that a pipe gets that alone."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _list(given: argparse.Namespace) -> int:
    items = jobs.every(kubectl.chosen(given), scope(given), given.selector)
    found, now = [history.tell(item) for item in items], _now()
    if given.output == "json":
        sys.stdout.write(f"{words.as_json([listing.plain(one, now) for one in found])}\n")
    elif found:
        _print(listing.lines(found, now, everywhere=given.all_namespaces))
    else:
        _note("no jobs" if given.all_namespaces else "no jobs in this namespace: -A shows all of them")
    return 0


def _describe(given: argparse.Namespace) -> int:
    found, now = jobs.gather(kubectl.chosen(given), given.name, scope(given)), _now()
    one = history.tell(found.job, found.pods)
    if given.output == "json":
        sys.stdout.write(f"{words.as_json(story.plain(one, found.nodes, found.events, now))}\n")
    else:
        _print(story.lines(one, found.nodes, found.events, now))
    for sentence in found.missing:
        _note(sentence)
    return 0


def _logs(given: argparse.Namespace) -> int:
    cluster = kubectl.chosen(given)

    def find() -> history.History:
        job = jobs.one(cluster, given.name, scope(given))
        return history.tell(job, cluster.get(*jobs.pods_of(job))["items"])

    def out(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    wish = logs.Wish(given.index, given.attempt, given.follow)
    return 0 if logs.Reader(wish, cluster, find, SystemClock(), out, _note).read() else 1


def _events(given: argparse.Namespace) -> int:
    cluster = kubectl.chosen(given)
    job = jobs.one(cluster, given.name, scope(given))
    if given.watch:
        events.watch(job, cluster, lambda event: _print([events.line(event)]))
    found = cluster.get(*jobs.events_of(job))["items"]
    _print(map(events.line, story.in_order(found)))
    if not found:
        _note("none that the cluster still keeps (an hour, by default)")
    return 0


def _report(given: argparse.Namespace) -> int:
    found = jobs.gather(kubectl.chosen(given), given.name, scope(given))
    text = report.page(history.tell(found.job, found.pods), found.nodes, found.events, _now(), found.missing)
    if given.output == "-":
        sys.stdout.write(text)
        return 0
    path = Path(given.output or f"{given.name}.html")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.ConfigError(f"{path}: {error.strerror}; name another file with -o") from error
    sys.stdout.write(f"{path.absolute()}\n")
    return 0
