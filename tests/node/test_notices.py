"""Clouds tell real machines that they are taken, the chart's agents hear it, and the machines are taken."""

import functools
import re
import urllib.request
from collections.abc import Iterator
from concurrent import futures

import pytest

from lab import torch_env
from lab.cluster import Lab
from tests.node.conftest import PATIENCE, Site
from tests.node.test_reclaims import resumed_at

CLOUDS = {"spot-1": "aws", "spot-2": "gcp", "spot-3": "azure"}
CAUSES = {"aws": "SpotTermination", "gcp": "Preempted"}
WINDOWS = {"aws": 30.0, "gcp": 15.0}
"""Seconds; on GCP nobody tells them, and the agent takes 15."""
RANKS = range(3)


@pytest.fixture
def listening(site: Site) -> Iterator[Site]:
    """Each spot node is one of another cloud's and has an agent; afterwards new machines of no cloud."""
    for node, cloud in CLOUDS.items():
        site.lab.node_cloud(node, cloud)
    site.install("--set=agent.enabled=true")
    yield site
    site.install()
    site.lab.up()


@pytest.mark.timeout(400)
def test_a_notice_for_one_rank_stops_all_at_one_step_and_the_gang_goes_on_elsewhere(listening: Site) -> None:
    """Twice, on two clouds: no step is lost, each notice is one reclaim, and its machine's end is none."""
    site, taken = listening, []
    site.job.applied(gang(site))
    site.job.wait_running(1, PATIENCE)
    for attempt, cloud in enumerate(WINDOWS, start=1):
        node = next(name for name, one in CLOUDS.items() if one == cloud)
        site.job.wait("steps of all", functools.partial(all_count, site, attempt), PATIENCE)
        with futures.ThreadPoolExecutor(len(RANKS)) as aside:
            logs = [aside.submit(follow, site, f"tr-{rank}-{attempt}") for rank in RANKS]
            notice = site.lab.notice(node, cloud, WINDOWS[cloud])
            ends = [log.result() for log in logs]
        taken.append(notice)
        found = metrics(site.lab, node)

        moments = [moment - notice.since for log in ends for moment in told(log)]
        assert moments
        assert all(0 <= moment <= 5 for moment in moments)
        (last,) = {steps(log)[-1] for log in ends}
        site.job.wait_running(attempt + 1, PATIENCE)
        first = site.job.wait("a restore", functools.partial(restored, site, attempt + 1), PATIENCE)
        assert resumed_at(first) == last + 1
        assert node not in {site.node_of(f"tr-{rank}-{attempt + 1}") for rank in RANKS}
        status = site.job.status()
        assert (status["reclaims"], status["failures"]) == (attempt, 0)
        assert (status["lastReclaim"]["cause"], status["lastReclaim"]["node"]) == ("Notice", node)
        assert re.search(rf'notices_total{{cause="{CAUSES[cloud]}".* 1.0$', found, re.MULTILINE)
        assert "spottrain_agent_pods_deleted_total 0.0" in found
    for notice in taken:
        notice.wait()
    assert [site.lab.node_alive(node) for node in CLOUDS] == [False, False, True]
    site.job.wait_running(len(taken) + 1, PATIENCE)
    status = site.job.status()
    assert (status["reclaims"], status["failures"], status["attempt"]) == (2, 0, 3)


def gang(site: Site) -> dict[str, object]:
    """Three ranks, each on a spot node of its own while there are three; one node can hold them all."""
    document = site.manifest("together.py", workers=len(RANKS), spot={"spread": "zone"})
    pod = document["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"karpenter.sh/capacity-type": "spot"}
    libraries = str(torch_env.ensure().resolve())
    pod["volumes"].append({"name": "torch", "hostPath": {"path": libraries, "type": "Directory"}})
    (container,) = pod["containers"]
    container["volumeMounts"].append({"name": "torch", "mountPath": libraries, "readOnly": True})
    container["env"] += [
        {"name": "PYTHONPATH", "value": libraries},
        {"name": "OMP_NUM_THREADS", "value": "1"},
    ]
    return document


def all_count(site: Site, attempt: int) -> bool:
    """Each rank has done a step in that attempt."""
    return all(steps(site.log(f"tr-{rank}-{attempt}")) for rank in RANKS)


def follow(site: Site, pod: str) -> str:
    """The whole log of a pod, when it has ended."""
    return site.lab.kubectl("--namespace", site.namespace, "logs", "--follow", pod)


def restored(site: Site, attempt: int) -> str:
    """The log of its worker 0, once that has restored."""
    log = site.log(f"tr-0-{attempt}")
    return log if "event=restored" in log else ""


def told(log: str) -> list[float]:
    """When SIGTERM reached the program, in Unix seconds; never, if the others' agreement ended it before."""
    return [float(moment) for moment in re.findall(r"^told time=(\S+)", log, re.MULTILINE)]


def steps(log: str) -> list[int]:
    return [int(step) for step in re.findall(r"^did step=(\d+)", log, re.MULTILINE)]


def metrics(lab: Lab, node: str) -> str:
    """Of the node's agent, on the node's own address."""
    index = [row["node"] for row in lab.status()].index(node)
    with urllib.request.urlopen(f"http://{lab.addresses.node(index)}:29581/metrics", timeout=5) as answer:
        return str(answer.read().decode())
