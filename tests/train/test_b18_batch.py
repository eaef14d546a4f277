"""B18: batch work, each item once."""

import json
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spottrain.batch import layout
from spottrain.checkpoint import files, s3, view
from spottrain.checkpoint.store import Below
from tests.contract import faults, fixtures, gateway, services
from tests.train import batches, processes
from tests.train.batches import rows, wanted

OFTEN = {"EVERY": 7, "SECONDS": 0.2}


@pytest.fixture(params=["files", "s3"])
def place(request: pytest.FixtureRequest, bench: processes.Bench, tmp_path: Path) -> batches.Place:
    if request.param == "files":
        return on_files(bench, tmp_path)
    return on_service(bench, tmp_path, fixtures.service_of(request, request.param))


def on_files(bench: processes.Bench, tmp_path: Path) -> batches.Place:
    folder = tmp_path / "out"
    return batches.Place(
        bench, files.FilesStore(folder), {"SPOTTRAIN_CHECKPOINT_URI": folder.as_uri()}, tmp_path
    )


def on_service(bench: processes.Bench, tmp_path: Path, service: services.Service) -> batches.Place:
    bucket = service.make_place()
    env = {**service.env(), "SPOTTRAIN_CHECKPOINT_URI": f"{service.scheme}://{bucket}/team/out"}
    return batches.Place(bench, service.open(bucket, "team/out"), env, tmp_path)


def kill_when(program: processes.Program, pattern: str) -> None:
    program.wait_for(pattern)
    program.send(signal.SIGKILL)
    program.wait()


def test_b18_killed_half_way_and_its_newest_part_cut_each_item_has_one_result(
    bench: processes.Bench, tmp_path: Path
):
    place, inputs = on_files(bench, tmp_path), rows()
    place.put_inputs(inputs)
    kill_when(place.start(ITEM_SECONDS=0.01, **OFTEN), "done with row-50\n")
    newest = place.parts()[-1]
    file = (
        tmp_path
        / "out"
        / layout.shard_prefix(batches.MODEL.hash, 0)
        / newest.commit.directory.key(layout.OUTPUTS)
    )
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - len(whole.splitlines()[-1]) // 2])

    again = place.start()
    assert again.wait() == 0
    assert f"skipping part {newest.commit.directory.name}" in again.output
    assert place.results() == wanted(inputs)
    assert sorted(place.ids()) == sorted(row["id"] for row in inputs)


def test_b18_a_row_at_the_top_is_all_that_is_new_and_nothing_is_called_twice(place: batches.Place):
    inputs = rows()
    place.put_inputs(inputs)
    assert place.start(**OFTEN).wait() == 0
    assert place.results() == wanted(inputs)
    before = place.parts()

    place.forget()
    same = place.start()
    assert same.wait() == 0
    assert place.ledger == []
    assert "doing" not in same.output  # not c either

    more = [{"id": "z", "text": "new"}, *inputs]
    place.put_inputs(more)
    assert place.start().wait() == 0
    assert place.ledger == ["z"]
    assert place.results() == wanted(more)
    assert place.parts()[:-1] == before


def test_b18_another_model_computes_all_and_is_kept_apart(place: batches.Place):
    inputs = rows(20)
    place.put_inputs(inputs)
    assert place.start().wait() == 0
    place.forget()
    assert place.start(MODEL="shout@2").wait() == 0
    assert sorted(place.ledger) == sorted(row["id"] for row in inputs if row["text"] != "reject")
    other = layout.Identity("shout@2", {"mark": "!"})
    assert place.results(other) == wanted(inputs)
    assert place.results() == wanted(inputs)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_b18_killed_again_and_again_at_any_moment_each_item_has_one_result(place: batches.Place, seed: int):
    inputs, chance = rows(), random.Random(seed)
    place.put_inputs(inputs)
    for _ in range(6):
        program = place.start(ITEM_SECONDS=0.005, EVERY=3, SECONDS=0.1)
        program.wait_for("spottrain|begun")
        time.sleep(chance.uniform(0, 0.3))  # the moment is what is tried
        program.send(signal.SIGKILL)
        program.wait()
    assert place.start(**OFTEN).wait() == 0
    assert place.results() == wanted(inputs)
    assert sorted(place.ids()) == sorted(row["id"] for row in inputs)


def test_killed_and_resumed_on_every_store(bench: processes.Bench, tmp_path: Path, service: services.Service):
    place, inputs = on_service(bench, tmp_path, service), rows(40)
    place.put_inputs(inputs)
    kill_when(place.start(ITEM_SECONDS=0.02, **OFTEN), "done with row-20\n")
    assert place.start().wait() == 0
    assert place.results() == wanted(inputs)


