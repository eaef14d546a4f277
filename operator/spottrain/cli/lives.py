"""A training program through one life after another, each with its checkpoints in one directory."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from spottrain import errors
from spottrain.checkpoint import files, layout, manifest, view

_POLL_SECONDS = 0.02
_PREEMPTED = 75


@dataclass(frozen=True)
class Program:
    """What is run, where its lives leave their traces, and how long one may take in seconds."""

    command: Sequence[str]
    folder: Path
    env: Mapping[str, str]
    interval: float
    limit: float

    @property
    def store(self) -> files.FilesStore:
        """Where its checkpoints lie."""
        return files.FilesStore(self.folder / "checkpoints")

    def log(self, number: int) -> Path:
        """Where the output of life `number` goes."""
        return self.folder / f"life-{number}.log"

    def environment(self, number: int) -> dict[str, str]:
        """As the operator sets it, so that it counts before the program's own arguments."""
        said = self.folder / f"life-{number}.said"
        said.touch()
        return {
            **self.env,
            "SPOTTRAIN_JOB": "verify-resume",
            "SPOTTRAIN_JOB_UID": self.folder.name,
            "SPOTTRAIN_ATTEMPT": str(number),
            "SPOTTRAIN_ATTEMPT_ID": f"{number:04x}",
            "SPOTTRAIN_CHECKPOINT_URI": self.store.uri,
            "SPOTTRAIN_CHECKPOINT_INTERVAL": f"{self.interval:g}",
            "SPOTTRAIN_CHECKPOINT_KEEP": "1000000",
            "SPOTTRAIN_TERMINATION_LOG": str(said),
            "PYTHONUNBUFFERED": "1",
        }

    def last(self) -> manifest.Commit | None:
        """The sound checkpoint of the highest step."""
        seen = view.look(self.store)
        found = (view.inspect(self.store, seen, one) for one in sorted(seen.committed, reverse=True))
        return next((one for one in found if isinstance(one, manifest.Commit)), None)


@dataclass
class Life:
    """One run of the program: `exit` is its code, below 0 for a signal, once it has ended."""

    program: Program
    number: int
    exit: int | None = None
    _process: "subprocess.Popen[bytes]" = field(init=False, repr=False)
    _deadline: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.program.limit
        with self.program.log(self.number).open("wb") as out:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self.program.command,
                    env=self.program.environment(self.number),
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise errors.ConfigError(f"{self.program.command[0]}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @property
    def output(self) -> str:
        """All that it has printed."""
        return self.program.log(self.number).read_text(errors="replace")

    @property
    def saved(self) -> list[layout.StepDir]:
        """What it has committed, by step."""
        committed = view.look(self.program.store).committed
        return sorted(one for one in committed if one.attempt_id == f"{self.number:04x}")

    def save_awaited(self, pause: float) -> bool:
        """Wait for its first commit, then `pause` seconds; False when it ended before that."""
        while not self.saved:
            if not self._alive_for(_POLL_SECONDS):
                return False
        return self._alive_for(pause)

    def end(self, number: signal.Signals) -> None:
        """Send the signal (SIGKILL to all of its processes) and wait until it has ended."""
        if number is signal.SIGKILL:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
        self.finish()

    def finish(self) -> None:
        """Wait until it has ended; whatever it leaves running ends too."""
        while self._alive_for(1.0):
            continue

    def clear(self) -> None:
        """Nothing of it stays behind, whatever ends us."""
        if self.exit is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.exit = self._process.wait()

    @property
    def preempted(self) -> bool:
        """It stopped because it was told to, by its own word: torchrun turns the exit code into 1."""
        said = (self.program.folder / f"life-{self.number}.said").read_text()
        return self.exit == _PREEMPTED or '"preempted"' in said

    def _alive_for(self, seconds: float) -> bool:
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if time.monotonic() < self._deadline:
                return True
            self.clear()
            text = f"it has not ended within {self.program.limit:g} s (--limit)"
            raise errors.ConfigError(f"{text}; its last lines:\n{self.tail()}") from None
        self.clear()  # what it left running
        self.exit = code
        return False

    def tail(self, lines: int = 15) -> str:
        """The end of its output."""
        return "\n".join(self.output.splitlines()[-lines:])
