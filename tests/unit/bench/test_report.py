"""What a benchmark prints and answers when a part of it fails."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.report import Bar, Report, finish
from lab.errors import LabError


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return Report("b", {"seconds": Bar(2.0)}, folder=tmp_path)


def measuring(value: float, trouble: Exception | None = None) -> Callable[[Report], None]:
    def measure(report: Report) -> None:
        report.figure("seconds", value)
        if trouble is not None:
            raise trouble

    return measure


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (3.0, 1)])
def test_the_exit_code_says_whether_the_bars_are_met(report: Report, value: float, code: int) -> None:
    assert finish(report, measuring(value)) == code


def test_what_was_measured_before_a_trouble_is_printed(
    report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    code = finish(report, measuring(1.0, LabError("no disk")), LabError)
    said = capsys.readouterr()
    assert (code, said.err) == (1, "bench: no disk\n")
    assert "seconds" in said.out


def test_a_fault_of_the_benchmark_itself_is_no_trouble(report: Report) -> None:
    with pytest.raises(KeyError):
        finish(report, measuring(1.0, KeyError("x")), LabError)
