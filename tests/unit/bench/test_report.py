"""What a benchmark prints and answers when a part of it fails."""

import json
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


@pytest.mark.parametrize(("value", "met"), [(-0.11, False), (-0.1, True), (0.1, True), (0.11, False)])
def test_a_bar_with_two_ends_is_met_between_them(value: float, met: bool) -> None:
    assert Bar(0.1, low=-0.1).met(value) is met


def test_bars_are_shown_as_they_are_meant(tmp_path: Path) -> None:
    bars = {"a": Bar(2.0), "b": Bar(0.15, least=True), "c": Bar(0.9, low=0.7)}
    report = Report("b", bars, folder=tmp_path)
    for name in bars:
        report.figure(name, 0.8)
    assert [line.split()[2:] for line in report.table().splitlines()[1:4]] == [
        ["<=", "2.00", "met"],
        [">=", "0.15", "met"],
        ["0.70", "to", "0.90", "met"],
    ]
    assert json.loads((tmp_path / "b.json").read_text())["bars"] == {"a": 2.0, "b": 0.15, "c": [0.7, 0.9]}


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
