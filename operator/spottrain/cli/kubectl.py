"""The cluster, by the user's own kubectl: with its credentials, contexts and log-in helpers."""

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from spottrain import errors

Object = dict[str, Any]
LIMIT_SECONDS = 60.0

FLAGS = (
    "kubeconfig",
    "context",
    "cluster",
    "user",
    "server",
    "token",
    "as",
    "as-group",
    "as-uid",
    "certificate-authority",
    "tls-server-name",
)
"""Those of kubectl that say which cluster, and who asks; passed on as they are."""

_SHOWN = {"kubeconfig": "the file to use", "context": "of the kubeconfig (the current one)"}
_UNREACHABLE = (
    r"Unable to connect|connection to the server|connection refused|no such host|i/o timeout"
    r"|invalid configuration|does not exist|incomplete configuration|deadline exceeded"
)
_MEANINGS = {
    r"containerLogs": "the node does not answer, so its logs can't be had: is it gone?",
    r"doesn't have a resource type \"spottrainingjobs|could not find the requested resource": (
        "this cluster knows no SpotTrainingJob: install spottrain there (`helm install`, docs/install.md), "
        "or choose another one with --context"
    ),
    r"Forbidden": (
        "the cluster does not allow that: ask for the role `view` in the namespace (the chart adds "
        "SpotTrainingJobs to it), or name your own namespace with -n"
    ),
    r"Unauthorized|must be logged in|provide credentials": (
        "the cluster does not know you: log in as you do for kubectl, and try `kubectl auth whoami`"
    ),
    _UNREACHABLE: (
        "kubectl reaches no cluster: `kubectl cluster-info` must work first; see --context and --kubeconfig"
    ),
}
"""What its words mean, and what to do; the first that fits."""


def add_arguments(one: argparse.ArgumentParser) -> None:
    """The flags of kubectl itself, for `chosen`."""
    others = ", ".join(f"--{flag}" for flag in FLAGS if flag not in _SHOWN)
    group = one.add_argument_group("kubectl's own", f"also {others}")
    for flag in FLAGS:
        group.add_argument(f"--{flag}", help=_SHOWN.get(flag, argparse.SUPPRESS))


def chosen(given: argparse.Namespace) -> "Kubectl":
    """The kubectl to ask, with the flags that were given."""
    values = {flag: getattr(given, flag.replace("-", "_")) for flag in FLAGS}
    return Kubectl(tuple(f"--{flag}={value}" for flag, value in values.items() if value))


@dataclass(frozen=True)
class Kubectl:
    """`flags`: which cluster, and who asks, such as `--context=prod`."""

    flags: tuple[str, ...] = ()

    def get(self, *what: str) -> Object:
        """An object, or a list of them. Raises ClusterError with kubectl's own words."""
        return dict(json.loads(self.run("get", *what, "--output=json")))

    def find(self, *what: str) -> Object | None:
        """An object, or None if there is no such one. Raises ClusterError."""
        text = self.run("get", *what, "--ignore-not-found", "--output=json")
        return dict(json.loads(text)) if text.strip() else None

    def run(self, *arguments: str) -> str:
        """What it prints. Raises ClusterError: what to do, if that is known, and its own words."""
        command = ["kubectl", *self.flags, f"--request-timeout={LIMIT_SECONDS:.0f}s", *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - no shell
                command, capture_output=True, text=True, errors="replace", check=False
            )
        except FileNotFoundError as error:
            raise _no_kubectl() from error
        if done.returncode:
            raise failure(arguments[0], done.stderr)
        return done.stdout

    def stream(self, *arguments: str) -> Iterator[str]:
        """Its lines as they come. Raises ClusterError when it ends badly."""
        with tempfile.TemporaryFile("w+", errors="replace") as complaints:
            with self._started(arguments, complaints) as process:
                try:
                    # `yield from` would close the pipe when no more is wanted, and nobody could wait then.
                    for line in process.stdout or ():  # noqa: UP028
                        yield line
                    process.wait()
                finally:
                    process.kill()  # one that has ended doesn't mind
            complaints.seek(0)
            if process.returncode:
                raise failure(arguments[0], complaints.read())

    def _started(self, arguments: Sequence[str], complaints: TextIO) -> "subprocess.Popen[str]":
        command = ["kubectl", *self.flags, *arguments]
        try:
            return subprocess.Popen(  # noqa: S603 - no shell
                command, stdout=subprocess.PIPE, stderr=complaints, text=True, errors="replace"
            )
        except FileNotFoundError as error:
            raise _no_kubectl() from error


def failure(verb: str, said: str) -> errors.ClusterError:
    """What is to be raised for kubectl's complaint."""
    kind = errors.ClusterUnreachable if re.search(_UNREACHABLE, said) else errors.ClusterError
    return kind(sentence(verb, said))


def sentence(verb: str, said: str) -> str:
    """What kubectl's complaint means, if that is known, with its own words."""
    words = said.strip()
    meaning = next((text for pattern, text in _MEANINGS.items() if re.search(pattern, words)), "")
    last = words.splitlines()[-1] if words else "it said nothing"
    return f"{meaning} ({last})" if meaning else f"kubectl {verb}: {words}"


def _no_kubectl() -> errors.ClusterError:
    return errors.ClusterError("kubectl is not in PATH: install it, or add its folder to PATH")
