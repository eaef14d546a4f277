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
_KUBECONFIG = (
    r"(context|cluster|auth info) \S+ does not exist|no server found for cluster"
    r"|(invalid|incomplete|[Ee]rror in) configuration"
)
_NO_ANSWER = (
    r"Unable to connect|connection to the server|connection refused|no such host|i/o timeout"
    r"|deadline exceeded"
)
_NOT_NOW = (
    r"\((ServiceUnavailable|ServerTimeout|Timeout|TooManyRequests)\)|Bad Gateway|etcdserver: "
    r"|apiserver is shutting down|apiserver not ready|client connection lost|GOAWAY|stream error"
    r"|connection reset by peer|read tcp|unexpected EOF|\": EOF"
)
_MEANINGS: dict[str, tuple[type[errors.ClusterError], str]] = {
    r"containerLogs": (
        errors.NodeUnreachable,
        "the node does not answer, so its logs can't be had: is it gone?",
    ),
    r"doesn't have a resource type \"spottrainingjobs|could not find the requested resource": (
        errors.ClusterError,
        (
            "this cluster knows no SpotTrainingJob: install spottrain there (`helm install`, "
            "docs/install.md), or choose another one with --context"
        ),
    ),
    r"Forbidden": (
        errors.ClusterError,
        (
            "the cluster does not allow that: ask for the role `view` in the namespace (the chart adds "
            "SpotTrainingJobs to it), or name your own namespace with -n"
        ),
    ),
    r"Unauthorized|must be logged in|provide credentials": (
        errors.ClusterError,
        "the cluster does not know you: log in as you do for kubectl, and try `kubectl auth whoami`",
    ),
    _KUBECONFIG: (
        errors.ClusterError,
        "the kubeconfig has no such cluster (`kubectl config get-contexts`): see --context and --kubeconfig",
    ),
    _NO_ANSWER: (
        errors.ClusterUnreachable,
        "kubectl reaches no cluster: `kubectl cluster-info` must work first; see --context and --kubeconfig",
    ),
    _NOT_NOW: (
        errors.ClusterUnreachable,
        "the API server broke off or has no time, as while it is upgraded: try again in a minute",
    ),
}
"""What its words mean, what is to be raised for them, and what to do; the first that fits."""


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
        r"""Its lines as they come; `\r` (a progress bar) ends none. Raises ClusterError at a bad end."""
        with tempfile.TemporaryFile("w+", errors="replace") as complaints:
            with self._started(arguments, complaints) as process:
                try:
                    for line in process.stdout or ():
                        yield line.decode(errors="replace")
                    process.wait()
                finally:
                    process.kill()  # one that has ended doesn't mind
            complaints.seek(0)
            if process.returncode:
                raise failure(arguments[0], complaints.read())

    def _started(self, arguments: Sequence[str], complaints: TextIO) -> "subprocess.Popen[bytes]":
        command = ["kubectl", *self.flags, *arguments]
        try:
            # As bytes: in text mode `\r` would end a line too.
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints)  # noqa: S603 - no shell
        except FileNotFoundError as error:
            raise _no_kubectl() from error


def failure(verb: str, said: str) -> errors.ClusterError:
    """What is to be raised for kubectl's complaint."""
    kind, _ = _meaning(said)
    return kind(sentence(verb, said))


def sentence(verb: str, said: str) -> str:
    """What kubectl's complaint means, if that is known, with its own words."""
    words = said.strip()
    _, meaning = _meaning(words)
    last = words.splitlines()[-1] if words else "it said nothing"
    return f"{meaning} ({last})" if meaning else f"kubectl {verb}: {words}"


def _meaning(said: str) -> tuple[type[errors.ClusterError], str]:
    found = (meaning for pattern, meaning in _MEANINGS.items() if re.search(pattern, said))
    return next(found, (errors.ClusterError, ""))


def _no_kubectl() -> errors.ClusterError:
    return errors.ClusterError("kubectl is not in PATH: install it, or add its folder to PATH")
