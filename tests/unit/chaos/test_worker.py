"""The worker's program as a process, killed, stopped and started again: its ledger stands up to judgement."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chaos import checks, judge, ledger
from chaos.facts import JobFacts, Told
from lab import clock
from spottrain.checkpoint import files, lineage

ROOT = Path(__file__).parents[3]
STEPS = 60


def start(folder: Path, attempt: int) -> "subprocess.Popen[bytes]":
    env = {
        "CHAOS_STEPS": str(STEPS),
        "CHAOS_STEP_SECONDS": "0.02",
        "CHAOS_LEDGER": str(folder / "ledger"),
        "CHAOS_NODE": "here",
        "CHAOS_TOGETHER": "yes",
        "SPOTTRAIN_JOB": "solo-1",
        "SPOTTRAIN_JOB_UID": "u",
        "SPOTTRAIN_INDEX": "0",
        "SPOTTRAIN_WORKERS": "1",
        "SPOTTRAIN_ATTEMPT": str(attempt),
        "SPOTTRAIN_ATTEMPT_ID": f"{attempt:04x}",
        "SPOTTRAIN_CHECKPOINT_URI": f"file://{folder}/store",
        "SPOTTRAIN_CHECKPOINT_INTERVAL": "0.2",
        "PYTHONPATH": str(ROOT / "operator"),
        "PATH": os.environ["PATH"],
    }
    return subprocess.Popen([sys.executable, ROOT / "chaos" / "programs" / "worker.py"], env=env)


def facts(folder: Path) -> JobFacts:
    place = files.FilesStore(folder / "store")
    return JobFacts(
        name="solo-1",
        mode="Gang",
        workers=1,
        steps=STEPS,
        lines=ledger.read(folder / "ledger"),
        claims={"": dict(lineage.Records(place).refresh())},
        told=(Told(1, "Running", 1, "0001"), Told(2e9, "Complete", 3, "0003", reclaims=2)),
    )


def wait(what: str, probe: Callable[[], bool]) -> None:
    clock.wait_for(what, probe, seconds=30, every=0.02)


def test_a_worker_that_is_killed_and_one_that_is_stopped_leave_a_ledger_that_holds(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()

    def committed(attempt: int) -> bool:
        lines = ledger.of(ledger.read(tmp_path / "ledger"), ledger.COMMITTED)
        return any(line.attempt == attempt for line in lines)

    for attempt, number, code in ((1, signal.SIGKILL, -9), (2, signal.SIGTERM, 75)):
        process = start(tmp_path, attempt)
        wait(f"a save of attempt {attempt}", lambda attempt=attempt: committed(attempt))  # type: ignore[misc]
        process.send_signal(number)
        assert process.wait(30) == code
    assert start(tmp_path, 3).wait(30) == 0
    found = judge.judge(facts(tmp_path))
    assert found.wrong == ()
    last = ledger.of(found.job.lines, ledger.FINISHED)
    assert [(line.attempt, line.digest) for line in last] == [(3, checks.digest(STEPS - 1))]
    assert {life.attempt_id for life in last[0].lives} == {"0001", "0002", "0003"}
