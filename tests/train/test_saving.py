"""Saves in the background: what they cost training, and what a stop does with one that is under way."""

import json
import re
import signal
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from spottrain.checkpoint import s3, view
from tests.contract import faults, gateway
from tests.train import processes


class Slow:
    """A rule for the proxy: what is put into steps/ hangs while it is `shut`, but for COMMIT."""

    def __init__(self) -> None:
        self.shut = threading.Event()
        self.released = threading.Event()
        self.reached = threading.Event()

    def __call__(self, request: faults.Request) -> faults.Fault | None:
        if not self.shut.is_set() or not request.is_put_of(r"/steps/.*/part-"):
            return None
        return faults.Hold(self.released, self.reached)

    def until_reached(self) -> None:
        assert self.reached.wait(20)

    def catch_one(self, program: processes.Program) -> None:
        """Have the program save once; that upload hangs, and what follows goes through."""
        self.shut.set()
        program.say("save")
        self.until_reached()
        self.shut.clear()


@pytest.fixture
def slow(proxy: faults.Proxy) -> Slow:
    proxy.rule = made = Slow()
    return made


def here(bucket: str, proxy: faults.Proxy, **env: object) -> dict[str, object]:
    return {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint,
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
        "SPOTTRAIN_STORE_READ_SECONDS": 60,
        "SPOTTRAIN_STORE_TRIES": 1,
        **env,
    }


def committed(bucket: str, server: gateway.Gateway) -> list[int]:
    return sorted(d.step for d in view.look(s3.S3Store(bucket, "tr", endpoint=server.endpoint)).committed)


def took(program: processes.Program) -> list[float]:
    return [
        float(seconds) for seconds in re.findall(r"^step \d+ took ([\d.]+)", program.output, re.MULTILINE)
    ]


def last_step(program: processes.Program) -> int:
    return program.steps()[-1]


def saved_once(program: processes.Program) -> int:
    """A save, so that its time is known; its step."""
    program.wait_for(r"\nstep 2 ")
    program.say("save")
    return int(program.wait_for(r"event=saved step=(\d+) ")[1])


def test_training_goes_on_while_an_upload_hangs(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, slow: Slow
):
    """Steps stay as long as they were; the upload, its commit and the removals are nothing to wait for."""
    slow.shut.set()
    program = bench.start("saver.py", 400_000, **here(bucket, proxy))
    program.wait_for(r"\nstep 2 ")
    program.say("save")
    slow.until_reached()
    count = len(program.steps())
    program.wait_for(rf"\nstep {count + 20} ")
    assert "event=saved" not in program.output
    assert max(took(program)[3:]) < 0.5
    slow.released.set()
    found = program.wait_for(r"event=saved step=\d+ seconds=([\d.]+) blocked=([\d.]+)")
    assert float(found[1]) > 1.0
    assert float(found[2]) < 0.3


def test_a_stop_gives_up_an_upload_that_is_stuck_and_saves_the_newest_state(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, slow: Slow, s3_server: gateway.Gateway
):
    program = bench.start("saver.py", 4000, **here(bucket, proxy, SPOTTRAIN_GRACE_SECONDS=20))
    first = saved_once(program)
    slow.catch_one(program)
    stuck = last_step(program)
    program.wait_for(rf"\nstep {stuck + 120} ")  # longer than twice a save and 5 s
    program.send(signal.SIGTERM)
    told = time.monotonic()
    assert program.wait(20) == 75
    assert time.monotonic() - told < 5
    assert "given up for a newer state" in program.output
    assert committed(bucket, s3_server) == [first, last_step(program)]
    slow.released.set()


def test_a_stop_finishes_an_upload_and_saves_the_newest_state_too_when_there_is_time_for_both(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, slow: Slow, s3_server: gateway.Gateway
):
    program = bench.start("saver.py", 4000, **here(bucket, proxy, SPOTTRAIN_GRACE_SECONDS=20))
    first = saved_once(program)
    slow.catch_one(program)
    program.send(signal.SIGTERM)
    program.wait_for("event=stopping")
    time.sleep(0.5)
    slow.released.set()
    assert program.wait(20) == 75
    last = last_step(program)
    found = committed(bucket, s3_server)
    assert (found[0], found[-1], len(found)) == (first, last, 3)


def test_a_stop_finishes_only_what_is_under_way_when_the_newest_has_no_time(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, slow: Slow, s3_server: gateway.Gateway
):
    """A save takes 5 s, the grace is 5: what has been on its way for 3 s can be there in time."""
    program = bench.start("saver.py", 4000, **here(bucket, proxy, SPOTTRAIN_GRACE_SECONDS=5))
    program.wait_for(r"\nstep 2 ")
    slow.shut.set()
    program.say("save")
    slow.until_reached()
    time.sleep(5)
    slow.released.set()
    first = int(program.wait_for(r"event=saved step=(\d+) ")[1])
    program.wait_for("event=grace-too-short")
    slow.released, slow.reached = threading.Event(), threading.Event()
    program.say("save")
    slow.until_reached()
    time.sleep(3)
    program.send(signal.SIGTERM)
    program.wait_for("event=stopping")
    time.sleep(1)
    slow.released.set()
    assert program.wait(20) == 75
    assert "event=not-saved" in program.output
    found = committed(bucket, s3_server)
    assert (found[0], len(found)) == (first, 2)
    assert first < found[1] < last_step(program)


def test_a_life_knows_from_the_one_before_that_its_grace_is_too_short(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, slow: Slow
):
    slow.shut.set()
    first = bench.start("saver.py", 4000, **here(bucket, proxy, SPOTTRAIN_CHECKPOINT_INTERVAL="auto"))
    first.wait_for(r"\nstep 2 ")
    first.say("save")
    slow.until_reached()
    time.sleep(2)
    slow.released.set()
    first.wait_for("event=saved")
    first.send(signal.SIGKILL)
    first.wait()
    again = bench.start(
        "saver.py",
        4000,
        **here(bucket, proxy, SPOTTRAIN_CHECKPOINT_INTERVAL="auto", SPOTTRAIN_GRACE_SECONDS=2),
    )
    said = again.wait_for(
        r"a save on SIGTERM takes about ([\d.]+) s of the 2 s of grace.*event=grace-too-short"
    )
    assert 2 <= float(said[1]) < 10
    assert said.start() < again.wait_for(r"\nresume \d").start()


def test_progress_tells_what_saves_take(bench: processes.Bench, tmp_path: Path):
    port = gateway.free_port()
    program = bench.start(
        "saver.py",
        4000,
        SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "ck").as_uri(),
        SPOTTRAIN_CHECKPOINT_INTERVAL=3600,
        SPOTTRAIN_PROGRESS_PORT=port,
        SPOTTRAIN_GRACE_SECONDS=20,
    )
    step = saved_once(program)
    program.wait_for(rf"\nstep {step + 20} ")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/progress", timeout=5) as answer:
        said = json.load(answer)
    assert said["checkpoint"]["step"] == step
    assert abs(said["checkpoint"]["time"] - time.time()) < 60
    assert 0 < said["checkpoint"]["blockedSeconds"] < said["checkpoint"]["seconds"] < 5
    assert (said["stop"]["graceSeconds"], said["stop"]["fits"]) == (20.0, True)
    assert 5 < said["perSecond"] < 20
    assert (said["resumedFrom"], said["total"]) == (None, None)
    assert said["began"] < said["checkpoint"]["time"]
