"""The documentation as a markdown parser sees it: fenced blocks, and words set as code."""

import functools
import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_MARKDOWN = MarkdownIt().enable("table")


@dataclass(frozen=True)
class Block:
    """What stands between two fences, at `page`:`line`. An indented block is text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Word:
    """What stands between two backticks, in the paragraph at `page`:`line`."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} `{self.text}`"


def files() -> list[Path]:
    """What users read; docs/decisions tell what was, and stay as they are."""
    found = itertools.chain(
        ROOT.glob("*.md"),
        (path for path in ROOT.glob("docs/**/*.md") if "decisions" not in path.parts),
        ROOT.glob("charts/*/README.md"),
        ROOT.glob("examples/**/*.md"),
    )
    return sorted(path for path in found if path.name != "CHANGELOG.md")


def blocks(*languages: str) -> list[Block]:
    """All of them in the order of the pages, or those in one of the languages."""
    return [one for one in _every_block() if not languages or one.language in languages]


@functools.cache
def words() -> tuple[Word, ...]:
    """Every piece of code within a sentence or a table."""
    return tuple(word for path in files() for word in _words(path))


@functools.cache
def _every_block() -> tuple[Block, ...]:
    return tuple(block for path in files() for block in _blocks(_name(path), path.read_text(), 1))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(page: str, text: str, first: int) -> Iterator[Block]:
    for token in _MARKDOWN.parse(text):
        line = first + (token.map or (0,))[0]
        if token.type == "fence":
            yield Block(page, line, token.info.strip(), token.content)
        elif token.type == "code_block" and "```" in token.content:
            # Other than CommonMark, the site's markdown has fences within `!!! note`, indented by four.
            yield from _blocks(page, textwrap.dedent(token.content), line)
        elif token.type == "code_block":
            yield Block(page, line, "text", token.content)


def _words(path: Path) -> Iterator[Word]:
    for token in _MARKDOWN.parse(path.read_text()):
        inner: list[Token] = token.children or []
        line = 1 + (token.map or (0,))[0]
        yield from (Word(_name(path), line, one.content) for one in inner if one.type == "code_inline")
