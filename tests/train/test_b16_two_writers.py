"""B16: two writers on one URI, and the two races of the commit."""

import signal
import threading
import time
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint import claim, files, lineage, s3, view
from spottrain.checkpoint.store import Put, Store
from tests.contract import faults, gateway
from tests.train import processes
from tests.train.conftest import Shelf
from tests.unit.checkpoint import lives


def writer(
    bench: processes.Bench, attempt: int, env: dict[str, object], job_uid: str = ""
) -> processes.Program:
    told = {"SPOTTRAIN_JOB": "tr", "SPOTTRAIN_JOB_UID": job_uid or "u", "SPOTTRAIN_ATTEMPT": attempt}
    log = bench.folder / f"termination-{attempt}"
    log.touch()
    program = bench.start(
        "writer.py",
        SPOTTRAIN_ATTEMPT_ID=f"{job_uid}{attempt:04x}",
        SPOTTRAIN_TERMINATION_LOG=log,
        SPOTTRAIN_CHECKPOINT_KEEP=1,
        **told,
        **env,
    )
    program.wait_for("resume")
    return program


def save(program: processes.Program, step: int) -> None:
    program.say(f"save {step}")
    program.wait_for(f"saved step {step} ")


def committed(store: Store) -> list[tuple[int, str]]:
    return sorted((d.step, d.attempt_id) for d in view.look(store).committed)


def restored(store: Store) -> int | None:
    """What the newest attempt would take now."""
    newest = max(lineage.Records(store).refresh().items())[1]
    trail = lineage.trail(lineage.Records(store).refresh(), newest.seq, view.look(store).committed)
    return trail[0].step if trail else None


def test_b16_the_older_writer_commits_nothing_and_removes_nothing(bench: processes.Bench, shelf: Shelf):
    store, env = shelf.store, shelf.env
    old = writer(bench, 1, env)
    save(old, 100)
    new = writer(bench, 2, env)
    save(new, 110)
    assert restored(store) == 110
    old.say("save 120")
    old.no_more_input()
    assert old.wait() not in {0, 75}
    assert "attempt 2 (0002) has taken over with claim 2; 0001 is stale" in old.output
    assert '"state": "stale"' in (bench.folder / "termination-1").read_text()
    assert committed(store) == [(100, "0001"), (110, "0002")]
    save(new, 130)
    assert restored(store) == 130
    new.no_more_input()
    assert new.wait() == 0
    assert '"state": "finished"' in (bench.folder / "termination-2").read_text()


def test_b16_stopped_between_upload_and_commit_it_slips_in_and_nobody_follows(
    bench: processes.Bench, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    """The old writer has looked at the lineage; its COMMIT is on its way while another attempt claims."""
    store = s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)
    uri = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr"}
    old = writer(bench, 1, {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint})
    save(old, 100)
    held = faults.Hold(threading.Event())
    proxy.rule = lambda request: held if request.is_put_of(r"steps/0000000120-.*/COMMIT\.json") else None
    old.say("save 120")
    assert held.reached.wait(20)
    old.send(signal.SIGSTOP)
    new = writer(bench, 2, {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint})
    held.release.set()
    wait_until(lambda: (120, "0001") in committed(store))
    assert restored(store) == 100
    old.send(signal.SIGCONT)
    # It learns of the claim when it means to tidy up, and leaves everything as it is.
    wait_until(lambda: "event=saved step=120" in old.output)
    old.no_more_input()
    assert old.wait() not in {0, 75}
    assert "0001 is stale" in old.output
    assert committed(store) == [(100, "0001"), (120, "0001")]
    save(new, 110)
    assert restored(store) == 110
    new.no_more_input()
    assert new.wait() == 0
    assert resumed_by_a_third(bench, uri, s3_server) == 111


