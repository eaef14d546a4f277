"""`spottrain verify-resume -- python train.py …`: whether a broken run ends where an unbroken one does.

The program runs once to its end, and once through kills, in turn without notice (SIGKILL) and with one
(SIGTERM), each some time after a save, so that there is work to do again. Then both are compared: what the
last life to do a step printed of it, and the files of the last checkpoint, bit by bit. Data that is read
twice or left out, a generator or a scheduler that was not restored show in either.
"""

import math
import random
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import manifest
from spottrain.cli import lives

LINE = r"\bstep[ =:]+(\d+)"
IGNORE = r"\b(time|seconds|elapsed)\S*[ =:]+\S+"
_OURS = re.compile(r"\bevent=[a-z-]+ .*\btime=\d")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SHOWN = 3

Say = Callable[[str], None]
Lines = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Wish:
    """How it is done: `pattern` finds the step in a line, and what `ignored` matches is not compared.

    `tolerance`: relative, for numbers in lines; None compares them as text and states bit by bit.
    """

    kills: int
    seed: int
    pattern: re.Pattern[str]
    ignored: re.Pattern[str]
    tolerance: float | None = None


def run(make: Callable[[str], lives.Program], wish: Wish, say: Say) -> list[str]:
    """Run it both ways; the differences, in sentences. `make` gives the program a folder of that name."""
    unbroken, broken = make("unbroken"), make("broken")
    with lives.Life(unbroken, 1) as life:
        life.finish()
    _require_success(life)
    last = unbroken.last()
    if last is None:
        raise errors.CheckpointError("the unbroken run has saved nothing: is its last step saved?")
    say(f"unbroken: finished, last checkpoint after step {last.step}")
    expected, found = _lines(life.output, wish), _break(broken, wish, say)
    problems = _compared_lines(expected, found, wish)
    if not expected:
        say(f"no line names a step (--line {wish.pattern.pattern!r}): only states are compared")
    else:
        say(f"steps: {len(expected)} compared")
    return [*problems, *_compared_states(last, broken.last(), wish)]


def _break(program: lives.Program, wish: Wish, say: Say) -> Lines:
    """The lines of the last life to do each step."""
    chance = random.Random(wish.seed)  # noqa: S311 - so that a seed tells the story again
    found: dict[int, list[str]] = {}
    for number in range(1, wish.kills + 1):
        how = (signal.SIGKILL, signal.SIGTERM)[(number - 1) % 2]
        with lives.Life(program, number) as life:
            if not life.save_awaited(chance.uniform(0.2, 1.0) * program.interval):
                _require_success(life)
                advice = "give the program more steps, or fewer --kills"
                raise errors.ConfigError(f"life {number} was done before it could be ended: {advice}")
            life.end(how)
        if how is signal.SIGTERM and not life.preempted:
            raise errors.CheckpointError(
                f"life {number} was told to stop and exited with {life.exit}:\n{life.tail()}"
            )
        saved = life.saved[-1].step
        say(f"life {number}: ended by {how.name}, last checkpoint after step {saved}")
        found.update(_lines(life.output, wish))
    with lives.Life(program, wish.kills + 1) as life:
        life.finish()
    _require_success(life)
    say(f"life {life.number}: finished")
    return {**found, **_lines(life.output, wish)}


def _require_success(life: lives.Life) -> None:
    if life.exit != 0:
        raise errors.CheckpointError(f"life {life.number} exited with {life.exit}:\n{life.tail()}")


def _lines(output: str, wish: Wish) -> dict[int, list[str]]:
    """What was printed of each step, sorted: ranks print in no order. The library's own lines don't count."""
    found: dict[int, list[str]] = {}
    for line in output.splitlines():
        step = wish.pattern.search(line)
        if step is not None and not _OURS.search(line):
            text = " ".join(wish.ignored.sub("", line).split())
            found.setdefault(int(step[1]), []).append(text)
    return {step: sorted(texts) for step, texts in found.items()}


def _compared_lines(expected: Lines, found: Lines, wish: Wish) -> list[str]:
    steps = sorted(expected.keys() | found.keys())
    unlike = [step for step in steps if not _alike(expected.get(step, ()), found.get(step, ()), wish)]
    texts = [
        f"step {step}: unbroken {_shown(expected.get(step))}; broken {_shown(found.get(step))}"
        for step in unlike[:_SHOWN]
    ]
    more = len(unlike) - len(texts)
    return [*texts, f"… and {more} steps more"] if more > 0 else texts


def _shown(lines: Sequence[str] | None) -> str:
    return " | ".join(lines) if lines else "nothing"


def _alike(expected: Sequence[str], found: Sequence[str], wish: Wish) -> bool:
    if wish.tolerance is None or len(expected) != len(found):
        return list(expected) == list(found)
    return all(_close(one, other, wish.tolerance) for one, other in zip(expected, found, strict=True))


def _close(one: str, other: str, tolerance: float) -> bool:
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
    alike = all(math.isclose(float(a), float(b), rel_tol=tolerance) for a, b in numbers)
    return alike and _NUMBER.sub("#", one) == _NUMBER.sub("#", other)


def _compared_states(expected: manifest.Commit, found: manifest.Commit | None, wish: Wish) -> list[str]:
    if found is None or found.step != expected.step:
        where = "none" if found is None else f"step {found.step}"
        return [f"the last checkpoint is that of step {expected.step} unbroken, and {where} broken"]
    mine = {file.name: file.sha256 for file in expected.files}
    theirs = {file.name: file.sha256 for file in found.files}
    if wish.tolerance is not None:
        return [] if mine.keys() == theirs.keys() else ["the last checkpoints hold other files"]
    unlike = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    return [f"state after step {expected.step}: {name} differs" for name in unlike]


def folder_of(parent: Path, name: str) -> Path:
    """A new folder for the traces of one run."""
    made = parent / name
    made.mkdir()
    return made
