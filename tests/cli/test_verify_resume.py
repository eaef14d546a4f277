"""`spottrain verify-resume`: it finds what a program forgets to save."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shelf import ROOT, Said

WALK = Path(__file__).parent / "programs" / "walk.py"


def verify(folder: Path, forgets: str, *options: object, steps: object = 150) -> Said:
    words = ["--interval", "0.3", "--folder", folder, *options, "--", sys.executable, WALK, steps, forgets]
    line = [sys.executable, "-c", "from spottrain.cli.main import main; main()", "verify-resume"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    command = [*line, *(str(word) for word in words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def test_a_program_that_saves_everything_ends_alike(tmp_path: Path) -> None:
    said = verify(tmp_path, "nothing")
    lines = said.out.splitlines()
    assert (said.code, lines[-1]) == (0, "alike: a broken run ends where an unbroken one does"), said.out
    assert lines[0] == "unbroken: finished, last checkpoint after step 149"
    assert lines[1].startswith("life 1: ended by SIGKILL, last checkpoint after step ")
    assert lines[2].startswith("life 2: ended by SIGTERM, last checkpoint after step ")
    assert "steps: 150 compared" in lines
    assert "resume" not in said.err


@pytest.mark.parametrize("forgets", ["generator", "position"])
def test_what_is_forgotten_shows_in_a_step_and_in_the_state(tmp_path: Path, forgets: str) -> None:
    said = verify(tmp_path, forgets)
    assert said.code == 1
    lines = said.out.splitlines()
    assert lines[-1] == "the broken run ended elsewhere"
    assert [line for line in lines if line.startswith("step ") and ": unbroken step " in line]
    assert "state after step 149: state.json differs" in lines


def test_numbers_may_differ_by_what_is_tolerated_and_by_no_more(tmp_path: Path) -> None:
    assert verify(tmp_path / "much", "generator", "--tolerance", 0.9).code == 0
    said = verify(tmp_path / "little", "generator", "--tolerance", 1e-9)
    assert said.code == 1
    assert "state after" not in said.out


@pytest.mark.parametrize(
    ("forgets", "steps", "why"),
    [
        ("saving", 20, "the unbroken run has saved nothing: is its last step saved?"),
        (
            "nothing",
            8,
            "life 1 was done before it could be ended: give the program more steps, or fewer --kills",
        ),
    ],
)
def test_a_program_that_cannot_be_judged_is_told_why(
    tmp_path: Path, forgets: str, steps: int, why: str
) -> None:
    said = verify(tmp_path, forgets, "--interval", 30, steps=steps)
    assert (said.code, said.err) == (1, f"spottrain: {why}\n")


def test_a_program_that_fails_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    said = verify(tmp_path, "nothing", steps="many")
    assert said.code == 1
    assert "life 1 exited with 1" in said.err
    assert "invalid literal for int" in said.err
