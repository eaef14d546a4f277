"""From rounds to figures, and what the light workers write."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench import notice, rounds, warned
from lab import clock


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [([3.0], 0.99, 3.0), ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0), ([float(n) for n in range(200)], 0.99, 197.0)],
)
def test_a_percentile_is_one_of_the_values(values: list[float], share: float, found: float) -> None:
    assert notice.percentile(values[::-1], share) == found


def test_the_figures_are_over_all_clouds_and_the_control_stays_apart() -> None:
    seconds = {rounds.NOTICE: {"aws": [0.5, 3.0], "gcp": [0.2, 0.4]}, rounds.DELETE: {"kubelet": [0.1]}}
    found = notice.conclusions(seconds, {"agent_millicores_aws": 2.0, "agent_millicores_azure": 3.0})
    assert found == {
        "notices": 4,
        "sigterm_p50_seconds": 0.4,
        "sigterm_p99_seconds": 3.0,
        "sigterm_aws_p50_seconds": 0.5,
        "sigterm_aws_p99_seconds": 3.0,
        "sigterm_gcp_p50_seconds": 0.2,
        "sigterm_gcp_p99_seconds": 0.4,
        "delete_p50_seconds": 0.1,
        "delete_p99_seconds": 0.1,
        "agent_millicores": 3.0,
    }


def test_what_was_not_measured_has_no_figure() -> None:
    assert notice.conclusions({}, {}) == {}


@pytest.mark.parametrize("conduct", [warned.LEAVES, warned.STAYS])
def test_a_worker_writes_down_when_it_is_told_and_whether_it_lives_on(tmp_path: Path, conduct: str) -> None:
    program = warned.PROGRAM.replace("/words/", f"{tmp_path}/").replace("os.uname().nodename", "'w'")
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program, conduct]) as worker:
        try:
            words = tmp_path / "w"
            clock.wait_for("its readiness", lambda: "ready" in warned.said(words), seconds=10)
            worker.terminate()
            told = clock.wait_for("SIGTERM", lambda: warned.said(words).get("told"), seconds=10)
            if conduct == warned.LEAVES:
                assert worker.wait(10) == 75
            else:
                clock.wait_for(
                    "a sign of life", lambda: warned.said(words).get("alive", 0) > told, seconds=10
                )
            assert abs(told - clock.wall()) < 10
        finally:
            worker.kill()