def test_a_stop_finishes_the_item_under_way_and_nothing_is_done_twice(place: batches.Place):
    inputs = rows()
    place.put_inputs(inputs)
    log = place.folder / "termination"
    log.touch()
    told = {"SPOTTRAIN_JOB": "b", "SPOTTRAIN_JOB_UID": "u", "SPOTTRAIN_TERMINATION_LOG": log}
    program = place.start(ITEM_SECONDS=0.2, **told)
    program.wait_for("doing row-5\n")
    program.send(signal.SIGTERM)
    assert program.wait(10) == 75
    assert "all done" not in program.output
    assert len(place.ids()) == program.output.count("doing")
    done = len(place.ids())
    said = json.loads(log.read_text())
    assert (said["state"], said["step"], said["savedStep"], said["resumedFrom"]) == (
        "preempted",
        done,
        done,
        0,
    )

    assert place.start(**told).wait() == 0
    assert sorted(place.ledger) == sorted(row["id"] for row in inputs if row["text"] != "reject")
    assert place.results() == wanted(inputs)
    said = json.loads(log.read_text())
    assert (said["state"], said["step"], said["resumedFrom"]) == ("finished", len(inputs), done)


def test_a_stop_in_an_item_longer_than_the_grace_keeps_what_was_done_before(place: batches.Place):
    inputs = rows(20)
    place.put_inputs(inputs)
    program = place.start(LONG_ID="row-3", SPOTTRAIN_GRACE_SECONDS=3)
    program.wait_for("doing row-3\n")
    assert place.ids() == []
    program.send(signal.SIGTERM)
    told = time.monotonic()
    assert program.wait(10) == 75
    assert time.monotonic() - told < 3
    assert place.ids() == ["a", "b", "c", "d", "row-0", "row-1", "row-2"]
    assert place.start().wait() == 0
    assert place.results() == wanted(inputs)


def test_a_stop_while_waiting_for_the_release_claims_nothing(bench: processes.Bench, tmp_path: Path):
    place = on_files(bench, tmp_path)
    place.put_inputs(rows())
    (tmp_path / "annotations").write_text('spottrain.dev/go="ffff"\n')
    program = place.start(SPOTTRAIN_GO_FILE=tmp_path / "annotations", SPOTTRAIN_ATTEMPT_ID="0a")
    processes.wait_until_handled(program)
    program.send(signal.SIGTERM)
    assert program.wait(10) == 75
    assert not (tmp_path / "out").exists()


def test_an_older_attempt_that_wakes_up_commits_nothing_and_says_who_took_over(place: batches.Place):
    inputs = rows()
    place.put_inputs(inputs)
    log = place.folder / "termination"
    log.touch()
    told = {"SPOTTRAIN_JOB": "b", "SPOTTRAIN_JOB_UID": "u", "SPOTTRAIN_TERMINATION_LOG": log}
    old = place.start(ITEM_SECONDS=0.05, EVERY=10, SPOTTRAIN_ATTEMPT=1, SPOTTRAIN_ATTEMPT_ID="01", **told)
    old.wait_for("event=committed")
    old.send(signal.SIGSTOP)
    new = place.start(
        SPOTTRAIN_ATTEMPT=2,
        SPOTTRAIN_ATTEMPT_ID="02",
        SPOTTRAIN_JOB="b",
        SPOTTRAIN_JOB_UID="u",
        SPOTTRAIN_TERMINATION_LOG=place.folder / "other",
    )
    assert new.wait() == 0
    assert place.results() == wanted(inputs)
    before = place.parts()
    old.send(signal.SIGCONT)
    assert old.wait() == 1
    assert "attempt 2 (02) has taken over with claim 2; 01 is stale" in old.output
    assert json.loads(log.read_text())["state"] == "stale"
    assert place.parts() == before
    assert place.results() == wanted(inputs)


def test_a_part_that_slips_in_after_a_newer_claim_is_never_read(
    bench: processes.Bench, tmp_path: Path, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    """The old writer has looked at the claims; its COMMIT is on its way while another takes the shard."""
    store = s3.S3Store(bucket, "out", endpoint=s3_server.endpoint)
    uri = {"SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/out"}
    by_proxy = {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint}
    place, inputs = batches.Place(bench, store, by_proxy, tmp_path), rows()
    place.put_inputs(inputs)
    old = place.start(ITEM_SECONDS=0.05, EVERY=10, TAG="-old")
    old.wait_for("event=committed")
    held = faults.Hold(threading.Event())
    proxy.rule = lambda request: held if request.is_put_of(r"/COMMIT\.json$") else None
    assert held.reached.wait(20)
    old.send(signal.SIGSTOP)
    direct = {**uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint}
    kill_when(place.start(ITEM_SECONDS=0.1, **direct), "begun")
    shard = Below(store, layout.shard_prefix(batches.MODEL.hash, 0))
    held.release.set()
    wait_until(lambda: len(view.look(shard).committed) == 2)
    old.send(signal.SIGCONT)
    assert old.wait() == 1
    assert "is stale" in old.output
    assert place.start(TAG="-new", **direct).wait() == 0

    first, rest = place.parts()
    assert len(view.look(shard).committed) == 3
    assert sorted([*first.ids, *rest.ids]) == sorted(row["id"] for row in inputs)
    tags = dict.fromkeys(first.ids, "-old") | dict.fromkeys(rest.ids, "-new")
    unbroken = wanted(inputs)
    for name, one in unbroken.items():
        one.update({key: value + tags[name] for key, value in one.items() if key == "output"})
    assert place.results() == unbroken


def test_a_commit_that_worked_although_nobody_said_so_is_no_second_part(
    bench: processes.Bench, tmp_path: Path, proxy: faults.Proxy, s3_server: gateway.Gateway, bucket: str
):
    """Its answers are lost and it can't be read back: the results wait in memory, and go again unchanged."""
    store = s3.S3Store(bucket, "out", endpoint=s3_server.endpoint)
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/out",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint,
    }
    place, inputs = batches.Place(bench, store, env, tmp_path), rows()
    place.put_inputs(inputs)
    outage = _Outage()
    proxy.rule = outage.fault
    program = place.start(ITEM_SECONDS=0.05, EVERY=10, SECONDS=0.5)
    program.wait_for("event=commit-failed")
    outage.over = True
    assert program.wait() == 0
    assert outage.lost
    assert sorted(place.ids()) == sorted(row["id"] for row in inputs)
    assert place.results() == wanted(inputs)


