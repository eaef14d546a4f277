"""Running a real server for the length of a test run."""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


@contextmanager
def running(command: Sequence[object], url: str, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run the server, whose address is `url`, while the block lasts."""
    with subprocess.Popen(
        [str(word) for word in command],
        env={**os.environ, **(env or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            _wait_until_it_answers(url)
            yield
        finally:
            server.terminate()
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()


def _wait_until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError as refused:
            refused.close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
