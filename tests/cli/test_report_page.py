"""The report in a real browser: it shows, it prints, it asks nobody for anything.

With SPOTTRAIN_PICTURES set to a folder the picture is left there, for the docs.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import packages
from spottrain.cli import history, report
from tests.unit.cli import real

CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of `digits`."""
    packages.install({"chromium": "chromium"})
    folder = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    path.write_text(report.page(history.tell(*real.digits()), {}, [], real.NOW))
    return path


def browse(page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    profile = f"--user-data-dir={page.parent / 'profile'}"
    return subprocess.run(
        [*CHROMIUM, profile, *flags, page.as_uri()], capture_output=True, text=True, check=True, timeout=240
    )


def test_it_shows(page: Path):
    picture = page.with_name("report.png")

    browse(page, "--window-size=1000,1150", f"--screenshot={picture}")

    head = picture.read_bytes()[:24]
    assert (head[:8], int.from_bytes(head[16:20])) == (b"\x89PNG\r\n\x1a\n", 1000)
    assert picture.stat().st_size > 30_000  # an empty page has 6,000
    if folder := os.environ.get("SPOTTRAIN_PICTURES"):
        shutil.copy(picture, Path(folder) / "report.png")


def test_it_prints_on_a_few_sheets(page: Path):
    sheets = page.with_name("report.pdf")

    browse(page, f"--print-to-pdf={sheets}")

    text = sheets.read_bytes()
    assert text.startswith(b"%PDF-")
    assert 1 <= text.count(b"/Type /Page\n") <= 4


def test_a_browser_reads_it_as_it_was_written_and_loads_nothing(page: Path):
    shown = browse(page, "--dump-dom", "--enable-logging=stderr")

    assert shown.stdout.count("<section ") == page.read_text().count("<section ")
    assert shown.stdout.count("<rect ") == page.read_text().count("<rect ") == 7
    assert "Content Security Policy" not in shown.stderr


def test_what_got_past_all_escaping_would_not_be_loaded(page: Path):
    worse = page.with_name("worse.html")
    worse.write_text(page.read_text().replace("<main>", "<main><img src='http://127.0.0.1:9/x.png' />"))

    shown = browse(worse, "--dump-dom", "--enable-logging=stderr")

    assert "violates the following Content Security Policy directive" in shown.stderr
