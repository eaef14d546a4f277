"""Saves and loads a large state with the library and without it, by turns. A JSON object is its only output.

Run by bench.checkpoint as a process that has torch. Seconds, round by round: `write` (torch.save to the
local disk; with the library, what `save` holds training up), `upload` (to the store, with the library until
it is committed) and `download` (with the library until the program's own loading begins, checksums compared).
"""

import argparse
import functools
import json
import logging
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import torch

import spottrain
from spottrain.train import log

_TENSOR = 64 << 20  # numbers, of four bytes each
_STEP_SECONDS = 0.05
_PATIENCE = 300.0
OURS, PLAIN = "spottrain", "plain"


class Commits(logging.Handler):
    """When the library said which step is committed, and that old ones are removed."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        if found := re.search(r"event=saved step=(\d+)", record.getMessage()):
            self.times[int(found[1])] = time.monotonic()


@dataclass
class Measured:
    """Seconds by case and by who did it."""

    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, case: str, who: str, seconds: float) -> None:
        """One round."""
        self.seconds.setdefault(case, {}).setdefault(who, []).append(seconds)

    def timed(self, case: str, who: str, act: Callable[[], object]) -> None:
        """Do it, and add how long it took."""
        begun = time.monotonic()
        act()
        self.add(case, who, time.monotonic() - begun)


class Model(torch.nn.Module):  # type: ignore[misc]
    """So many bytes of weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        count = max(size // 4 // _TENSOR, 1)
        self.weights = torch.nn.ParameterList(torch.rand(size // 4 // count) for _ in range(count))


@dataclass
class Play:
    """One model, one bucket, one folder for what is on its way."""

    model: Model
    bucket: str
    endpoint: str
    folder: Path
    measured: Measured

    @property
    def client(self) -> Any:
        """boto3 as it comes."""
        return boto3.session.Session().client("s3", endpoint_url=self.endpoint, region_name="us-east-1")

    def session(self) -> spottrain.Run:
        """The library as it comes, but that it keeps one checkpoint and saves when it is told."""
        return spottrain.session(
            uri=f"s3://{self.bucket}/run", endpoint=self.endpoint, region="us-east-1", keep=1, interval=86_400
        )

    def save(self, rounds: int) -> None:
        """Both ways, by turns: the first of a round is the second of the next."""
        commits = Commits()
        logging.getLogger(log.NAME).addHandler(commits)
        client = self.client
        with self.session() as run:
            run.track(model=self.model)
            run.restore()
            for number in range(rounds + 1):
                plain = functools.partial(self._save_plainly, client)
                ours = functools.partial(self._save, run, commits, number)
                for way in (plain, ours) if number % 2 else (ours, plain):
                    _settle()
                    way()
        for times in self.measured.seconds.values():
            for who in times:
                del times[who][0]  # the first has the machine find the memory for the files

    def _save_plainly(self, client: Any) -> None:
        file = self.folder / "plain.pt"
        self.measured.timed("write", PLAIN, lambda: torch.save(self.model.state_dict(), file))
        self.measured.timed("upload", PLAIN, lambda: client.upload_file(str(file), self.bucket, "plain.pt"))
        file.unlink()

    def _save(self, run: spottrain.Run, commits: Commits, step: int) -> None:
        self.measured.timed("write", OURS, lambda: run.save(step))
        saved = time.monotonic()
        while step not in commits.times:  # as training would, on its GPU
            time.sleep(_STEP_SECONDS)
            run.should_save(step)
            if time.monotonic() > saved + _PATIENCE:
                raise SystemExit(f"step {step} was not committed in {_PATIENCE:g} s")
        self.measured.add("upload", OURS, commits.times[step] - saved)

    def load(self, rounds: int) -> None:
        """Both ways, by turns, each with a client of its own, as a process that begins makes one.

        What loads the model from the local file is the same, and isn't measured.
        """
        file = self.folder / "plain.pt"
        for _ in range(rounds):
            self.measured.timed(
                "download", PLAIN, lambda: self.client.download_file(self.bucket, "plain.pt", str(file))
            )
            file.unlink()
            _settle()
            begun = time.monotonic()
            loads: list[float] = []
            with self.session() as run:
                run.restore(functools.partial(_note, loads))
            self.measured.add("download", OURS, loads[0] - begun)
            _settle()


def _note(times: list[float], _: Path) -> None:
    times.append(time.monotonic())


def _settle() -> None:
    """Nobody pays for what the one before left to be written, nor for its removals."""
    while any(thread.name == "spottrain-save" for thread in threading.enumerate()):
        time.sleep(0.01)
    os.sync()


def _peak() -> int:
    """MiB that were resident at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    options = parser.parse_args(argv)
    os.environ["SPOTTRAIN_SCRATCH"] = str(options.folder)
    torch.manual_seed(1)
    play = Play(Model(options.bytes), options.bucket, options.endpoint, options.folder, Measured())
    before = _peak()
    play.save(options.rounds)
    play.load(options.rounds)
    print(json.dumps({"seconds": play.measured.seconds, "mib_beyond_the_state": _peak() - before}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
