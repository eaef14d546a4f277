"""A program that nobody may change, on real kubelets: its node is drained, killed, and it goes on."""

import re
import time
from concurrent import futures
from typing import Any

from tests.node.conftest import PATIENCE, Site

TOTAL = 60
GRACE, SIDECAR_LEAST, KUBELET_ROUNDS = 26, 2, 6
"""Seconds: of the default window of 30; what kubelets give sidecars after that; until the end is seen."""


def manifest(site: Site, **env: str) -> dict[str, Any]:
    """A job of trainer.py, all of whose knowledge of us is the path of a folder."""
    document = site.manifest("trainer.py")
    checkpoint = document["spec"]["checkpoint"]
    del checkpoint["interval"]
    checkpoint["directory"] = "/checkpoints"
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["command"] = ["python3", "/programs/trainer.py", "/checkpoints", str(TOTAL)]
    told = {"STEP_SECONDS": "0.8", **env}
    container["env"] = [{"name": name, "value": value} for name, value in told.items()]
    return document


def started(site: Site, **env: str) -> str:
    """The attempt ID of a job that has stored a checkpoint."""
    site.job.applied(manifest(site, **env))
    site.job.wait("a commit", site.commits, PATIENCE)
    return str(site.job.status()["attemptID"])


def newest(site: Site, attempt: str) -> int:
    return max(step for by, step in site.commits() if by == attempt)


def begun(site: Site) -> tuple[int, int]:
    """The step and the sum with which the second attempt began."""
    site.job.wait_running(2, PATIENCE)
    found = site.job.wait("a beginning", lambda: re.search(r"begin at (\d+) with (\d+)", site.log("tr-0-2")))
    return int(found[1]), int(found[2])


def finished(site: Site) -> None:
    """It has come to its end with each step done once, and the last checkpoint is in the store."""
    site.job.wait_phase("Complete", 2 * PATIENCE)
    assert f"done at {TOTAL} with {sum(range(TOTAL))}\n" in site.log("tr-0-2")
    assert site.commits()[-1][1] == TOTAL
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (1, 0, 2)
    assert (status["checkpoint"]["step"], status["progress"]["step"]) == (TOTAL, TOTAL)


def test_what_a_drained_program_saves_on_sigterm_is_stored_after_its_end(site: Site) -> None:
    """No step is lost: the sidecar stores it when the program has ended, and `go` waits for that."""
    first = started(site, SIGTERM_SAVES="yes")
    drained = site.node_of("tr-0-1")
    site.lab.node_drain(drained)
    step, total = begun(site)
    assert (step, total) == (newest(site, first), sum(range(step)))
    assert step % 5 != 0 or step > 5, "it was saved because of the signal"
    assert site.node_of("tr-0-2") != drained
    finished(site)


def test_a_program_that_ignores_sigterm_uses_the_grace_and_all_ends_within_the_window(site: Site) -> None:
    """As python does that is process 1. What it saves in the grace is stored too."""
    first = started(site)
    with futures.ThreadPoolExecutor(1) as aside:
        words = ("logs", "--follow", "tr-0-1", "--container", "spottrain-watch")
        log = aside.submit(site.lab.kubectl, "--namespace", site.namespace, *words)
        asked = time.time()
        site.job.evict("tr-0-1")
        site.job.wait("its end", lambda: "tr-0-1" not in site.job.pods(), PATIENCE)
        took = time.time() - asked
        told = re.search(r"event=stopping time=(\S+)", log.result())
    assert told, "the sidecar was killed without a word"
    assert GRACE - 1 <= float(told[1]) - asked <= GRACE + KUBELET_ROUNDS
    assert GRACE - 1 <= took <= GRACE + SIDECAR_LEAST + KUBELET_ROUNDS
    step, total = begun(site)
    assert (step, total) == (newest(site, first), sum(range(step)))
    finished(site)


def test_a_killed_node_costs_a_program_what_came_after_its_last_stored_checkpoint(site: Site) -> None:
    first = started(site)
    site.lab.node_kill(site.node_of("tr-0-1"))
    step, total = begun(site)
    assert (step, total) == (newest(site, first), sum(range(step)))
    finished(site)
