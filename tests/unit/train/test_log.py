import subprocess
import sys

PROGRAM = """
import logging, sys
if sys.argv[1] == "configured":
    logging.basicConfig(level=logging.WARNING, format="[%(levelname)s] %(message)s")
from spottrain.train.log import Log

class Clock:
    def unix(self):
        return 12.3456

Log(Clock()).info("saved", "saved step 7 in 0.25 s", step=7, seconds=0.25, commit="a b", nothing="")
"""


def output(mode: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True)
    return done.stderr


def test_a_sentence_then_words_for_programs():
    expected = "saved step 7 in 0.25 s event=saved step=7 seconds=0.250 commit=a_b nothing=- time=12.346\n"
    assert output("plain") == f"spottrain: {expected}"


def test_a_program_that_has_configured_logging_gets_it_there_once():
    assert output("configured").startswith("[INFO] saved step 7 ")
    assert output("configured").count("saved step 7") == 1
