"""Small parts: lines, records' places, pods that are chosen, windows, what is left behind, the documents."""

from pathlib import Path
from typing import Any

import pytest

from chaos import facts, harm, jobs, judge, ledger, leftovers, modes, records
from chaos.facts import Window
from chaos.faults import Fault, Kind
from chaos.harm import Done
from chaos.jobs import SLOTS, JobRun
from chaos.judge import Verdict
from chaos.ledger import Life
from chaos.leftovers import Objects
from chaos.schedule import Act
from demo.manifests import Store, Workers
from lab import pod_processes
from lab.pod_processes import PodProcess
from tests.unit.chaos import stories

WHO = '"job": "pair-1", "uid": "u", "attempt": 1, "attempt_id": "aaaa", "index": 0'


def test_a_line_is_read_with_its_lives() -> None:
    found = ledger.parse('{"at": 1.5, "event": "finished", ' + WHO + ', "lives": [["aaaa", 0, 9]]}')
    assert (found.at, found.event, found.lives) == (1.5, "finished", (Life("aaaa", 0, 9),))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"at": 1}', '{"at": 1, "event": "done", "new": 1, ' + WHO + "}"]
)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ledger.parse(text)


def test_all_files_are_one_ledger_in_the_order_of_time(tmp_path: Path) -> None:
    for name, times in (("a", (1, 3)), ("b", (2, 4))):
        lines = [f'{{"at": {at}, "event": "done", {WHO}}}' for at in times]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    assert [line.at for line in ledger.read(tmp_path)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("pair-1/lineage/000003.json", ("pair-1", "", 3)),
        ("shards-2/7/lineage/000012.json", ("shards-2", "7", 12)),
        ("pair-1/steps/0000000003-aaaa-0/COMMIT.json", ("", "", None)),
    ],
)
def test_a_records_key_tells_job_and_lineage(key: str, place: tuple[str, str, int | None]) -> None:
    assert records.place(key) == place


def test_a_status_is_read_with_what_stands_in_the_way() -> None:
    conditions = [
        {"type": "Running", "status": "False", "message": "waits for workers"},
        {"type": "Failed", "status": "False", "message": ""},
    ]
    status = {
        "phase": "Restarting",
        "attempt": 2,
        "attemptID": "bbbb",
        "reclaims": 1,
        "conditions": conditions,
    }
    assert facts.told(5.0, {"status": status}) == facts.Told(
        5.0, "Restarting", 2, "bbbb", reclaims=1, message="waits for workers"
    )
    assert facts.told(5.0, {}) == facts.Told(5.0)


def pod(name: str, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "status": {"phase": phase}}


def test_the_pod_at_a_place_is_chosen_by_the_order_of_names() -> None:
    pods = [pod("b"), pod("c"), pod("a")]
    chosen = [harm.chosen(pods, pick) for pick in (0.0, 0.34, 0.99, 1.0)]
    assert [one["metadata"]["name"] for one in chosen if one] == ["a", "b", "c", "c"]
    assert harm.chosen([], 0.5) is None


def test_a_pod_that_has_ended_or_was_asked_to_is_not_alive() -> None:
    assert harm.alive(pod("a"))
    assert not harm.alive(pod("a", "Succeeded"))
    assert not harm.alive(pod("a", deletionTimestamp="2026-11-29T21:00:00Z"))


def test_a_cut_off_node_has_a_window_until_some_time_after_its_cable_was_put_back() -> None:
    cut = Fault(1, 10, Kind.PARTITION, 5, "spot-1")
    force, kill = Fault(2, 11, Kind.FORCE), Fault(3, 12, Kind.KILL, 5, "spot-2")
    done = [
        Done(110, Act(10, cut, begins=True)),
        Done(111, Act(11, force, begins=True), target="pair-1-0-1 on od-1"),
        Done(112, Act(12, kill, begins=True)),
        Done(117, Act(15, cut, begins=False)),
    ]
    assert harm.windows(done) == (
        Window("spot-1", 110, 117 + harm.AFTERWARDS),
        Window("od-1", 111, 111 + harm.AFTERWARDS),
    )


def objects(**kinds: list[dict[str, Any]]) -> Objects:
    by_kind = {kind: tuple(kinds.get(kind, ())) for kind in leftovers.OWNED}
    return Objects(by_kind, frozenset(one["metadata"]["uid"] for one in by_kind["Pod"]))


def job(name: str, *conditions: str) -> dict[str, Any]:
    found = [{"type": one, "status": "True"} for one in conditions]
    return {"metadata": {"name": name}, "status": {"conditions": found}}