class _Outage:
    """The first COMMIT that arrives is carried out, and nothing is answered from then on until it is over."""

    def __init__(self) -> None:
        self.lost = False
        self.over = False

    def fault(self, request: faults.Request) -> faults.Fault | None:
        if self.over:
            return None
        if request.is_put_of(r"/COMMIT\.json$"):
            self.lost = True
            return faults.LoseAnswer()
        return faults.Answer(503, "SlowDown") if self.lost else None


INDEPENDENT = {"SPOTTRAIN_JOB": "b", "SPOTTRAIN_JOB_UID": "u", "SPOTTRAIN_MODE": "Independent"}


def indexes(place: batches.Place, count: int, attempt: str, **env: object) -> Iterator[processes.Program]:
    """The pods of a job with so many workers: the operator gives each a place below the job's."""
    uri = place.env["SPOTTRAIN_CHECKPOINT_URI"]
    for index in range(count):
        told = {
            "SPOTTRAIN_INDEX": index,
            "SPOTTRAIN_WORKERS": count,
            "SPOTTRAIN_CHECKPOINT_URI": f"{uri}/{index}",
            "SPOTTRAIN_ATTEMPT_ID": f"{attempt}{index}",
            "SPOTTRAIN_TERMINATION_LOG": place.folder / "termination",
        }
        yield place.start(**INDEPENDENT, **told, **env)


def test_the_indexes_of_a_job_deal_the_inputs_out_and_another_number_of_them_goes_on(place: batches.Place):
    inputs = rows()
    place.put_inputs(inputs)
    first = list(indexes(place, 3, "a", ITEM_SECONDS=0.02, **OFTEN))
    kill_when(first[0], "event=committed")
    assert [program.wait() for program in first[1:]] == [0, 0]
    shares = [set(place.ids(shard)) for shard in range(3)]
    assert all(shares)
    assert sum(map(len, shares)) == len(set().union(*shares))

    assert [program.wait() for program in indexes(place, 2, "b")] == [0, 0]
    assert place.results() == wanted(inputs)
    assert sorted(name for shard in range(3) for name in place.ids(shard)) == sorted(
        row["id"] for row in inputs
    )

    place.forget()
    assert [program.wait() for program in indexes(place, 5, "c")] == [0] * 5
    assert place.ledger == []


def test_the_processes_that_torchrun_starts_in_a_pod_share_its_inputs_and_a_stop_reaches_all(
    torch_bench: processes.Bench, tmp_path: Path
):
    place, inputs = on_files(torch_bench, tmp_path), rows()
    place.put_inputs(inputs)

    def torchrun(**env: object) -> processes.Program:
        files = {"INPUTS": tmp_path / "in.jsonl", "LEDGER": tmp_path / "ledger"}
        pod = {**INDEPENDENT, "PET_STANDALONE": 1, "PET_NPROC_PER_NODE": 2, "SPOTTRAIN_INDEX": 0}
        command = [sys.executable, "-m", "torch.distributed.run", str(processes.PROGRAMS / "infer.py")]
        return torch_bench.run(command, **{**files, **place.env, **pod, **env})

    stopped = torchrun(ITEM_SECONDS=0.2, SPOTTRAIN_ATTEMPT_ID="0a")
    stopped.wait_for(r"doing (?s:.*)doing (?s:.*)doing")
    stopped.send(signal.SIGTERM)
    assert stopped.wait(30) != 0
    done = [*place.ids(0), *place.ids(1)]
    assert sorted(done) == sorted(re.findall(r"^doing (\S+)", stopped.output, re.MULTILINE))

    assert torchrun(SPOTTRAIN_ATTEMPT_ID="0b").wait(60) == 0
    assert place.results() == wanted(inputs)
    assert sorted([*place.ids(0), *place.ids(1)]) == sorted(row["id"] for row in inputs)


def wait_until(probe) -> None:  # noqa: ANN001
    deadline = time.monotonic() + 20
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.02)
