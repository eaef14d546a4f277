"""What is asked of kubectl as a process, by one that says what the test wants."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.cli.kubectl import Kubectl

Says = Callable[[str], Kubectl]


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """A kubectl that does what a shell script says."""

    def make(script: str) -> Kubectl:
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return Kubectl(("--context=prod",))

    return make


def test_lines_come_one_by_one_and_a_bad_end_is_an_error_that_says_why(says: Says):
    lines = says('echo "$*"; echo two; echo it broke >&2; exit 3').stream("logs", "p")

    assert [next(lines), next(lines)] == ["--context=prod logs p\n", "two\n"]
    with pytest.raises(errors.ClusterError, match="kubectl logs: it broke"):
        next(lines)


def test_only_a_newline_ends_a_line(says: Says):
    r"""Not the `\r` of a progress bar; one at the end stays, and a byte that is no UTF-8 does no harm."""
    written = says(r"printf 'T1  10%%\r100%%\nT2 done\r\nT3 \377\nT4 no end'")

    assert list(written.stream("logs", "p")) == ["T1  10%\r100%\n", "T2 done\r\n", "T3 \ufffd\n", "T4 no end"]


def test_complaints_without_end_do_not_stop_the_lines(says: Says):
    many = says("i=0; while [ $i -lt 20000 ]; do echo complaint >&2; i=$((i+1)); done; echo line")

    assert list(many.stream("logs", "p")) == ["line\n"]


def test_whoever_has_seen_enough_ends_it(says: Says):
    endless = says("echo first; exec sleep 1000").stream("logs", "p")

    assert next(endless) == "first\n"
    endless.close()  # type: ignore[attr-defined]


def test_an_object_that_there_is_not_is_none(says: Says):
    assert says("exit 0").find("stj", "x") is None
    assert says('echo \'{"kind": "Job"}\'').find("stj", "x") == {"kind": "Job"}
