"""A batch for the tests: its inputs, its programs, and what is in its store."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spottrain.batch import layout, parts, reading
from spottrain.checkpoint import lineage, view
from spottrain.checkpoint.store import Below, Store
from tests.train import processes

MODEL = layout.Identity("shout@1", {"mark": "!"})


def rows(count: int = 100) -> list[dict[str, str]]:
    """B18's: b has the text of a, c is rejected; one of the others fails."""
    special = [("a", "x"), ("b", "x"), ("c", "reject"), ("d", "fail")]
    return [{"id": name, "text": text} for name, text in special] + [
        {"id": f"row-{number}", "text": f"text {number}"} for number in range(count - len(special))
    ]


def wanted(inputs: Sequence[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The results that an unbroken run has, by id."""
    return {
        row["id"]: {"id": row["id"], "error": "ValueError: no voice"}
        if row["text"] == "fail"
        else {"id": row["id"], "output": row["text"].upper()}
        for row in inputs
        if row["text"] != "reject"
    }


@dataclass
class Place:
    """A batch: its store, the environment that leads to it, and its files."""

    bench: processes.Bench
    store: Store
    env: Mapping[str, object]
    folder: Path

    @property
    def ledger(self) -> list[str]:
        """The inputs for which the model was called, in this order."""
        file = self.folder / "ledger"
        return file.read_text().split() if file.exists() else []

    def forget(self) -> None:
        """Begin the ledger anew."""
        (self.folder / "ledger").unlink(missing_ok=True)

    def put_inputs(self, inputs: Sequence[Mapping[str, str]]) -> None:
        (self.folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in inputs))

    def start(self, **env: object) -> processes.Program:
        files = {"INPUTS": self.folder / "in.jsonl", "LEDGER": self.folder / "ledger"}
        return self.bench.start("infer.py", **{**files, **self.env, **env})

    def results(self, what: layout.Identity = MODEL) -> dict[str, Any]:
        """By id; each comes once."""
        (described,) = [one for one in reading.describe(self.store) if one.identity.hash == what.hash]
        found = list(reading.read(self.store, described))
        assert [name for name, count in Counter(one["id"] for one in found).items() if count > 1] == []
        return {one["id"]: one for one in found}

    def parts(self, shard: int = 0) -> list[parts.Part]:
        """What is on the trail of a shard, read without any regard for twins."""
        place = Below(self.store, layout.shard_prefix(MODEL.hash, shard))
        seen, known = view.look(place), lineage.Records(place).refresh()
        trail = lineage.trail(known, max(known), seen.committed) if known else []
        return list(parts.read(place, seen, trail, lambda _: None))

    def ids(self, shard: int = 0) -> list[str]:
        return [name for part in self.parts(shard) for name in part.ids]
