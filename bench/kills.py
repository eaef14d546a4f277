"""`python -m bench.kills`: processes are killed in the middle of saves and restores, and nothing is lost.

Each life goes on from what the one before left, and is ended by SIGKILL at a random moment of its restore or
of one of its saves. It must have restored, to the last byte, the newest step that was committed when it
looked. A JSON object with what was found is the last line; exit code 1 when something was lost.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import killed
from lab import clock
from spottrain.checkpoint import location, view

KILLS_PER_STORY = 10
LARGE_EVERY = 5
_PATIENCE = 20.0
# What a restore, and a save, are first taken to last; then it is measured.
_RESTORE_SECONDS, _SAVE_SECONDS = 0.2, 0.1
_SAVES = 4
RESTORE, SAVE, BETWEEN = "restore", "save", "between"


@dataclass
class Life:
    """A running life and what it has told so far."""

    pid: int
    pipe: int
    told: list[str] = field(default_factory=list)
    ended: bool = False
    awaited: bool = False
    """It was given all the time it may need to restore."""
    _rest: bytes = b""

    def hear(self, until: float, *, enough: int | None = None, word: str = "") -> None:
        """Listen until then; or until `word` was told `enough` times, or the process has ended."""
        while not self.ended and (enough is None or self.count(word) < enough):
            left = until - clock.now()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0]:
                return
            self._read()

    def restore(self, until: float) -> None:
        """Let it restore."""
        self.hear(until, enough=1, word="restored")
        self.awaited = True

    def count(self, word: str) -> int:
        """How often it has told that."""
        return sum(line.startswith(word) for line in self.told)

    def number(self, word: str) -> int | None:
        """The last number told behind that word."""
        found = [line.split()[1] for line in self.told if line.startswith(f"{word} ")]
        return int(found[-1]) if found else None

    def kill(self) -> None:
        """End it at once, and hear what it had still told."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while not self.ended:
            self._read()
        os.close(self.pipe)

    def _read(self) -> None:
        data = os.read(self.pipe, 65536)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.told += [line.decode() for line in lines]

    @property
    def doing(self) -> str:
        """What it was at when it was last heard of."""
        if not self.count("restored"):
            return RESTORE
        return SAVE if self.told[-1].startswith("saving") else BETWEEN


@dataclass
class Fuzz:
    """Kills below a URI; `losses` are sentences, `while_at` counts kills by what they hit."""

    base: location.Location
    seed: int
    scratch: Path
    losses: list[str] = field(default_factory=list)
    while_at: Counter[str] = field(default_factory=Counter)

    def run(self, kills: int) -> None:
        """That many."""
        drawn = random.Random(self.seed)  # noqa: S311 - moments, to be drawn again
        for number, first in enumerate(range(0, kills, KILLS_PER_STORY)):
            self._tell_story(number, min(KILLS_PER_STORY, kills - first), drawn)

    def _tell_story(self, number: int, kills: int, drawn: random.Random) -> None:
        base = self.base
        place = location.Location(f"{base.uri}/story-{number}", base.endpoint, base.region)
        story = killed.Story(place, f"{self.seed}/{number}", large=number % LARGE_EVERY == LARGE_EVERY - 1)
        teller = _Teller(story, self.scratch, drawn)
        for kill in range(kills):
            life = teller.life()
            self.while_at[life.doing] += 1
            self.losses += [f"story {number}, kill {kill}: {problem}" for problem in teller.judge(life)]
        # The last kill shows only in the life after it.
        life = teller.last_life()
        self.losses += [f"story {number}, at its end: {problem}" for problem in teller.judge(life)]
        store = location.open_store(place)
        store.delete([entry.key for entry in store.list("")])


class _Teller:
    """The lives of one story."""

    def __init__(self, story: killed.Story, scratch: Path, drawn: random.Random) -> None:
        self._story = story
        self._scratch = scratch
        self._drawn = drawn
        self._store = location.open_store(story.place)
        self._complaints = scratch / "complaints"
        self._before = -1
        self._acknowledged = -1
        self._restores, self._saves = _RESTORE_SECONDS, _SAVE_SECONDS

    def life(self) -> Life:
        """One life, killed while it restores or while it saves."""
        life, begun = self._begin()
        if self._drawn.random() < 0.4:
            life.hear(begun + self._drawn.uniform(0, self._restores))
        else:
            life.restore(begun + _PATIENCE)
            self._restores = clock.now() - begun
            life.hear(begun + _PATIENCE, enough=self._drawn.randint(1, _SAVES), word="saving")
            saving, done = clock.now(), life.count("committed")
            life.hear(saving + self._drawn.uniform(0, self._saves), enough=done + 1, word="committed")
            if life.count("committed") > done:
                self._saves = 2 * (clock.now() - saving)
        return self._end(life)

    def last_life(self) -> Life:
        """One that is left to restore."""
        life, begun = self._begin()
        life.restore(begun + _PATIENCE)
        return self._end(life)

    def _begin(self) -> tuple[Life, float]:
        self._complaints.unlink(missing_ok=True)
        self._before = self._newest()
        return Life(*killed.begin(self._story, self._complaints)), clock.now()

    def _end(self, life: Life) -> Life:
        life.kill()
        for left in self._scratch.glob("spottrain-*"):
            shutil.rmtree(left, ignore_errors=True)
        return life

    def judge(self, life: Life) -> list[str]:
        """What was lost, or torn, or went wrong; nothing as it should be."""
        if self._complaints.exists():
            return [self._complaints.read_text()]
        known = max(self._before, self._acknowledged)
        restored = life.number("restored")
        self._acknowledged = max(known, life.number("committed") or -1)
        if restored is None:
            return [f"nothing was restored within {_PATIENCE:g} s"] if life.awaited else []
        found = []
        if any(line.endswith(" torn") for line in life.told):
            found.append(f"what was restored of step {restored} is not what was saved")
        # A commit on its way when its writer was killed may have arrived just then.
        own = [line.split()[1] for line in life.told if line.startswith("claimed ")]
        newest = self._newest(but=own)
        if not known <= restored <= newest:
            found.append(f"restored step {restored}; {known} was committed, and {newest} is the newest")
        return found

    def _newest(self, but: Sequence[str] = ()) -> int:
        """The highest step that has a COMMIT, `but` for those of these attempts; -1 when there is none."""
        committed = view.look(self._store).committed
        return max((one.step for one in committed if one.attempt_id not in but), default=-1)


def main(argv: Sequence[str] | None = None) -> int:
    """0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m bench.kills", description=__doc__)
    parser.add_argument("--uri", required=True, help="an existing bucket or directory, s3://… or file:///…")
    parser.add_argument("--endpoint", default="", help="of a store that is not AWS")
    parser.add_argument("--kills", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    options = parser.parse_args(argv)
    begun = clock.now()
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        os.environ["SPOTTRAIN_SCRATCH"] = scratch
        fuzz = Fuzz(
            location.Location(options.uri, options.endpoint, "us-east-1"), options.seed, Path(scratch)
        )
        fuzz.run(options.kills)
    result = {
        "rounds": options.kills,
        "losses": fuzz.losses,
        "killed_while": fuzz.while_at,
        "seconds": round(clock.now() - begun, 1),
    }
    print(json.dumps(result))
    return 1 if fuzz.losses else 0


if __name__ == "__main__":
    sys.exit(main())
