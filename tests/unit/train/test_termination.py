import json
import os
from pathlib import Path

from spottrain.train import termination
from spottrain.train.termination import LastWord

WORD = LastWord("preempted", step=41, resumed_from=None, saved_step=40, save_seconds=0.12345, fits_grace=True)


def test_the_message_is_what_the_operator_reads():
    assert json.loads(WORD.encode()) == {
        "spottrain": 1,
        "state": "preempted",
        "step": 41,
        "resumedFrom": None,
        "savedStep": 40,
        "savedTime": None,
        "saveSeconds": 0.123,
        "blockedSeconds": None,
        "fitsGrace": True,
    }


def test_it_replaces_what_was_there(tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("x" * 1000)
    assert termination.write(path, WORD) is None
    assert path.read_bytes() == WORD.encode()


def test_a_file_that_is_not_there_is_not_made_and_harms_nothing(tmp_path: Path):
    path = tmp_path / "log"
    assert termination.write(path, WORD) == f"{path}: {os.strerror(2)}"
    assert not path.exists()
