"""What the plugin prints, as a terminal shows it with its colours.

With SPOTTRAIN_PICTURES set to a folder a picture is left there, for the docs.
"""

import io
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import rich.console
import rich.text

from lab import packages, shell
from spottrain.cli import listing, paint, story
from tests.unit.cli import real

WIDTH = 118
_PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 0; padding: 14px; background: {background}; color: {foreground} }}
pre {{ font: 13px/18px "DejaVu Sans Mono", monospace }} {stylesheet}</style><pre>{code}</pre>"""


def session() -> list[str]:
    """Two commands and what each prints of `digits`, for a terminal with colours."""
    told = real.told()
    return [
        "$ kubectl spottrain list",
        *_painted(listing.lines([told], real.NOW)),
        "",
        "$ kubectl spottrain describe digits",
        *_painted(story.lines(told, {}, [], real.NOW)),
    ]


def _painted(lines: Iterable[paint.Line]) -> list[str]:
    return [paint.painted(line, colours=True) for line in lines]


def test_a_terminal_shows_it_in_colours(tmp_path: Path) -> None:
    packages.install({"chromium": "chromium"})
    terminal = rich.console.Console(record=True, width=WIDTH, file=io.StringIO())
    printed = session()
    terminal.print(rich.text.Text.from_ansi("\n".join(printed)), soft_wrap=True)
    page, picture = tmp_path / "plugin.html", tmp_path / "plugin.png"
    page.write_text(terminal.export_html(code_format=_PAGE))

    shell.run(
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        f"--window-size=1000,{28 + 18 * (len(printed) + 1)}",
        f"--screenshot={picture}",
        page.as_uri(),
        timeout=120,
    )

    assert picture.stat().st_size > 30_000  # an empty page has 6,000
    assert re.search(r"<span class=\"r\d\">spottrain-demo/digits: Complete</span>", page.read_text())
    if folder := os.environ.get("SPOTTRAIN_PICTURES"):
        shutil.copy(picture, Path(folder) / picture.name)
