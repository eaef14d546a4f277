"""amazon-ec2-metadata-mock, the public program, as a metadata service that can be told what to say."""

import datetime as dt
import socket
import subprocess

from lab import build, clock

NEVER = "2100-01-01T00:00:00Z"


class Ec2Mock:
    """It can't be told anything while it runs, so it begins anew each time; its tokens are void then."""

    provider, cause, names_deadline = "aws", "SpotTermination", True

    def __init__(self) -> None:
        self._program = build.build_one("ec2-metadata-mock")
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def quiet(self) -> None:
        self._start(NEVER, NEVER, [])

    def give_notice(self, deadline: dt.datetime) -> None:
        past = "2020-01-01T00:00:00Z"
        self._start(past, NEVER, ["--action", "terminate", "--time", f"{deadline:%Y-%m-%dT%H:%M:%SZ}"])

    def recommend(self, moment: dt.datetime) -> None:
        """A rebalance recommendation alone."""
        past = "2020-01-01T00:00:00Z"
        self._start(NEVER, past, ["--rebalance-rec-time", f"{moment:%Y-%m-%dT%H:%M:%SZ}"])

    def _start(self, notice: str, rebalance: str, flags: list[str]) -> None:
        self.stop()
        command = [self._program, "spot", "--imdsv2", "--hostname", "127.0.0.1", "--port", str(self._port)]
        command += ["--mock-trigger-time", notice, "--rebalance-trigger-time", rebalance, *flags]
        self._process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        clock.wait_for("the mock's port", self._answers, seconds=10)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(5)
            self._process = None
