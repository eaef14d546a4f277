"""Runs that are broken off at random moments and begun again, until one comes to its end."""

import os
import random
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract import gateway
from tests.train import processes

LINE = re.compile(r"(?:^|(?<=rank=\d))step=(\d+) (.*?)(?: ?time=\S+)? rank=(\d)", re.MULTILINE)
"""What a program prints of a step; `time` is not compared. Two ranks may share a line."""

Start = Callable[[], processes.Program]


@dataclass
class Told:
    """What the last life to do a step printed of it, by rank and step; and the lives, in order."""

    lines: dict[tuple[int, int], str] = field(default_factory=dict)
    lives: list[processes.Program] = field(default_factory=list)

    def hear(self, program: processes.Program) -> None:
        self.lives.append(program)
        for step, text, rank in LINE.findall(program.output):
            self.lines[int(rank), int(step)] = text

    @property
    def last(self) -> processes.Program:
        return self.lives[-1]


def torchrun(
    bench: processes.Bench, script: Path, store: Path, *arguments: object, ranks: int = 2, **env: object
) -> processes.Program:
    """A program under torchrun, on one machine, its checkpoints in a directory; a save every second."""
    told = {
        "PET_NNODES": 1,
        "PET_NODE_RANK": 0,
        "PET_NPROC_PER_NODE": ranks,
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": gateway.free_port(),
        "PET_RDZV_ID": "x",
        "SPOTTRAIN_CHECKPOINT_URI": store.as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 1,
        **env,
    }
    command = [sys.executable, "-m", "torch.distributed.run", str(script), *map(str, arguments)]
    return bench.run(command, **told)


def ranks(program: processes.Program) -> list[int]:
    """The processes that torchrun has started."""
    return processes.children(program.pid)


def itself(program: processes.Program) -> list[int]:
    """The process of a program that is alone."""
    return [program.pid]


def through(
    start: Start,
    blows: Mapping[int, signal.Signals],
    draw: random.Random,
    victims: Callable[[processes.Program], Sequence[int]] = ranks,
) -> Told:
    """Life after life; in each of the first ones a process, drawn at random, is struck at about that step.

    Between the step and its blow lies a random part of a second.
    """
    told = Told()
    for step, blow in sorted(blows.items()):
        life = start()
        # It may have been saved past that step already.
        life.wait_for(rf"(?m)^step=({'|'.join(map(str, range(step, step + 20)))}) .*\n", seconds=120)
        life.pause(draw.uniform(0, 0.4))
        os.kill(draw.choice(victims(life)), blow)
        assert life.wait(60) != 0
        told.hear(life)
    life = start()
    assert life.wait(180) == 0, life.output
    told.hear(life)
    return told
