"""One process through stops and kills."""

import json
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path

from prometheus_client import parser

from tests.contract import gateway
from tests.train import processes


def here(tmp_path: Path, **env: object) -> dict[str, object]:
    return {
        "SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
        **env,
    }


def test_indexes_that_run_the_same_program_each_go_on_from_their_own_checkpoints(
    bench: processes.Bench, tmp_path: Path
):
    """The object names no place; the program names one for all, and the library puts each below it."""
    env = {
        "SPOTTRAIN_JOB": "tr",
        "SPOTTRAIN_MODE": "Independent",
        "SPOTTRAIN_WORKERS": 2,
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
        "SPOTTRAIN_TERMINATION_LOG": tmp_path / "said",
        "MY_URI": (tmp_path / "ck").as_uri(),
    }
    last = []
    for index in (0, 1):
        program = bench.start(
            "counter.py", 1000, **env, SPOTTRAIN_INDEX=index, SPOTTRAIN_ATTEMPT_ID=f"a{index}"
        )
        program.wait_for(f"\nstep {3 + 4 * index}\n")
        program.send(signal.SIGTERM)
        assert program.wait(10) == 75
        last.append(program.steps()[-1])
        assert [commit.step for commit in processes.commits(tmp_path / "ck" / str(index))] == [last[index]]
    for index in (0, 1):
        again = bench.start(
            "counter.py", last[index] + 2, **env, SPOTTRAIN_INDEX=index, SPOTTRAIN_ATTEMPT_ID=f"b{index}"
        )
        assert again.wait() == 0
        assert f"resume {last[index] + 1} count {last[index] + 1}" in again.output


def test_the_release_starts_it(bench: processes.Bench, tmp_path: Path):
    go = tmp_path / "annotations"
    program = bench.start("counter.py", 2, **here(tmp_path, SPOTTRAIN_GO_FILE=go, SPOTTRAIN_ATTEMPT_ID="0a"))
    processes.wait_until_handled(program)
    time.sleep(0.3)
    assert program.steps() == []
    go.write_text('a="b"\nspottrain.dev/go="0a"\n')
    assert program.wait() == 0
    assert program.steps() == [0, 1]


def test_a_restart_within_an_attempt_goes_on_from_its_own_commits(bench: processes.Bench, tmp_path: Path):
    env = here(tmp_path, SPOTTRAIN_ATTEMPT_ID="0a", SPOTTRAIN_CHECKPOINT_INTERVAL=0)
    first = bench.start("counter.py", 1000, **env)
    first.wait_for("event=saved step=3 ")
    first.send(signal.SIGKILL)
    first.wait()
    newest = processes.commits(tmp_path / "ck")[-1].step
    again = bench.start("counter.py", newest + 2, **env)
    assert again.wait() == 0
    assert f"resume {newest + 1} " in again.output
    assert processes.claims(tmp_path / "ck") == [1]


def test_the_last_word_says_what_happened(bench: processes.Bench, tmp_path: Path):
    log = tmp_path / "termination-log"
    log.touch()
    env = here(tmp_path, SPOTTRAIN_JOB="tr", SPOTTRAIN_TERMINATION_LOG=log, SPOTTRAIN_ATTEMPT_ID="0a")
    program = bench.start("counter.py", 1000, **env)
    program.wait_for("\nstep 3\n")
    program.send(signal.SIGTERM)
    assert program.wait() == 75
    last = program.steps()[-1]
    said = json.loads(log.read_text())
    assert said.pop("saveSeconds") > said.pop("blockedSeconds") >= 0
    assert abs(said.pop("savedTime") - time.time()) < 60
    assert said == {
        "fitsGrace": True,
        "spottrain": 1,
        "state": "preempted",
        "step": last,
        "resumedFrom": None,
        "savedStep": last,
    }

    program = bench.start("counter.py", last + 2, **{**env, "SPOTTRAIN_ATTEMPT_ID": "0b"})
    assert program.wait() == 0
    said = json.loads(log.read_text())
    assert (said["state"], said["step"], said["resumedFrom"]) == ("finished", last + 1, last)


def test_a_handler_of_the_programs_own_cannot_turn_a_stop_into_success(
    bench: processes.Bench, tmp_path: Path
):
    """`signal.signal(SIGTERM, lambda *_: sys.exit(0))` is what many scripts have."""
    program = (
        "import signal, sys, time, spottrain\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "with spottrain.session() as run:\n"
        "    run.restore(lambda _: None)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(30)\n"
    )
    running = bench.run([sys.executable, "-c", program], **here(tmp_path))
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    assert running.wait(10) == 75


