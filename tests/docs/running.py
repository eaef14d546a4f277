"""Where the commands of a page are run, and as whom: a reader at a prompt, in a checkout."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs import known, pages, shell

ANYWHERE = frozenset({"spottrain"})
CLUSTER = frozenset({"cat", "echo", "helm", "jq", "kubectl", "sed"})
"""A line of these alone is run against a cluster; other lines of `spottrain` alone need none."""
NOWHERE = {
    "aws": "no account",
    "az": "no account",
    "chaos": "tests/node/test_chaos.py and `make chaos`",
    "docker": "no daemon and no registry; tests/lab/test_images.py builds the Dockerfile",
    "eksctl": "no account",
    "eval": "of `python -m lab env`: what the tests of the lab begin with",
    "gcloud": "no account",
    "git": "no other repository is reached",
    "kind": "no docker",
    "lab": "its machines: tests/lab",
    "make": "each is a suite, a build or a run of its own",
    "pip": "what this environment is made by",
    "spottrain drill": "an agent on a machine: tests/agent/test_drill.py and tests/cluster/test_agent.py",
}
"""What isn't run here: why, or where it is. Bash and our own parsers have to take it all the same."""
LOGS = re.compile(r"kubectl (spottrain )?logs ")  # kwok's nodes have none: it says so and ends with 1
READER = {
    "NAME": "llama",
    "NAMESPACE": "default",
    "REGISTRY": "registry.example",
}
"""What the pages leave to the reader, besides what a test knows better."""
NODE = re.compile(r"\bNODE\b(?!:)")
_OPTIONAL = re.compile(r" \[[A-Z]+\]")
_ENDLESS = re.compile(r" (-w|--watch)\b| logs .*(-f|--follow)\b")
_FILE = re.compile(r"# ([\w-]+\.(?:py|sh|txt|yaml))\b")
SECONDS = 120


def programs(command: shell.Command) -> set[str]:
    """What a line starts; by our own names for what is ours."""
    found = set()
    for words in shell.simple(command.line):
        ours, rest = known.split(words)
        drill = (ours, rest[:1]) == ("spottrain", ["drill"])
        found.add("spottrain drill" if drill else ours or Path(words[0]).name)
    return found


def nowhere(command: shell.Command) -> set[str]:
    """Those of its programs that keep it from being run."""
    missing = {"jq"} if shutil.which("jq") is None else set()
    return programs(command) & (NOWHERE.keys() | missing)


def on_cluster(command: shell.Command) -> bool:
    """It is run, and needs a cluster."""
    by_kubectl = command.line.startswith("kubectl ")
    found = programs(command)
    return not nowhere(command) and found <= CLUSTER | ANYWHERE and (by_kubectl or bool(found & CLUSTER))


def anywhere(command: shell.Command) -> bool:
    """It is run, and needs nothing but a store."""
    return not nowhere(command) and programs(command) <= ANYWHERE and not on_cluster(command)


@dataclass(frozen=True)
class Reader:
    """Somebody in a folder that is like a checkout, with the files that the page says to write."""

    folder: Path
    environment: Mapping[str, str]

    def settle(self, page: str) -> None:
        """Lay the checkout, and write each block that begins with a comment that names a file.

        A job.yaml that the page leaves to the reader is the README's.
        """
        for path in pages.ROOT.iterdir():
            if not path.name.startswith("."):
                (self.folder / path.name).symlink_to(path)
        readme = next(block for block in pages.blocks("yaml") if block.page == "README.md")
        (self.folder / "job.yaml").write_text(readme.text)
        for block in pages.blocks():
            if block.page == page and (named := _FILE.match(block.text)):
                (self.folder / named[1]).write_text(block.text)

    def run(self, command: shell.Command, words: Mapping[str, str] = READER) -> str:
        """What it printed, with `words` for the page's; one that watches is ended after its first line.

        AssertionError when it fails, with what it said.
        """
        line = _OPTIONAL.sub("", command.line)
        for old, new in {**READER, **words}.items():
            line = re.sub(rf"\b{old}\b(?!:)", new, line)
        path = f"{self.environment.get('PATH', '/usr/bin:/bin')}:{Path(sys.executable).parent}"
        env = {**os.environ, **self.environment, "PATH": path, "HOME": str(self.folder), "TERM": "dumb"}
        script = ["bash", "-o", "pipefail", "-c", line]
        with subprocess.Popen(
            script,
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            return _first_line(process) if _ENDLESS.search(command.line) else _to_its_end(process, command)


def _first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    try:
        return process.stdout.readline()
    finally:
        os.killpg(process.pid, signal.SIGTERM)


def _to_its_end(process: "subprocess.Popen[str]", command: shell.Command) -> str:
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    allowed = {0, 1} if LOGS.match(command.line) else {0}
    assert process.returncode in allowed, f"{command}\nends with {process.returncode}:\n{said}"
    return said
