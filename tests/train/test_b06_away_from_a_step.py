"""B6: SIGTERM in warm-up, in an evaluation or in a long step, where nobody asks for it.

All times are a fifth of those that people met: warm-up and evaluation of 4 s, a step of 12 s, 5 s of grace, a
save every 6 s, SIGTERM a second into each.
"""

import json
import re
import signal
import time
from pathlib import Path

import pytest

from tests.train import processes

GRACE, INTERVAL = 5, 6


def stopped_in(bench: processes.Bench, tmp_path: Path, phase: str) -> processes.Program:
    (tmp_path / "said").touch()
    program = bench.start(
        "phases.py",
        *(4, 4, 12),
        SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "ck").as_uri(),
        SPOTTRAIN_CHECKPOINT_INTERVAL=INTERVAL,
        SPOTTRAIN_GRACE_SECONDS=GRACE,
        SPOTTRAIN_JOB="tr",
        SPOTTRAIN_TERMINATION_LOG=tmp_path / "said",
    )
    program.wait_for(f"begins {phase}")
    time.sleep(1)
    program.send(signal.SIGTERM)
    told = time.monotonic()
    assert program.wait(GRACE + 1) == 75
    assert time.monotonic() - told < GRACE
    return program


def last_word(tmp_path: Path) -> tuple[int, int]:
    """The last step done, and the last one saved, as the operator reads it."""
    said = json.loads((tmp_path / "said").read_text())
    return said["step"], said["savedStep"]


@pytest.mark.parametrize("phase", ["warm-up", "evaluation"])
def test_b6_a_stop_in_a_phase_that_ends_within_the_grace_is_saved_at_its_end(
    bench: processes.Bench, tmp_path: Path, phase: str
):
    program = stopped_in(bench, tmp_path, phase)
    last = program.steps()[-1]
    assert processes.commits(tmp_path / "ck")[-1].step == last
    assert f"stopping at step {last}: SIGTERM" in program.output
    assert last_word(tmp_path) == (last, last)


def test_b6_a_stop_in_a_step_that_outlasts_the_grace_costs_less_than_an_interval(
    bench: processes.Bench, tmp_path: Path
):
    """The process is gone when the grace is over, and says what is lost."""
    program = stopped_in(bench, tmp_path, "long step")
    saved = processes.commits(tmp_path / "ck")[-1].step
    done = {
        int(step): float(at) for step, at in re.findall(r"^step (\d+) at (\S+)", program.output, re.MULTILINE)
    }
    assert saved < max(done) == 49
    assert done[49] - done[saved] + 1 <= INTERVAL
    assert "ending now, without the other ranks: the grace is over" in program.output
    assert f"what came after step {saved} is lost event=lost-work step=49 saved={saved} " in program.output
    assert last_word(tmp_path) == (49, saved)
