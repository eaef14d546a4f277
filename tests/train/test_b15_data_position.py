"""B15: after a resume each sample comes once, and the schedule goes on where it was."""

import json
import random
import re
import signal
import time
from pathlib import Path

from tests.train import processes

STEPS, PER_EPOCH, KILLS = 200, 100, 5


def ledger(program: processes.Program) -> dict[int, str]:
    """What each step took: rate, loss and samples."""
    return {
        int(step): rest
        for step, rest in re.findall(r"^took (\d+) (.*\])$", program.output, flags=re.MULTILINE)
    }


def samples(line: str) -> list[int]:
    return list(json.loads(line.partition(" ids ")[2]))


def test_b15_over_five_kills_each_sample_comes_once_per_epoch_and_the_schedule_is_unbroken(
    torch_bench: processes.Bench, tmp_path: Path
):
    chosen = random.Random(15)
    unbroken = torch_bench.start("samples.py", SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "unbroken").as_uri())
    assert unbroken.wait(120) == 0

    env: dict[str, object] = {
        "SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 0.3,
    }
    kept: dict[int, str] = {}
    lost = 0
    for kill in range(KILLS):
        life = torch_bench.start("samples.py", STEP_SECONDS=0.05, **env)
        life.wait_for("event=first-step")
        if kill == 2:  # within a second of a resume
            time.sleep(chosen.uniform(0, 1))
        else:
            begun = max(ledger(life))
            life.wait_for(rf"took {begun + chosen.randint(15, 35)} ")
        life.send(signal.SIGKILL)
        life.wait()
        newest = max((commit.step for commit in processes.commits(tmp_path / "ck")), default=-1)
        done = ledger(life)
        lost += sum(step > newest for step in done)
        kept |= {step: line for step, line in done.items() if step <= newest}
    last = torch_bench.start("samples.py", **env)
    assert last.wait(120) == 0
    kept |= ledger(last)

    assert lost > 0
    assert sorted(kept) == list(range(STEPS))
    for epoch in range(2):
        taken = [
            one for step in range(epoch * PER_EPOCH, (epoch + 1) * PER_EPOCH) for one in samples(kept[step])
        ]
        assert sorted(taken) == list(range(1000))
    assert kept == ledger(unbroken)
