"""Running other programs, with their error output kept for the message when they fail."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError

Word = str | Path | int


def words(argv: Sequence[Word]) -> list[str]:
    """The command line as the kernel wants it."""
    return [str(word) for word in argv]


def environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """This process's environment with `extra` on top."""
    return {**os.environ, **(extra or {})}


def run(
    *argv: Word,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    """Run to the end and return what it printed.

    Raises LabError with the command and its error output when it exits non-zero, is not
    installed, or has not ended after `timeout` seconds.
    """
    line = words(argv)
    try:
        done = subprocess.run(
            line,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=environment(env),
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{line[0]} is not installed (or {cwd} does not exist)") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(line)} has not ended after {timeout:g} s") from error
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise LabError(f"{' '.join(line)} exited {done.returncode}: {tail}")
    return done.stdout


def succeeds(*argv: Word, env: Mapping[str, str] | None = None, timeout: float | None = 30) -> bool:
    """Whether the program ran and exited 0; its output is dropped."""
    try:
        run(*argv, env=env, timeout=timeout)
    except LabError:
        return False
    return True
