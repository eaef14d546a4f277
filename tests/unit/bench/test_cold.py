"""What runs in the workers of the cold part, and what happens to their nodes."""

import subprocess
import sys
from pathlib import Path

from bench import cold, moments
from demo import lines


def test_the_workers_program_says_that_its_libraries_are_loaded_before_it_trains(tmp_path: Path) -> None:
    files = {**cold.program(), "digits.py": "def main() -> None:\n    print('step=0 loss=1 time=1')\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = subprocess.run(
        [sys.executable, tmp_path / "train.py"], capture_output=True, text=True, check=True, cwd="/"
    )
    told = lines.parse_all(said.stdout.splitlines())
    assert [one.event for one in told] == [moments.LOADED, lines.STEP]
    assert told[0].time > 0


def test_the_program_that_is_trained_is_that_of_the_examples() -> None:
    assert "with spottrain.session() as run" in cold.program()["digits.py"]


def test_each_node_has_a_zone_of_its_own_so_that_spreading_gives_each_rank_its_own_node() -> None:
    assert len({node.zone for node in cold.NODES}) == len(cold.NODES) == cold.WORKERS


def test_the_connections_of_the_last_machine_that_dies_are_not_closed() -> None:
    assert cold.deaths(2) == ("kill", "kill", "unplug")
