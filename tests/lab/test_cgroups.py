"""Which hierarchies of control groups a host has."""

import shutil
from concurrent import futures
from pathlib import Path

from lab import cgroups


def test_v1_host_has_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    """Those that are mounted, and nothing that is not a controller."""
    for name in ("memory", "cpuset", "unified"):
        (tmp_path / name).mkdir()
    assert cgroups.hierarchies(tmp_path) == [tmp_path / "cpuset", tmp_path / "memory"]


def test_v2_host_has_one_hierarchy(tmp_path: Path) -> None:
    """The root itself."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    assert cgroups.hierarchies(tmp_path) == [tmp_path]


def test_groups_that_come_and_go_meanwhile_hide_no_process_of_the_others(tmp_path: Path) -> None:
    """A pod's groups are removed while a chaos run looks for processes that were left behind."""
    (tmp_path / "cgroup.controllers").write_text("")
    (tmp_path / "lab" / "node").mkdir(parents=True)
    (tmp_path / "lab" / "node" / "cgroup.procs").write_text("7\n8\n")

    def pods() -> None:
        for number in range(1000):
            group = tmp_path / "lab" / "node" / f"pod-{number}" / "container"
            group.mkdir(parents=True)
            (group / "cgroup.procs").write_text("9\n")
            shutil.rmtree(group.parent)

    with futures.ThreadPoolExecutor() as aside:
        coming_and_going = aside.submit(pods)
        while not coming_and_going.done():
            assert cgroups.processes("lab", tmp_path) >= {7, 8}
        coming_and_going.result()
    assert cgroups.processes("lab", tmp_path) == {7, 8}
    assert cgroups.processes("another", tmp_path) == set()
