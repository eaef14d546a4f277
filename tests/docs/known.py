"""Which words our own programs take: subcommands, flags, make's targets, pip's extras."""

import argparse
import contextlib
import io
import itertools
import re
import tomllib
from collections.abc import Sequence

import chaos.__main__
import lab.__main__
from spottrain.cli import main
from tests.docs.pages import ROOT

TARGETS = frozenset(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXTRAS = frozenset(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
_MODULES = {"lab": lab.__main__._parser, "chaos": chaos.__main__._parser}


def split(words: Sequence[str]) -> tuple[str, list[str]]:
    """Which of `spottrain`, `lab`, `chaos`, `make` and `pip` it is, "" if none, and its arguments."""
    match words:
        case ["spottrain", *rest] | ["kubectl", "spottrain", *rest]:
            return "spottrain", rest
        case ["python" | "python3", "-m", module, *rest] if module in _MODULES:
            return module, rest
        case ["make" | "pip" as program, *rest]:
            return program, rest
    return "", []


def complaint(words: Sequence[str]) -> str:
    """What our program says against a whole command line; "" when it takes it, or is not ours."""
    program, rest = split(words)
    if program == "make":
        return _targets(rest)
    if program == "pip":
        return _extras(rest)
    return _parsed(_parser(program), rest) if program else ""


def unknown(words: Sequence[str]) -> list[str]:
    """What a command that need not be whole has, and its program hasn't: subcommands and flags."""
    program, rest = split(words)
    if program in {"", "make", "pip"}:
        said = complaint(words)
        return [said] if said else []
    parser, missing = _parser(program), []
    for before, word in itertools.pairwise(["", *rest]):
        commands = _commands(parser)
        if word.startswith("--") and word != "--" and word.partition("=")[0] not in _flags(parser):
            missing.append(word)
        elif re.fullmatch(r"[a-z][a-z-]+", word) and commands and not before.startswith("--"):
            if word not in commands:
                return [*missing, word]
            parser = commands[word]
    return missing


def _parser(program: str) -> argparse.ArgumentParser:
    return _MODULES[program]() if program in _MODULES else main.parser({})


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return {name: one for group in groups for name, one in group.choices.items()}


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    return {flag for action in parser._actions for flag in action.option_strings}


def _parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            parser.parse_args(words)
        except SystemExit as end:
            return said.getvalue() if end.code else ""
    return ""


def _targets(words: Sequence[str]) -> str:
    targets = [word for word in words if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
    return "".join(f"the Makefile has no target {one}\n" for one in targets if one not in TARGETS)


def _extras(words: Sequence[str]) -> str:
    """Of requirements that are this project: a folder of a checkout, or its name."""
    named = [re.fullmatch(r"(?:\.|spottrain|\S*/spottrain)\[([\w,]+)\]", word) for word in words]
    extras = [extra for one in named if one for extra in one[1].split(",")]
    return "".join(f"pyproject.toml has no extra {one}\n" for one in extras if one not in EXTRAS)