def test_ended_pods_and_complete_jobs_may_stay_with_the_object_they_belong_to() -> None:
    kept = objects(
        SpotTrainingJob=[job("pair-1")],
        Job=[job("pair-1", "SuccessCriteriaMet", "Complete")],
        Pod=[pod("pair-1-0-2", "Succeeded", labels={"spottrain.dev/job": "pair-1"})],
        Service=[{"metadata": {"name": "pair-1"}}],
    )
    assert list(leftovers.when_complete(kept, ["pair-2"])) == []
    assert list(leftovers.when_deleted(kept)) == [
        "SpotTrainingJob pair-1 is still there",
        "Job pair-1 is still there",
        "Pod pair-1-0-2 is still there",
        "Service pair-1 is still there",
    ]


def test_what_is_left_of_ended_and_deleted_jobs_is_named() -> None:
    left = objects(
        Job=[job("pair-1"), job("pair-2", "Complete")],
        Pod=[pod("pair-1-0-2"), pod("pair-2-0-1", "Failed", labels={"spottrain.dev/job": "pair-2"})],
        Service=[{"metadata": {"name": "pair-2"}}],
    )
    assert list(leftovers.when_complete(left, ["pair-2"])) == [
        "pod pair-1-0-2 of a job that is over is Running",
        "Job pair-2 of a deleted job is still there",
        "Pod pair-2-0-1 of a deleted job is still there",
        "Service pair-2 of a deleted job is still there",
        "Job pair-1 is not over, and its SpotTrainingJob is",
    ]


def test_a_process_of_a_pod_that_is_gone_is_a_stray() -> None:
    there = objects(Pod=[pod("a")])
    found = [PodProcess(1, "uid-a", "python3"), PodProcess(2, "uid-b", "python3 worker.py")]
    assert list(leftovers.strays(there, found)) == [
        "process 2 (python3 worker.py) of pod uid-b, which is gone, still runs"
    ]


def test_the_pod_of_a_process_is_read_from_its_control_groups() -> None:
    uid = "0a1b2c3d-0000-1111-2222-333344445555"
    assert pod_processes.pod_of(f"4:memory:/stlab1/spot-1/kubepods/burstable/pod{uid}/abc\n") == uid
    assert pod_processes.pod_of("4:memory:/stlab1/spot-1\n0::/pod\n") is None


def test_a_job_runs_the_worker_with_its_ledger_and_its_mode() -> None:
    trio = next(slot for slot in SLOTS if slot.workers == 3)
    run = JobRun(trio, 2)
    found = jobs.document(run, Workers("image", host_path="/torch"), Store("s3://bucket"), Path("/x/ledger"))
    spec, pod_spec = found["spec"], found["spec"]["template"]["spec"]
    assert found["metadata"]["name"] == run.name == "trio-2"
    assert (spec["mode"], spec["workers"], spec["spot"]["onDemandFloor"]) == (modes.GANG, 3, 1)
    assert spec["checkpoint"]["uri"] == "s3://bucket/trio-2"
    assert pod_spec["containers"][0]["command"] == ["python3", "/demo/worker.py"]
    assert {"name": "ledger", "hostPath": {"path": "/x/ledger", "type": "Directory"}} in pod_spec["volumes"]


def test_the_shards_of_an_independent_job_are_each_alone_and_so_many_at_once() -> None:
    slot = next(slot for slot in SLOTS if slot.mode == modes.INDEPENDENT)
    found = jobs.document(JobRun(slot, 1), Workers("image"), Store("s3://bucket"), Path("/x/ledger"))
    assert (found["spec"]["mode"], found["spec"]["workers"], found["spec"]["parallelism"]) == (
        "Independent",
        6,
        3,
    )
    assert {"name": "CHAOS_TOGETHER", "value": "no"} in found["spec"]["template"]["spec"]["containers"][0][
        "env"
    ]


def test_every_other_job_is_deleted_as_soon_as_it_is_complete() -> None:
    assert [JobRun(SLOTS[0], number).removed_early for number in (1, 2, 3)] == [False, True, False]


def test_the_table_names_the_jobs_for_which_a_statement_does_not_hold() -> None:
    good, bad = judge.judge(stories.good()), judge.judge(stories.without(stories.good(), "finished", index=1))
    text = judge.table(Verdict((good, bad)))
    assert "all finish in one attempt            2     NOT: pair-1" in text
    assert "no committed work lost               2     holds" in text


@pytest.mark.parametrize(
    ("verdict", "passed"),
    [
        (Verdict((judge.judge(stories.good()),)), True),
        (Verdict((judge.judge(stories.good()),), left=("pod a",)), False),
        (Verdict((judge.judge(stories.good()),), trouble=("the lab",)), False),
        (Verdict((judge.judge(stories.without(stories.good(), "finished")),)), False),
    ],
)
def test_a_run_passes_when_there_is_nothing_to_object(verdict: Verdict, passed: bool) -> None:
    assert verdict.passed is passed
    assert judge.summary(verdict)["passed"] is passed
