"""One life of a small run that saves all the time, until it is killed; forked, so that it begins at once."""

import functools
import itertools
import logging
import os
import random
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import spottrain
from spottrain.checkpoint import location
from spottrain.train import log

KEEP = 2
_SMALL, _LARGE = 100_000, 9_000_000
_STEP_SECONDS = 0.001

Tell = Callable[[str], None]
Files = dict[str, bytes]


@dataclass(frozen=True)
class Story:
    """Lives that follow each other at one place. `large`: a file that S3 takes in several parts."""

    place: location.Location
    seed: str
    large: bool

    def state(self, step: int) -> Files:
        """The state after a step, by file: each byte follows from story and step."""
        drawn = random.Random(f"{self.seed}/{step}")  # noqa: S311 - to be made again, not to be secret
        size = _LARGE if self.large else _SMALL
        return {"model": drawn.randbytes(size), "deep/rank": drawn.randbytes(1000), "empty": b""}


def contents(folder: Path) -> Files:
    """The files of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """The reverse."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


class _Words(logging.Handler):
    """Passes on what the library says of claims and commits."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if claimed := re.search(r"event=(?:restored|fresh) .*\battempt_id=(\w+)", said):
            self._tell(f"claimed {claimed[1]}")
        if committed := re.search(r"event=saved step=(\d+)", said):
            self._tell(f"committed {committed[1]}")


def live(story: Story, tell: Tell) -> None:
    """Restore, then save after each step for which there is time, until killed.

    Told: `claimed <attempt id>`; `restored <step>`, -1 for a fresh start, with ` torn` behind it when a byte
    is not what it was; `saving <step>`; `committed <step>`.
    """
    logging.getLogger(log.NAME).addHandler(_Words(tell))
    found: Files = {}
    place = story.place
    with spottrain.session(
        uri=place.uri, endpoint=place.endpoint, region=place.region, keep=KEEP, interval=0
    ) as run:
        first = run.restore(lambda folder: found.update(contents(folder)))
        whole = found == (story.state(first - 1) if first else {})
        tell(f"restored {first - 1}{'' if whole else ' torn'}")
        for step in itertools.count(first):
            time.sleep(_STEP_SECONDS)
            if run.should_save(step):
                tell(f"saving {step}")
                run.save(step, functools.partial(write, files=story.state(step)))


def begin(story: Story, complaints: Path) -> tuple[int, int]:
    """Fork a life; its process id, and a pipe with what it tells, a line each."""
    read, told = os.pipe()
    pid = os.fork()
    if pid:
        os.close(told)
        return pid, read
    try:
        os.close(read)
        live(story, lambda line: _say(told, line))
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        complaints.write_text(traceback.format_exc())
    finally:
        sys.stdout.flush()
        os._exit(1)


def _say(pipe: int, line: str) -> None:
    os.write(pipe, f"{line}\n".encode())
