"""The digits example: interrupted or not, the same loss to the last bit."""

import os
import signal
import sys
from pathlib import Path

from tests.contract import gateway
from tests.train import processes

TRAIN = processes.ROOT / "examples" / "digits" / "train.py"
STEPS = 40


def torchrun(bench: processes.Bench, store: Path, **env: object) -> processes.Program:
    command = [sys.executable, "-m", "torch.distributed.run", str(TRAIN)]
    told = {
        "PET_NNODES": 1,
        "PET_NODE_RANK": 0,
        "PET_NPROC_PER_NODE": 2,
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": gateway.free_port(),
        "PET_RDZV_ID": "x",
        "SPOTTRAIN_CHECKPOINT_URI": store.as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 1,
        "DIGITS_STEPS": STEPS,
        "DIGITS_STEP_SECONDS": 0.1,
    }
    return bench.run(command, **{**told, **env})


def final_loss(program: processes.Program) -> str:
    return program.wait_for(r"final_loss=(\S+)", seconds=1)[1]


def test_a_run_that_is_stopped_and_killed_ends_like_one_that_was_not(
    torch_bench: processes.Bench, tmp_path: Path
):
    unbroken = torchrun(torch_bench, tmp_path / "unbroken", DIGITS_STEP_SECONDS=0)
    assert unbroken.wait(120) == 0

    store = tmp_path / "ck"
    stopped = torchrun(torch_bench, store)
    stopped.wait_for(r"step=8 .*\n")
    stopped.send(signal.SIGTERM)
    stopped.wait(30)
    at = int(stopped.wait_for(r"stopping at step (\d+)", seconds=1)[1])
    assert processes.commits(store)[-1].step == at
    assert f"step={at + 1} " not in stopped.output

    killed = torchrun(torch_bench, store)
    killed.wait_for(rf"event=restored step={at} ")
    killed.wait_for(rf"event=saved step=(?!{at} )\d+ ")
    os.kill(processes.children(killed.pid)[1], signal.SIGKILL)
    assert killed.wait(120) != 0
    assert "final_loss" not in killed.output
    newest = processes.commits(store)[-1].step

    last = torchrun(torch_bench, store, DIGITS_STEP_SECONDS=0)
    assert last.wait(120) == 0
    assert f"event=restored step={newest} " in last.output
    assert final_loss(last) == final_loss(unbroken)


def test_at_most_six_lines_are_ours():
    marked = [line for line in TRAIN.read_text().splitlines() if "# spottrain" in line]
    ours = [
        line for line in TRAIN.read_text().splitlines() if "spottrain" in line and '"spottrain"' not in line
    ]
    assert 0 < len(marked) <= 6
    assert [line for line in ours if "# spottrain" not in line and "lines marked" not in line] == []