def test_a_program_that_leaves_its_loop_at_the_signal_is_not_done(bench: processes.Bench, tmp_path: Path):
    """It has a handler of its own and never asks the library."""
    program = (
        "import signal, time, spottrain\n"
        "told = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: told.append(1))\n"
        "with spottrain.session() as run:\n"
        "    run.restore(lambda _: None)\n"
        "    print('ready', flush=True)\n"
        "    while not told:\n"
        "        time.sleep(0.01)\n"
        "print('done')\n"
    )
    running = bench.run([sys.executable, "-c", program], **here(tmp_path))
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    assert running.wait(10) == 75
    assert "done" not in running.output


def test_an_exception_of_the_programs_own_stays_what_it_is(bench: processes.Bench, tmp_path: Path):
    program = "import spottrain\nwith spottrain.session() as run:\n    raise ValueError('mine')\n"
    running = bench.run([sys.executable, "-c", program], **here(tmp_path))
    assert running.wait(10) == 1
    assert "ValueError: mine" in running.output


def test_a_stop_in_a_step_longer_than_the_grace_ends_in_time(bench: processes.Bench, tmp_path: Path):
    program = bench.start("counter.py", 5, **here(tmp_path, STEP_SECONDS=60, SPOTTRAIN_GRACE_SECONDS=3))
    program.wait_for("resume")
    program.send(signal.SIGTERM)
    told = time.monotonic()
    assert program.wait(10) == 75
    assert time.monotonic() - told < 3
    assert "the grace is over" in program.output


def test_damaged_bytes_are_skipped_with_a_word_and_the_next_best_is_taken(
    bench: processes.Bench, tmp_path: Path
):
    """Same size, other bytes: only the checksum tells."""
    env = here(tmp_path, SPOTTRAIN_CHECKPOINT_INTERVAL=0)
    assert bench.start("counter.py", 3, **env).wait() == 0
    before, newest = processes.commits(tmp_path / "ck")[-2:]
    file = tmp_path / "ck" / newest.directory.key("count.json")
    file.write_text("7")
    again = bench.start("counter.py", 3, **env)
    assert again.wait() == 0
    assert f"skipping checkpoint {newest.directory.name}: count.json has another checksum" in again.output
    assert f"resume {before.step + 1} count {before.step + 1}" in again.output


def test_a_gang_without_torch_distributed_is_told_what_to_call(bench: processes.Bench, tmp_path: Path):
    program = bench.start("counter.py", 3, **here(tmp_path, SPOTTRAIN_JOB="tr", SPOTTRAIN_WORKERS=3))
    assert program.wait() == 1
    assert "call torch.distributed.init_process_group() before spottrain.session()" in program.output


def test_a_session_tells_its_step_where_it_is_asked_to_and_no_longer(bench: processes.Bench, tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = here(tmp_path, SPOTTRAIN_ATTEMPT_ID="0a", SPOTTRAIN_PROGRESS_PORT=port)
    program = bench.start("counter.py", 1000, **env)
    program.wait_for("\nstep 3\n")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/progress", timeout=5) as answer:
        said = json.load(answer)
    assert (said["attemptID"], said["step"] >= 2) == ("0a", True)
    program.send(signal.SIGTERM)
    assert program.wait() == 75


def test_prometheus_reads_how_a_run_fares(bench: processes.Bench, tmp_path: Path):
    """The newest checkpoint has another size, and the one before other bytes."""
    env = here(tmp_path, SPOTTRAIN_CHECKPOINT_INTERVAL=0, SPOTTRAIN_CHECKPOINT_KEEP=9)
    assert bench.start("counter.py", 5, STEP_SECONDS=0.3, **env).wait() == 0
    before, *damaged = processes.commits(tmp_path / "ck")[-3:]
    for commit, text in zip(damaged, ("0", "77"), strict=True):
        (tmp_path / "ck" / commit.directory.key("count.json")).write_text(text)
    port = gateway.free_port()
    program = bench.start("counter.py", 1000, **{**env, "SPOTTRAIN_PROGRESS_PORT": port})
    saved = int(program.wait_for(r"event=saved step=(\d+)")[1])
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        families = list(parser.text_string_to_metric_families(answer.read().decode()))
    told = {sample.name: sample.value for one in families for sample in one.samples}
    assert told["spottrain_run_resumed_from_step"] == before.step
    assert told["spottrain_run_checkpoints_skipped_total"] == 2
    assert told["spottrain_run_step"] >= saved
    assert told["spottrain_run_step"] - told["spottrain_run_steps_total"] - before.step in {0, 1}
    assert 0 < told["spottrain_run_restore_seconds"] < 10
    assert told["spottrain_run_checkpoint_step"] >= before.step
    assert 0 <= time.time() - told["spottrain_run_checkpoint_timestamp_seconds"] < 60
    assert told["spottrain_run_grace_seconds"] == 30
