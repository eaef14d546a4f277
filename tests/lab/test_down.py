"""A second lab beside the shared one: it comes, is killed, comes again, goes, and leaves nothing."""

import json
from pathlib import Path

import pytest

from lab import cgroups, clock, process, shell
from lab.cluster import Lab
from lab.config import Config, NodeSpec
from lab.errors import LabError

pytestmark = [pytest.mark.node, pytest.mark.slow]

TWO = Config(nodes=(NodeSpec("od-1", "on-demand", "zone-a"), NodeSpec("spot-1", "spot", "zone-b")))


def snapshot(lab: Lab) -> dict[str, list[str]]:
    """What this machine's kernel holds that a lab could leave behind; what other labs have is left out."""
    routes = json.loads(shell.run("ip", "-j", "route", "show", "table", "all"))
    groups = {path.name for top in cgroups.hierarchies() for path in top.glob("*/")}
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    lists = {
        "links": [path.name for path in Path("/sys/class/net").iterdir()],
        "namespaces": [path.name for path in Path("/run/netns").glob("*")],
        "routes": [f"{route.get('dst')} {route.get('dev')}" for route in routes],
        "firewall": (shell.run("iptables-save") + shell.run("ip6tables-save")).splitlines(),
        "groups": list(groups),
        "mounts": [mount for mount in mounts if "buildah" not in mount],
        "processes": of_lab(lab),
    }
    own = lab.addresses.bridge
    return {
        name: sorted(entry for entry in entries if own in entry or "stlab" not in entry)
        for name, entries in lists.items()
    }


def differences(lab: Lab, before: dict[str, list[str]]) -> list[str]:
    """In which respects the machine is not as it was before."""
    now = snapshot(lab)
    return sorted(name for name in before if now[name] != before[name])


def of_lab(lab: Lab) -> list[str]:
    """Command lines that speak of the lab's folder or namespaces."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_text(errors="replace").replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(lab.state.folder) in line or f"{lab.addresses.bridge}-" in line:
            found.append(line)
    return found


def test_second_lab_comes_survives_a_kill_and_leaves_nothing(lab: Lab) -> None:
    """Beside the shared lab, which goes on running."""
    second = Lab("throwaway")
    second.down()
    before = snapshot(second)
    try:
        assert "2 nodes Ready" in second.up(TWO)
        assert differences(second, before) == [
            "groups",
            "links",
            "mounts",
            "namespaces",
            "processes",
            "routes",
        ]
        with pytest.raises(LabError, match="runs with another configuration"):
            second.up(Config())
        kill_everything(second)
        assert second.running() is False
        assert "2 nodes Ready" in second.up(TWO)
        assert [row["ready"] for row in second.status()] == [True, True]
        assert second.config() == TWO
    finally:
        second.down()
    assert differences(second, before) == []
    assert second.config() is None
    second.remove()
    assert lab.running() is True


def kill_everything(lab: Lab) -> None:
    """As when the machine's owner does kill -9 on all of it: no clean-up of any kind runs."""
    doomed = [one for one in lab.state.pids.iterdir() if one.name != "node-spot-1"]
    for pid_file in doomed:
        if (pid := process.find(pid_file)) is not None:
            process.kill(pid)
    clock.wait_for("all of it dead", lambda: not any(map(process.find, doomed)), seconds=10)
    # One machine lives on, and nothing says so.
    (lab.state.pids / "node-spot-1").unlink()


@pytest.mark.timeout(1200)
def test_ten_ups_and_downs_in_a_row_leave_nothing() -> None:
    """With a machine each time."""
    again = Lab("again")
    again.remove()
    before = snapshot(again)
    try:
        for _ in range(10):
            assert "2 nodes Ready" in again.up(TWO)
            again.down()
            assert differences(again, before) == []
    finally:
        again.remove()


def test_three_labs_run_side_by_side() -> None:
    """Each with its own API server and objects, and its own slot."""
    labs = [Lab(name) for name in ("side-a", "side-b", "side-c")]
    try:
        for one in labs:
            one.up(Config(nodes=()))
            one.kubectl("create", "namespace", f"of-{one.name}")
        for one in labs:
            found = one.kubectl("get", "namespaces", "-o", "name").split()
            assert [name for name in found if "/of-" in name] == [f"namespace/of-{one.name}"]
        assert len({one.addresses.slot for one in labs}) == 3
    finally:
        for one in labs:
            one.remove()
