"""What `run.track` restores: everything that decides what the next step does."""

import re
from pathlib import Path

from tests.train import processes


def drawn(program: processes.Program) -> list[str]:
    return re.findall(r"^drawn .*$", program.output, re.MULTILINE)


def test_a_resumed_run_draws_and_learns_as_if_nothing_had_happened(
    torch_bench: processes.Bench, tmp_path: Path
):
    env: dict[str, str | int] = {"SPOTTRAIN_CHECKPOINT_INTERVAL": 3600}
    unbroken = torch_bench.start(
        "generators.py", 10, -1, SPOTTRAIN_CHECKPOINT_URI=(tmp_path / "unbroken").as_uri(), **env
    )
    assert unbroken.wait(120) == 0
    env["SPOTTRAIN_CHECKPOINT_URI"] = (tmp_path / "ck").as_uri()
    first = torch_bench.start("generators.py", 10, 4, **env)
    assert first.wait(120) == 75
    second = torch_bench.start("generators.py", 10, -1, **env)
    assert second.wait(120) == 0
    assert len(drawn(unbroken)) == 10
    assert drawn(first) + drawn(second) == drawn(unbroken)
