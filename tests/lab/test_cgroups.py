"""Which hierarchies of control groups a host has."""

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
