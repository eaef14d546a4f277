"""One process through stops and kills: B1, B11 and what surrounds them."""

import json
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.contract import gateway
from tests.train import processes


def here(tmp_path: Path, **env: object) -> dict[str, object]:
    return {
        "SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
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


def test_the_release_starts_it(bench: processes.Bench, tmp_path: Path):
    go = tmp_path / "annotations"
    program = bench.start("counter.py", 2, **here(tmp_path, SPOTTRAIN_GO_FILE=go, SPOTTRAIN_ATTEMPT_ID="0a"))
    processes.wait_until_handled(program)
    time.sleep(0.3)
    assert program.steps() == []
    go.write_text('a="b"\nspottrain.dev/go="0a"\n')
    assert program.wait() == 0
    assert program.steps() == [0, 1]


def test_b11_interrupted_again_before_the_next_save(
    bench: processes.Bench, s3_server: gateway.Gateway, bucket: str
):
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint,
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
    }
    first = bench.start("counter.py", 10_000, STEP_SECONDS=0.005, **env)
    first.wait_for("\nstep 100\n")
    first.send(signal.SIGTERM)
    assert first.wait() == 75
    resumed = []
    for _ in range(5):
        again = bench.start("counter.py", 10_000, **env)
        resumed.append(int(again.wait_for(r"resume (\d+) count")[1]))
        again.wait_for(r"\nstep \d+\n")
        again.send(signal.SIGKILL)
        again.wait()
    saved = first.steps()[-1]
    assert resumed == [saved + 1] * 5
    keys = s3_server.client().list_objects_v2(Bucket=bucket)["Contents"]
    names = [item["Key"] for item in keys]
    assert sum("/lineage/" in name for name in names) == 6
    assert len({name.split("/")[2] for name in names if "/steps/" in name}) == 1


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
    newest = processes.commits(tmp_path / "ck")[-1]
    file = tmp_path / "ck" / newest.directory.key("count.json")
    file.write_text("7")
    again = bench.start("counter.py", 3, **env)
    assert again.wait() == 0
    assert f"skipping checkpoint {newest.directory.name}: count.json has another checksum" in again.output
    assert "resume 2 count 2" in again.output


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
