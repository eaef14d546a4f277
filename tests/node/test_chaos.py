"""Two minutes of random faults against jobs on real kubelets, in a lab of their own."""

from pathlib import Path

import pytest

from chaos import __main__


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_minutes_of_chaos_lose_no_work_and_leave_nothing_behind(tmp_path: Path) -> None:
    """See docs/chaos.md; what was seen is in the folder."""
    arguments = ["--minutes", "2", "--seed", "7", "--lab", "chaos-test", "--out", str(tmp_path / "chaos")]
    assert __main__.main(arguments) == 0
