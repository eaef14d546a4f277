"""Nodes are drained and killed under real workers on real kubelets."""

import re

import pytest

from lab import torch_env
from tests.node.conftest import PATIENCE, Site


def restored(site: Site) -> str:
    """The second attempt's first worker's log once it has restored; until then nothing."""
    log = site.log("tr-0-2")
    return log if "event=restored" in log else ""


def resumed_at(log: str) -> int:
    """The first step that the library said it goes on from."""
    found = re.search(r"event=restored .*?next_step=(\d+)", log)
    assert found, f"nothing was restored:\n{log}"
    return int(found.group(1))


def test_a_drained_worker_goes_on_at_the_next_step_on_another_node(site: Site) -> None:
    """SIGTERM, a save, exit 75; the next attempt starts right behind that save; nothing counts as failure."""
    site.job.applied(site.manifest("counter.py"))
    site.job.wait("two commits", lambda: len(site.commits()) >= 2, PATIENCE)
    first = site.job.status()["attemptID"]
    drained = site.node_of("tr-0-1")
    site.lab.node_drain(drained)
    site.job.wait_running(2, PATIENCE)
    assert site.node_of("tr-0-2") != drained
    resumed = site.job.wait("a restore", lambda: restored(site))
    last = max(step for attempt, step in site.commits() if attempt == first)
    assert resumed_at(resumed) == last + 1
    site.job.wait_phase("Complete", PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (1, 0, 2)
    assert status["lastReclaim"]["cause"] == "Evicted"
    assert status["progress"]["step"] == 99


def test_b01_a_shell_as_pid_1_keeps_sigterm_from_nobody(site: Site) -> None:
    """No save is due by time: what is gone on from was saved because the program was told to stop."""
    manifest = site.manifest("counter.py")
    manifest["spec"]["checkpoint"]["interval"] = "1h"
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["command"] = ["sh", "-c", "cd /programs && python3 counter.py; echo done"]
    site.job.applied(manifest)
    site.job.wait_running(1, PATIENCE)
    site.job.wait("a step", lambda: "event=first-step" in site.log("tr-0-1"), PATIENCE)
    site.lab.node_drain(site.node_of("tr-0-1"))
    site.job.wait_running(2, PATIENCE)
    resumed = site.job.wait("a restore", lambda: restored(site), PATIENCE)
    (saved,) = [step for _, step in site.commits()]
    assert resumed_at(resumed) == saved + 1
    site.job.wait_phase("Complete", PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (1, 0, 2)


def test_a_killed_node_costs_what_came_after_the_last_commit(site: Site) -> None:
    """No notice, no SIGTERM; its Node object stays, its pod would hang in Terminating for ever."""
    site.job.applied(site.manifest("counter.py"))
    site.job.wait("two commits", lambda: len(site.commits()) >= 2, PATIENCE)
    first = site.job.status()["attemptID"]
    killed = site.node_of("tr-0-1")
    site.lab.node_kill(killed)
    last = max(step for attempt, step in site.commits() if attempt == first)
    site.job.wait_running(2, PATIENCE)
    assert "tr-0-1" not in site.job.pods()
    resumed = site.job.wait("a restore", lambda: restored(site))
    assert resumed_at(resumed) == last + 1
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (1, 0, 2)
    assert (status["lastReclaim"]["cause"], status["lastReclaim"]["node"]) == ("NodeLost", killed)
    site.job.wait_phase("Complete", PATIENCE)


def test_a3_peers_that_fall_with_a_killed_node_are_charged_to_nobody(site: Site) -> None:
    """They exit 1 on healthy nodes long before the node is known dead: one reclaim, no failure."""
    site.job.applied(
        site.manifest("ring.py", workers=3, maxFailures=0, spot={"onDemandFloor": 1, "spread": "zone"})
    )
    site.job.wait_running(1, PATIENCE)
    ranks = range(3)
    site.job.wait("a ring", lambda: all("met" in site.log(f"tr-{rank}-1") for rank in ranks), PATIENCE)
    site.lab.node_kill(site.node_of("tr-2-1"))
    site.job.wait("the next attempt, cause unknown", lambda: site.job.status()["attempt"] >= 2, PATIENCE)
    site.job.wait("the verdict", lambda: site.job.status()["reclaims"] == 1, PATIENCE)
    site.job.wait("all running again", lambda: site.job.status()["phase"] == "Running", PATIENCE)
    site.let_rings_end()
    site.job.wait_phase("Complete", PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"]) == (1, 0)
    assert [one["cause"] for one in status["attempts"]] == ["Initial", "Reclaimed"]


def test_a_program_that_fails_while_its_peers_are_being_started_is_charged_for_it(site: Site) -> None:
    """Kubelets say of peers that were stopped before they ran what they say of a lost machine's."""
    document = site.manifest("ring.py", workers=4, maxFailures=0)
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["envFrom"].append({"secretRef": {"name": "late"}})
    container["command"] = ["false"]
    site.job.applied(document)

    def wait_for_it() -> bool:
        pods = site.job.pods().values()
        states = [one["state"] for pod in pods for one in pod["status"].get("containerStatuses", ())]
        reasons = [state.get("waiting", {}).get("reason") for state in states]
        return reasons == ["CreateContainerConfigError"] * 4

    site.job.wait("containers that wait for a Secret", wait_for_it, PATIENCE)
    site.lab.kubectl("-n", site.job.namespace, "create", "secret", "generic", "late", "--from-literal=a=b")
    site.job.wait_phase("Failed", PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"]) == (0, 1)


def test_an_eviction_asks_every_rank_to_stop_within_two_seconds(site: Site) -> None:
    """Each with its whole grace, so that they can save together."""
    site.job.applied(site.manifest("ring.py", workers=3))
    site.job.wait_running(1, PATIENCE)
    site.job.evict("tr-1-1")
    asked: dict[str, int] = {}

    def all_asked() -> bool:
        for name, pod in site.job.pods().items():
            metadata = pod["metadata"]
            if name.endswith("-1") and "deletionTimestamp" in metadata:
                hours, minutes, seconds = metadata["deletionTimestamp"][11:19].split(":")
                ends = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
                asked[name] = ends - metadata["deletionGracePeriodSeconds"]
        return len(asked) == 3

    site.job.wait("all asked to stop", all_asked, 10)
    assert max(asked.values()) - min(asked.values()) <= 2
    site.job.wait_running(2, PATIENCE)


def test_a5_a_real_program_that_exits_0_on_sigterm_goes_on_in_a_new_attempt(site: Site) -> None:
    document = site.manifest("ring.py", workers=2)
    program = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(3600)"
    document["spec"]["template"]["spec"]["containers"][0]["command"] = ["python3", "-c", program]
    site.job.applied(document)
    site.job.wait_running(1, PATIENCE)
    site.job.delete_pod("tr-1-1", grace=20)
    site.job.wait_running(2, PATIENCE)
    assert site.job.status()["phase"] == "Running"


def test_the_end_of_a_failed_log_is_in_the_condition(site: Site) -> None:
    document = site.manifest("ring.py", maxFailures=0)
    document["spec"]["template"]["spec"]["containers"][0]["command"] = [
        "python3",
        "-c",
        "import nothing_like_this",
    ]
    site.job.applied(document)
    site.job.wait_phase("Failed", PATIENCE)
    failed = site.job.wait("the log's end", lambda: words(site), 20)
    assert "ModuleNotFoundError: No module named 'nothing_like_this'" in failed


def words(site: Site) -> str:
    message = str(site.job.condition("Failed").get("message", ""))
    return message if "end of the log of tr-0-1" in message else ""


def test_torchruns_c10d_rendezvous_meets_although_worker_0_alone_has_a_name(site: Site) -> None:
    """The program's own choice; the first of the nodes in the order of their names is rank 0."""
    document = site.manifest("c10d.py", workers=3)
    pod = document["spec"]["template"]["spec"]
    libraries = str(torch_env.ensure().resolve())
    pod["volumes"].append({"name": "torch", "hostPath": {"path": libraries, "type": "Directory"}})
    container = pod["containers"][0]
    container["volumeMounts"].append({"name": "torch", "mountPath": libraries, "readOnly": True})
    container["env"].append({"name": "PYTHONPATH", "value": libraries})
    meet = ["--rdzv-backend=c10d", "--rdzv-endpoint=$(PET_MASTER_ADDR):$(PET_MASTER_PORT)"]
    run = ["python3", "-m", "torch.distributed.run", *meet, "--nproc-per-node=1", "/programs/c10d.py"]
    container["command"] = run
    site.job.applied(document)
    site.job.wait_phase("Complete", 2 * PATIENCE)
    assert "counted workers=3" in site.log("tr-2-1")


@pytest.mark.slow
def test_a_worker_whose_machine_restarts_between_making_and_starting_it_is_replaced(
    site: Site, slow: str
) -> None:
    """Its kubelet never starts it and never ends it: Pending for ever, on a node that is well."""
    manifest = site.manifest("counter.py")
    manifest["spec"]["template"]["spec"]["runtimeClassName"] = slow
    site.job.applied(manifest)
    site.job.wait("a container that is made and not started", lambda: made_only(site), PATIENCE)
    uid, node = site.job.pod("tr-0-1")["metadata"]["uid"], site.node_of("tr-0-1")
    site.lab.node_kill(node)
    site.lab.node_start(node)
    site.job.wait_phase("Complete", PATIENCE + 120)
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (1, 0, 2), uid
    assert (status["lastReclaim"]["cause"], status["lastReclaim"]["node"]) == ("NodeRestarted", node)


def made_only(site: Site) -> bool:
    """Beside the sandbox's own process there is one that waits to become the worker."""
    pod = site.job.pods().get("tr-0-1")
    if pod is None:
        return False
    commands = [one.command for one in site.lab.pod_processes() if one.pod == pod["metadata"]["uid"]]
    return any("pause" in one for one in commands) and any("init" in one for one in commands)
