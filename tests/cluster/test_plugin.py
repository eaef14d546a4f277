"""`kubectl spottrain` as people run it: by a real kubectl, against a real API server."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import clock
from lab.cluster import Lab
from tests.cluster import kubelet, play

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module", autouse=True)
def nodes(plane: Lab) -> Iterator[None]:
    """Machines for the jobs of this file."""
    labels = {"topology.kubernetes.io/zone": "zone-a", "case": "plugin"}
    bought = {"i-plugin-od": play.ON_DEMAND, "i-plugin-1": play.SPOT, "i-plugin-2": play.SPOT}
    made = [{"name": name, "labels": {**labels, **capacity}} for name, capacity in bought.items()]
    with play.machines(plane.api, *made):
        yield


def environment(plane: Lab) -> dict[str, str]:
    """With the programs of this Python, as `pip install` puts them into PATH, and the lab's kubectl."""
    known = {**os.environ, **plane.env()}
    return {**known, "PATH": f"{known['PATH']}:{Path(sys.executable).parent}", "TERM": "dumb"}


def run(plane: Lab, *arguments: str) -> Done:
    return subprocess.run(
        ["kubectl", *arguments],
        env=environment(plane),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def asked(plane: Lab, job: play.Job, *arguments: str) -> Done:
    return run(plane, "spottrain", *arguments, f"--namespace={job.namespace}")


def reclaimed(job: play.Job) -> None:
    """A gang of two that lost worker 1 once, and runs again."""
    document = play.manifest(workers=2, spot={"onDemandFloor": 1})
    document["spec"]["template"]["spec"]["nodeSelector"] = {"case": "plugin"}
    job.applied(document).wait_running(1)
    job.reclaim("tr-1-1")
    job.wait_running(2)
    job.wait("its Event", lambda: job.events("Reclaimed"))  # it follows what it tells of


def test_a_reclaimed_job_is_listed_described_and_reported(plane: Lab, job: play.Job, tmp_path: Path):
    reclaimed(job)

    head, row = asked(plane, job, "list").stdout.splitlines()
    assert head.split()[:5] == ["NAME", "PHASE", "WALL", "USEFUL", "RECLAIMS"]
    assert (row.split()[:2], row.split()[4], row.split()[7:9]) == (["tr", "Running"], "1", ["2/2", "1/1"])
    (plain,) = json.loads(asked(plane, job, "list", "-o", "json").stdout)
    assert (plain["phase"], plain["reclaims"], plain["workers"]["running"]) == ("Running", 1, 2)
    everywhere = run(plane, "spottrain", "list", "-A").stdout
    assert f"\n{job.namespace} " in everywhere

    story = asked(plane, job, "describe", "tr")
    assert (story.returncode, story.stderr) == (0, "")
    assert "ended: Reclaimed (Evicted)" in story.stdout
    assert "worker 0: tr-0-2 on i-plugin-od (on-demand, zone-a): running" in story.stdout
    assert "Reclaimed: worker 1: tr-1-1: EvictionByEvictionAPI" in story.stdout

    page = tmp_path / "page.html"
    assert asked(plane, job, "report", "tr", "-o", str(page)).stdout == f"{page}\n"
    tree = ET.fromstring(page.read_text().partition("\n")[2])
    assert [one.get("class") for one in tree.iter("rect")].count("ran") == 2


def test_events_are_told_as_they_come(plane: Lab, job: play.Job):
    reclaimed(job)

    told = asked(plane, job, "events", "tr").stdout.splitlines()
    assert [line.split()[2] for line in told] == ["AttemptStarted:", "Reclaimed:"]
    command = ["kubectl", "spottrain", "events", "tr", "--watch", "-n", job.namespace]
    with subprocess.Popen(command, env=environment(plane), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in told]
        assert seen == told
        job.reclaim("tr-1-2")
        try:
            assert "Reclaimed: worker 1: tr-1-2: EvictionByEvictionAPI" in process.stdout.readline()
        finally:
            process.terminate()


def test_the_lost_steps_of_a_drained_attempt_are_known_when_its_pods_are_gone(plane: Lab, job: play.Job):
    """Its workers leave their last word and are removed; where the next one went on, that one tells."""
    document = play.manifest(workers=2, annotations=play.BY_HAND)
    document["spec"]["template"]["spec"]["nodeSelector"] = {"case": "plugin"}
    job.applied(document).wait_running(1)
    drained(job, 1, {"step": 41, "resumedFrom": None})
    drained(job, 2, {"step": 50, "resumedFrom": 38})
    job.wait("its last word", lambda: "resumeStep" in job.status()["attempts"][1])

    story = asked(plane, job, "describe", "tr").stdout

    assert "steps 0..41, the next one went on at step 39, 3 steps were done again" in story
    assert "steps 39..50\n" in story


def drained(job: play.Job, attempt: int, word: play.Object) -> None:
    """A worker is evicted, all save and leave that last word, and the next attempt runs."""
    names = {f"tr-0-{attempt}", f"tr-1-{attempt}"}
    job.evict(f"tr-1-{attempt}")
    job.wait("both asked", lambda: all("deletionTimestamp" in job.pod(one)["metadata"] for one in names))
    for name in names:
        job.end(name, 75, message=json.dumps({"spottrain": 1, "state": "preempted", **word}))
        job.vanish(name)
    job.wait_running(attempt + 1)


def test_logs_say_what_is_gone_and_which_node_does_not_answer(plane: Lab, job: play.Job):
    """Nobody answers at the addresses of kwok's nodes, as at those of dead ones."""
    reclaimed(job)

    done = asked(plane, job, "logs", "tr", "--index", "0")

    assert (done.returncode, done.stdout) == (1, "")
    assert "==> tr-0-2 (attempt 2, worker 0, running)" in done.stderr
    assert "the log of tr-0-2 can't be read: " in done.stderr


WRITTEN = [
    (f"2026-11-30T12:00:0{second}.{nano}Z", f"step {second}.{nano}")
    for second in (0, 1, 2)
    for nano in (1, 5, 5)
]


def test_a_log_is_followed_over_broken_connections_without_a_line_lost_or_doubled(plane: Lab, job: play.Job):
    """One breaks in a line, one between two that are alike, one with nothing new: kubectl says "ended"."""
    line = len(" ".join(WRITTEN[0])) + 1
    logs = kubelet.Logs(WRITTEN, (4 * line + 30, 5 * line, 2 * line))
    with (
        play.hand_made(plane.api, "i-plugin-logs", {"case": "logs"}) as node,
        kubelet.running(plane, logs) as where,
    ):
        plane.api.merge(f"/api/v1/nodes/{node.name}/status", {"status": where}).expect(node.name)
        document = play.manifest(workers=1)
        document["spec"]["template"]["spec"]["nodeSelector"] = {"case": "logs"}
        job.applied(document)
        job.wait("its pod", lambda: job.pods().get("tr-0-1", {}).get("spec", {}).get("nodeName"))
        job.patch_pod("tr-0-1", runs())
        command = ["kubectl", "spottrain", "logs", "tr", "--follow", f"--namespace={job.namespace}"]
        with subprocess.Popen(command, env=environment(plane), stdout=-1, stderr=-1, text=True) as following:
            job.wait("an unbroken answer", lambda: len(logs.asked) > 3, seconds=60)
            job.end("tr-0-1", 0)
            out, err = following.communicate(timeout=60)
    assert (following.returncode, out.splitlines()) == (0, [said for _, said in WRITTEN])
    assert err == "==> tr-0-1 (attempt 1, worker 0, running)\n"
    assert [one.get("sinceTime", "")[-4:] for one in logs.asked[:5]] == ["", ":00Z", ":00Z", ":00Z", ":01Z"]


def runs() -> play.Object:
    """What the kubelet says of a pod whose container runs."""
    state = {"running": {"startedAt": play.timestamp()}}
    trainer = {
        "name": "trainer",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": state,
    }
    return {"phase": "Running", "containerStatuses": [trainer]}


def test_what_is_not_there_or_not_allowed_is_answered_with_what_to_do(plane: Lab, job: play.Job):
    job.applied(play.manifest())

    done = asked(plane, job, "describe", "tx")
    assert done.returncode == 1
    assert done.stderr.startswith(f"spottrain: there is no job tx in namespace {job.namespace}: is it tr?")
    done = asked(plane, job, "list", "--as=nobody")
    assert done.returncode == 1
    assert "spottrain: the cluster does not allow that: ask for the role `view`" in done.stderr
    done = asked(plane, job, "list", "--server=https://127.0.0.1:9")
    assert done.returncode == 1
    assert "spottrain: kubectl reaches no cluster: `kubectl cluster-info` must work first" in done.stderr
    done = asked(plane, job, "list", "--context=none")
    assert (done.returncode, "see --context" in done.stderr) == (1, True)


def test_kubectls_own_completion_offers_commands_and_jobs(plane: Lab, job: play.Job):
    """`kubectl __complete` is what `kubectl completion bash` asks at each TAB."""
    job.applied(play.manifest())

    offered = run(plane, "__complete", "spottrain", "de").stdout.split()
    assert offered == ["describe", ":4"]
    by_name = run(plane, "__complete", "spottrain", "describe", "-n", job.namespace, "").stdout.split()
    assert by_name == ["tr", ":4"]


def test_a_user_with_the_role_view_sees_a_job_though_not_its_nodes(plane: Lab, job: play.Job):
    reclaimed(job)
    plane.kubectl(
        *(
            "create",
            "rolebinding",
            "viewers",
            "--clusterrole=view",
            "--user=ann",
            f"--namespace={job.namespace}",
        )
    )

    def seen() -> Done | None:
        done = asked(plane, job, "describe", "tr", "--as=ann")
        return done if done.returncode == 0 else None

    done = clock.wait_for("the role to count", seen, seconds=30)

    assert "worker 0: tr-0-2 on i-plugin-od: running" in done.stdout
    assert done.stderr.startswith("nodes can't be read: the cluster does not allow that")
