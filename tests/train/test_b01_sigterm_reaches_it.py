"""B1: SIGTERM reaches the training process, whatever PID 1 is and however early it comes."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from spottrain.render import shells
from tests.train import processes

GRACE = 25


def here(tmp_path: Path, **env: object) -> dict[str, object]:
    return {
        "SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
        "SPOTTRAIN_GRACE_SECONDS": GRACE,
        **env,
    }


def test_b1_a_stop_saves_the_current_step_and_nobody_takes_it_for_done(
    bench: processes.Bench, tmp_path: Path
):
    program = bench.start("counter.py", 1000, **here(tmp_path))
    program.wait_for("^step 5$|\nstep 5\n")
    program.send(signal.SIGTERM)
    assert program.wait(10) == 75
    assert "done" not in program.output
    last = program.steps()[-1]
    assert [commit.step for commit in processes.commits(tmp_path / "ck")] == [last]

    again = bench.start("counter.py", last + 3, **here(tmp_path))
    assert again.wait() == 0
    assert f"resume {last + 1} count {last + 1}" in again.output
    assert f"done count {last + 3}" in again.output


COMPOUND = f"cd / && {sys.executable} {processes.PROGRAMS / 'counter.py'} 1000; echo done with $?"


class Container:
    """A shell as PID 1 of a PID namespace, ended as the kubelet does it: the hook, then SIGTERM to PID 1."""

    def __init__(self, bench: processes.Bench, script: str, env: dict[str, object]) -> None:
        command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script]
        self.program = bench.run(command, **env)
        self._bench = bench

    def stop(self) -> None:
        (first,) = processes.children(self.program.pid)
        inside = ["nsenter", "--target", str(first), "--pid", "--mount"]
        assert self._bench.run([*inside, "sh", "-c", shells.HAND_DOWN]).wait(10) == 0
        with contextlib.suppress(ProcessLookupError):  # it may have ended with what the hook has ended
            os.kill(first, signal.SIGTERM)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
@pytest.mark.parametrize(
    "script",
    [COMPOUND, f"sh -c {COMPOUND!r}; echo outer", f"{COMPOUND.replace(';', ' &')}; wait"],
    ids=["compound", "shell in shell", "background"],
)
def test_b1_a_shell_as_pid_1_keeps_nothing_to_itself(bench: processes.Bench, tmp_path: Path, script: str):
    container = Container(bench, script, here(tmp_path, STEP_SECONDS=0.2))
    program = container.program
    program.wait_for("\nstep 5\n")
    told = time.monotonic()
    container.stop()
    assert program.wait(GRACE) in {0, 75}
    assert time.monotonic() - told < GRACE
    last = program.steps()[-1]
    assert [commit.step for commit in processes.commits(tmp_path / "ck")] == [last]
    assert f"stopping at step {last}: SIGTERM" in program.output


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
def test_b1_what_a_program_has_started_is_left_to_it(bench: processes.Bench, tmp_path: Path):
    """Data-loader workers, say: they go when the program says so."""
    script = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('told', os.getpid() == first), sys.exit()))\n"
        "first = os.getpid()\n"
        "os.fork()\n"
        "print('ready', flush=True)\n"
        "time.sleep(2)\n"
    )
    (tmp_path / "program.py").write_text(script)
    container = Container(bench, f"{sys.executable} {tmp_path / 'program.py'}; echo over; sleep 3", {})
    container.program.wait_for("ready\nready")
    container.stop()
    assert container.program.wait(10) == 0
    assert container.program.output.count("told") == 1
    assert "told True" in container.program.output


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
@pytest.mark.parametrize("after", [0.1, 0.3, 0.5])
def test_b1_an_early_stop_below_a_shell_ends_it_before_any_step(
    bench: processes.Bench, tmp_path: Path, after: float
):
    container = Container(bench, COMPOUND, here(tmp_path, STEP_SECONDS=1))
    time.sleep(after)
    container.stop()
    assert container.program.wait(GRACE) == 0
    assert "step 1\n" not in container.program.output


@pytest.mark.parametrize("after", [0.1, 0.3, 0.5])
def test_b1_an_early_stop_ends_it_before_any_step(bench: processes.Bench, tmp_path: Path, after: float):
    program = bench.start("counter.py", 1000, **here(tmp_path, STEP_SECONDS=1))
    time.sleep(after)
    program.send(signal.SIGTERM)
    assert program.wait(10) in {75, -signal.SIGTERM}
    assert len(program.steps()) <= 1 if "first step" in program.output else program.steps() == []


def test_b1_a_stop_while_waiting_for_the_release_claims_nothing(bench: processes.Bench, tmp_path: Path):
    (tmp_path / "annotations").write_text('spottrain.dev/go="ffff"\n')
    env = here(tmp_path, SPOTTRAIN_GO_FILE=tmp_path / "annotations", SPOTTRAIN_ATTEMPT_ID="0a")
    program = bench.start("counter.py", 1000, **env)
    processes.wait_until_handled(program)
    program.send(signal.SIGTERM)
    assert program.wait(10) == 75
    assert program.steps() == []
    assert not (tmp_path / "ck" / "lineage").exists()
