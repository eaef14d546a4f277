"""What can be written next, for shells: kubectl asks the program `kubectl_complete-spottrain`.

Its protocol is cobra's: one word a line, then a line with `:` and a number. 4: offer no files, 0: files too.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from spottrain import errors
from spottrain.cli import jobs, kubectl
from spottrain.cli import main as command

_NO_FILES, _FILES = ":4", ":0"
_SECONDS = 3


def main() -> None:
    """Entry point of the console script; what can't be found out is not offered, and nothing is said."""
    found = candidates(sys.argv[1:], command.parser(os.environ), _ask)
    sys.stdout.write("".join(f"{one}\n" for one in [*found, _NO_FILES if found else _FILES]))


def candidates(
    typed: Sequence[str],
    parser: argparse.ArgumentParser,
    ask: Callable[[Sequence[str], str], list[str]],
) -> list[str]:
    """Words that may stand where the last one of `typed` is begun.

    `ask`: the names that the cluster has, by what was typed and by the kind that is wanted.
    """
    *before, begun = typed or [""]
    previous = ""
    for word in before:
        found = _commands(parser).get(word)
        parser, previous = (found, "") if found else (parser, word)
    option = _option(parser, previous)
    if option is not None and option.nargs != 0:
        offered = _of_option(option, before, ask)
    elif begun.startswith("-"):
        offered = [text for one in _actions(parser) for text in one.option_strings]
    else:
        offered = [*_commands(parser), *_positional(parser, before, ask)]
    return sorted(one for one in set(offered) if one.startswith(begun))


def _of_option(
    option: argparse.Action, before: Sequence[str], ask: Callable[[Sequence[str], str], list[str]]
) -> list[str]:
    if option.choices:
        return [str(one) for one in option.choices]
    return ask(before, option.dest) if option.dest in {"namespace", "context"} else []


def _positional(
    parser: argparse.ArgumentParser, before: Sequence[str], ask: Callable[[Sequence[str], str], list[str]]
) -> list[str]:
    """The first argument of a command: a job or a node by name."""
    wanted = {one.metavar for one in _actions(parser) if not one.option_strings}
    kind = {"NAME": "job", "NODE": "node"}
    return [name for metavar in wanted if metavar in kind for name in ask(before, kind[str(metavar)])]


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 - argparse has no other way to ask what it was told


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found = [one.choices for one in _actions(parser) if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
    return found[0] if found else {}


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next((one for one in _actions(parser) if word in one.option_strings), None)


def _ask(before: Sequence[str], kind: str) -> list[str]:
    reader = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    kubectl.add_arguments(reader)
    reader.add_argument("-n", "--namespace")
    try:
        given, _ = reader.parse_known_args(before)
        asked = kubectl.chosen(given)
        if kind == "context":
            return asked.run("config", "get-contexts", "--output=name").split()
        resource = {"job": jobs.RESOURCE, "node": "nodes", "namespace": "namespaces"}[kind]
        place = (f"--namespace={given.namespace}",) if given.namespace and kind == "job" else ()
        names = asked.run("get", resource, *place, "--output=name", f"--request-timeout={_SECONDS}s")
    except (errors.ClusterError, argparse.ArgumentError):
        return []
    return [one.partition("/")[2] for one in names.split()]
