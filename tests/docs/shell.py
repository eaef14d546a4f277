"""Lines for a shell, as a page shows them: one command after another, and what it prints below."""

import functools
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs import pages

LANGUAGES = ("sh", "console")
_HERE = re.compile(r"(?<!<)<<-?\s*['\"]?(\w+)")
_ENDS = {"|", "||", "&&", ";", "&", "(", ")"}


@dataclass(frozen=True)
class Command:
    """What bash is given, with the lines that continue it, and the output that is shown."""

    block: pages.Block
    line: str
    output: str = ""

    def __str__(self) -> str:
        return f"{self.block} {self.line.splitlines()[0]}"


def commands(block: pages.Block) -> list[Command]:
    """Those of a block: in `console` they begin with a dollar, and other lines are output."""
    return list(_of_console(block) if block.language == "console" else _of_script(block))


@functools.cache
def every() -> tuple[Command, ...]:
    """Those of all pages, in their order."""
    return tuple(command for block in pages.blocks(*LANGUAGES) for command in commands(block))


def simple(line: str) -> list[list[str]]:
    """A command line's programs with their arguments: without what only the shell sees."""
    if _HERE.search(line):
        line = line.partition("\n")[0]
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if word in _ENDS:
            found.append([])
        else:
            found[-1].append(word)
    return [words for one in found if (words := _without_prefix(one))]


def _without_prefix(words: list[str]) -> list[str]:
    """Without redirections, `sudo`, and variables that are set for the program alone."""
    for at, word in enumerate(words):
        if set(word) <= set("<>&") or (word.isdigit() and words[at + 1 : at + 2] in (["<"], [">"])):
            words = words[:at]
            break
    while words and (words[0] in {"sudo", "-E", "time"} or re.match(r"\w+=", words[0])):
        words = words[1:]
    return words


def _of_script(block: pages.Block) -> Iterator[Command]:
    pending: list[str] = []
    for line in block.text.splitlines():
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        pending.append(line)
        if _whole(text := "\n".join(pending)):
            yield Command(block, text)
            pending = []
    assert not pending, f"{block}: bash finds no end of: {pending[0]}"


def _of_console(block: pages.Block) -> Iterator[Command]:
    command: list[str] = []
    output: list[str] = []
    for line in block.text.splitlines():
        if command and not output and not _whole("\n".join(command)):
            command.append(line)
        elif line.startswith("$ "):
            if command:
                yield Command(block, "\n".join(command), "\n".join(output))
            command, output = [line.removeprefix("$ ")], []
        else:
            assert command, f"{block}: output before the first command, which begins with `$ `"
            output.append(line)
    if command:
        yield Command(block, "\n".join(command), "\n".join(output))


def _whole(text: str) -> bool:
    """Nothing is to follow: no backslash at the end, no open quote, loop or here-document."""
    lines = text.splitlines()
    if lines[-1].endswith("\\"):
        return False
    if (here := _HERE.search(text)) and here[1] not in (line.strip() for line in lines[1:]):
        return False
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