def resumed_by_a_third(bench: processes.Bench, uri: dict[str, str], server: gateway.Gateway) -> int:
    third = writer(bench, 3, {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": server.endpoint})
    return int(third.wait_for(r"resume (\d+)")[1])


def test_b16_stopped_before_it_looks_at_the_lineage_it_finds_the_claim(
    bench: processes.Bench, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    store = s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)
    uri = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr"}
    old = writer(bench, 1, {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint})
    save(old, 100)
    held = faults.Hold(threading.Event())
    proxy.rule = lambda request: held if request.is_list else None
    old.say("save 120")
    assert held.reached.wait(20)
    old.send(signal.SIGSTOP)
    new = writer(bench, 2, {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint})
    held.release.set()
    old.send(signal.SIGCONT)
    old.no_more_input()
    assert old.wait() not in {0, 75}
    assert "0001 is stale" in old.output
    assert committed(store) == [(100, "0001")]
    save(new, 110)
    assert restored(store) == 110


class _Slow(files.FilesStore):
    """A directory whose writer is paused just before each COMMIT."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reached, self.go_on = threading.Event(), threading.Event()

    def put_if_absent(self, key: str, data: bytes) -> Put:
        if key.endswith("COMMIT.json"):
            self.reached.set()
            assert self.go_on.wait(20)
        return super().put_if_absent(key, data)


def test_b16_on_a_directory_too_a_commit_that_slips_in_is_not_followed(tmp_path: Path):
    slow, store = _Slow(tmp_path / "ck"), files.FilesStore(tmp_path / "ck")
    old = lives.start(store, "a").record
    lives.save(store, old, 100)
    commit = lives.upload(store, old, 120)
    paused = threading.Thread(target=claim.publish, args=(slow, lineage.Records(slow), old, commit))
    paused.start()
    assert slow.reached.wait(20)
    new = lives.start(store, "b")
    slow.go_on.set()
    paused.join(20)
    assert committed(store) == [(100, "a"), (120, "a")]
    best = lives.best(store, new)
    assert best is not None
    assert best.step == 100
    with pytest.raises(errors.StaleAttempt):
        lives.save(store, old, 140)


def test_a_commit_whose_answer_is_lost_is_a_commit(
    bench: processes.Bench, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    """The retry meets a 412 that is our own success: read back, compared, and reported as saved, once."""
    lost = iter([faults.LoseAnswer()])
    proxy.rule = lambda request: next(lost, None) if request.is_put_of(r"COMMIT\.json$") else None
    uri = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr", "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint}
    program = writer(bench, 1, dict(uri))
    save(program, 7)
    program.no_more_input()
    assert program.wait() == 0
    assert next(lost, None) is None
    assert program.output.count("event=saved") == 1
    assert committed(s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)) == [(7, "0001")]


def test_b16_two_clusters_on_one_uri_take_turns_and_never_mix(bench: processes.Bench, shelf: Shelf):
    """Each has an operator of its own and both call their first attempt 1: whoever claims last goes on."""
    store, env = shelf.store, shelf.env
    east = writer(bench, 1, env, "east")
    save(east, 100)
    west = writer(bench, 1, env, "west")
    assert west.wait_for(r"resume (\d+)")[1] == "101"
    save(west, 110)
    east.say("save 120")
    east.no_more_input()
    assert east.wait() not in {0, 75}
    assert "west0001) has taken over with claim 2; east0001 is stale" in east.output

    again = writer(bench, 2, env, "east")
    assert again.wait_for(r"resume (\d+)")[1] == "111"
    save(again, 130)
    west.say("save 140")
    west.no_more_input()
    assert west.wait() not in {0, 75}
    again.no_more_input()
    assert again.wait() == 0
    assert committed(store) == [(100, "east0001"), (110, "west0001"), (130, "east0002")]
    assert restored(store) == 130


def test_a_job_deleted_and_applied_again_goes_on_though_it_begins_at_attempt_one(
    bench: processes.Bench, shelf: Shelf
):
    first = writer(bench, 7, shelf.env, "old")
    save(first, 100)
    first.send(signal.SIGKILL)
    again = writer(bench, 1, shelf.env, "new")
    assert again.wait_for(r"resume (\d+)")[1] == "101"
    save(again, 110)
    again.no_more_input()
    assert again.wait() == 0
    assert restored(shelf.store) == 110


def test_a_claim_whose_answer_is_lost_is_a_claim(
    bench: processes.Bench, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    """The retry meets a 412 that is our own success: it is not taken for another's, and not made twice."""
    lost = iter([faults.LoseAnswer()])
    proxy.rule = lambda request: next(lost, None) if request.is_put_of(r"/lineage/") else None
    uri = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr", "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint}
    program = writer(bench, 1, dict(uri))
    assert next(lost, None) is None
    save(program, 7)
    program.no_more_input()
    assert program.wait() == 0
    assert lineage.Records(s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)).numbers() == [1]


def wait_until(probe) -> None:  # noqa: ANN001
    deadline = time.monotonic() + 20
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.02)
