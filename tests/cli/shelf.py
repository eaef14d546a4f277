"""Checkpoints as the library makes them, and the command line on top of them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain.checkpoint import claim, layout, lineage, location, manifest, transfer, view
from spottrain.checkpoint.store import Store

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shelf:
    """A place for checkpoints, and the URI of another one beside it."""

    where: location.Location
    other: str

    @property
    def store(self) -> Store:
        return location.open_store(self.where)

    def begin(self, attempt_id: str) -> lineage.Record:
        """An attempt of one job, as `restore` begins it."""
        me = claim.Claimant(attempt_id, "job", int(attempt_id, 16))
        return claim.claim(self.store, me, now=1.0, skipped=lambda _: None).record

    def save(
        self,
        record: lineage.Record,
        step: int,
        files: Mapping[str, str] | None = None,
        *,
        commit: bool = True,
    ) -> layout.StepDir:
        """A save; without `commit` its upload alone."""
        directory = layout.StepDir(step, record.attempt_id, f"{step:04x}")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (files or {"model": f"weights {step}", "rank": "0"}).items():
                (Path(folder) / name).write_text(text)
            sent = transfer.upload(self.store, Path(folder), directory, 0)
        writer = manifest.Writer(record.attempt_id, directory.nonce, record.seq, record.attempt, "job")
        versions = {"python": "3.11.2", "torch": f"2.{step}"}
        made = manifest.Commit(step, writer, sent, 1, versions, time=1767225600.0, seconds=1.25, blocked=0.5)
        if commit:
            claim.publish(self.store, lineage.Records(self.store), record, made)
        return directory

    def committed(self) -> list[int]:
        return sorted(directory.step for directory in view.look(self.store).committed)

    def run(self, command: str, *arguments: object, uri: str | None = None) -> Said:
        """`spottrain checkpoints COMMAND URI …`, as a process of its own."""
        words = ["checkpoints", command, uri or self.where.uri, *(str(one) for one in arguments)]
        line = [sys.executable, "-c", "from spottrain.cli.main import main; main()", *words]
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "operator"),
            "SPOTTRAIN_CHECKPOINT_ENDPOINT": self.where.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, command: str, *arguments: object) -> Any:
        said = self.run(command, *arguments, "-o", "json")
        return said.json
