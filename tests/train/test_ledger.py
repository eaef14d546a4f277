"""Which samples a run has read, over five kills at random moments: each one once in each epoch."""

import random
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.train import broken, processes

SAMPLES, EPOCHS, PER_EPOCH = 60, 3, 15
STEPS = EPOCHS * PER_EPOCH
KILLS = 5


def ledger(lines: dict[tuple[int, int], str]) -> list[Counter[int]]:
    """How often each sample was read, by epoch, by the lives whose steps counted in the end."""
    found: list[Counter[int]] = [Counter() for _ in range(EPOCHS)]
    for (_, step), text in lines.items():
        listed = re.search(r"samples=\[(.*)\]", text)
        assert listed
        found[step // PER_EPOCH].update(int(word) for word in listed[1].split(","))
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 2], ids=["in-process", "two-loader-workers"])
def test_each_sample_is_read_once_per_epoch_whatever_kills_the_run(
    frameworks_bench: processes.Bench, tmp_path: Path, workers: int
):
    """And in the same order, with the same losses, as in a run that nothing kills."""

    def start(store: str, pause: float) -> processes.Program:
        return frameworks_bench.start(
            "ledger.py",
            workers,
            SPOTTRAIN_CHECKPOINT_URI=(tmp_path / store).as_uri(),
            SPOTTRAIN_CHECKPOINT_INTERVAL=0.3,
            STEP_SECONDS=pause,
        )

    unbroken = broken.Told()
    program = start("unbroken", 0)
    assert program.wait(120) == 0, program.output
    unbroken.hear(program)

    draw = random.Random(workers)
    moments = sorted(draw.sample(range(4, STEPS - 4), KILLS))
    blows = {step: draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]) for step in moments}
    told = broken.through(lambda: start("ck", 0.1), blows, draw, broken.itself)
    assert len(told.lives) == KILLS + 1
    assert ledger(told.lines) == [Counter(range(SAMPLES))] * EPOCHS
    assert told.lines == unbroken.lines
