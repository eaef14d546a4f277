"""The host's settings are raised for labs and put back after the last one."""

from pathlib import Path

import pytest

from lab import kernel


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A folder laid out like /proc/sys, with Linux' defaults but for one value that is high already."""
    for name, value in zip(kernel.WANTED, (0, 128, 9_000_000), strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    return tmp_path


def values(proc: Path) -> list[int]:
    """In the order of WANTED."""
    return [int((proc / name).read_text()) for name in kernel.WANTED]


def test_low_settings_are_raised_and_high_ones_left(proc: Path) -> None:
    """A machine set up for more keeps that."""
    kernel.raise_limits(proc / "before.json", proc)
    assert values(proc) == [1, 4096, 9_000_000]


def test_settings_are_put_back_as_they_were_before_the_first_lab(proc: Path) -> None:
    """Not as the second lab found them."""
    for _ in ("first", "second"):
        kernel.raise_limits(proc / "before.json", proc)
    kernel.restore_limits(proc / "before.json", proc)
    assert values(proc) == [0, 128, 9_000_000]


def test_nothing_is_put_back_when_nothing_was_changed(proc: Path) -> None:
    """`down` of a lab that never was."""
    kernel.restore_limits(proc / "before.json", proc)
    assert values(proc) == [0, 128, 9_000_000]
