"""Programs that the tests start, watch and kill."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from spottrain.checkpoint import files, layout, manifest, view
from tests.contract import gateway

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


class Program:
    """A running program; its output, both kinds together, is in a file."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self._log = log
        self.began = time.monotonic()
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def no_more_input(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()

    def wait_for(self, pattern: str, seconds: float = 40) -> re.Match[str]:
        """The first match in the output; an error with the output when there is none in time."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            ended = self._process.poll() is not None
            if (ended and not re.search(pattern, self.output)) or time.monotonic() > deadline:
                state = f"ended with {self._process.returncode}" if ended else "runs on"
                raise AssertionError(f"no {pattern!r} in {seconds} s, it {state}:\n{self.output}")
            time.sleep(0.02)
        return found

    def pause(self, seconds: float) -> None:
        """Let it run on for a while."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, seconds: float = 40) -> int:
        """The exit code; an error with the output when it doesn't end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end in {seconds} s:\n{self.output}") from None

    def end(self) -> None:
        """Whatever is left of it and its children, of which torchrun puts each into a group of its own."""
        for group in (*(children(self.pid) if self._process.poll() is None else ()), self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._process.wait(10)
        if self._process.stdin:
            self._process.stdin.close()

    def steps(self) -> list[int]:
        return [int(number) for number in re.findall(r"^step (\d+)", self.output, re.MULTILINE)]


def children(pid: int) -> list[int]:
    """The processes that this one has started, oldest first: of torchrun, the ranks."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Bench:
    """Starts programs with a common environment and ends them with the test."""

    def __init__(self, folder: Path, *extra_paths: Path) -> None:
        self.folder = folder
        self._started: list[Program] = []
        path = [str(ROOT / "operator"), *map(str, extra_paths)]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.env = {
            **kept,
            **gateway.KEYS,
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONPATH": ":".join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "SPOTTRAIN_SCRATCH": str(folder),
            "SPOTTRAIN_STORE_CONNECT_SECONDS": "2",
            "SPOTTRAIN_STORE_READ_SECONDS": "5",
            "SPOTTRAIN_STORE_TRIES": "2",
        }

    def start(self, name: str, *arguments: object, **env: object) -> Program:
        """Start a program of `programs/`; `env` in upper case is added to its environment."""
        command = [sys.executable, str(PROGRAMS / name), *(str(word) for word in arguments)]
        return self.run(command, **env)

    def run(self, command: Sequence[str], **env: object) -> Program:
        log = self.folder / f"{len(self._started)}.log"
        program = Program(command, {**self.env, **{k: str(v) for k, v in env.items()}}, log)
        self._started.append(program)
        return program

    def end(self) -> None:
        for program in self._started:
            program.end()


@contextmanager
def bench(folder: Path, *extra_paths: Path) -> Iterator[Bench]:
    made = Bench(folder, *extra_paths)
    try:
        yield made
    finally:
        made.end()


def wait_until_handled(program: Program) -> None:
    """Until the process catches SIGTERM, by its own /proc entry."""
    deadline = time.monotonic() + 20
    bit = 1 << (signal.SIGTERM - 1)
    while time.monotonic() < deadline:
        caught = re.search(r"SigCgt:\s+(\w+)", Path(f"/proc/{program.pid}/status").read_text())
        if caught and int(caught[1], 16) & bit:
            return
        time.sleep(0.02)
    raise AssertionError(program.output)


def commits(folder: Path) -> list[manifest.Commit]:
    """The sound commits below a directory, by step."""
    store = files.FilesStore(folder)
    seen = view.look(store)
    found = [view.inspect(store, seen, directory) for directory in sorted(seen.committed)]
    broken = [one for one in found if isinstance(one, view.Skipped)]
    assert not broken, broken
    return [one for one in found if isinstance(one, manifest.Commit)]


def claims(folder: Path) -> list[int]:
    """The numbers claimed below a directory."""
    keys = (f"lineage/{path.name}" for path in (folder / "lineage").iterdir())
    return sorted(seq for key in keys if (seq := layout.parse_record_key(key)))
