"""One shard in the hands of one attempt: what is done, and what waits to be committed."""

import json
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spottrain.batch import layout as names
from spottrain.batch import parts
from spottrain.checkpoint import claim, layout, lineage, manifest, transfer
from spottrain.checkpoint.store import Store


@dataclass(frozen=True)
class _Part:
    """What is to be committed, and stays what it is until it is: a PUT whose answer was lost may have worked.

    `lines` are results, fewer than `ids` where inputs were rejected; `time`: Unix seconds.
    """

    directory: layout.StepDir
    ids: tuple[str, ...]
    lines: tuple[str, ...]
    time: float


class Shard:
    """Not for several threads at once."""

    def __init__(self, place: Store, record: lineage.Record, done: frozenset[str], count: int) -> None:
        """`done`: the inputs with a committed result; `count`: the step of the newest part, 0 for none."""
        self.done = done
        self.count = count
        self._place = place
        self._record = record
        self._records = lineage.Records(place)
        self._ids: list[str] = []
        self._lines: list[str] = []
        self._frozen: _Part | None = None

    def add(self, name: str, line: str | None) -> None:
        """An input is done: the JSON of its result, None if it was rejected."""
        self._ids.append(name)
        if line is not None:
            self._lines.append(line)

    def commit(self, now: float, scratch: Path | None) -> None:
        """Commit what waits. `now`: Unix seconds; `scratch`: a folder for files on their way.

        StaleAttempt when a newer attempt has claimed the shard. After a StoreError call it again.
        """
        while self._frozen or self._ids:
            self._frozen = self._frozen or self._freeze(now)
            self._publish(self._frozen, scratch)
            self.count = self._frozen.directory.step
            self._frozen = None

    def _freeze(self, now: float) -> _Part:
        step = self.count + len(self._ids)
        directory = layout.StepDir(step, self._record.attempt_id, secrets.token_hex(8))
        part = _Part(directory, tuple(self._ids), tuple(self._lines), now)
        self._ids.clear()
        self._lines.clear()
        return part

    def _publish(self, part: _Part, scratch: Path | None) -> None:
        with tempfile.TemporaryDirectory(prefix="spottrain-", dir=scratch) as folder:
            _write(Path(folder) / names.OUTPUTS, part.lines)
            _write(Path(folder) / names.IDS, map(json.dumps, part.ids))
            files = transfer.upload(self._place, Path(folder), part.directory, 0)
        writer = claim.writer(self._record, part.directory)
        commit = manifest.Commit(part.directory.step, writer, files, world_size=1, time=part.time)
        claim.publish(self._place, self._records, self._record, commit)


def begin(place: Store, asked: Store, me: claim.Claimant, *, now: float, skipped: parts.Skip) -> Shard:
    """Claim a shard and learn what is done. Errors: as `claim.claim`; `skipped` is told of damaged parts.

    `asked` is `place` as a beginning may ask it, and `place` where the parts go.
    """
    claimed = claim.claim(asked, me, now=now, skipped=skipped)
    record, seen = claimed.record, claimed.view
    # Not the claim's own trail: that still has what is damaged above the part which is gone on from.
    trail = lineage.trail(claimed.records, record.seq, seen.committed)
    found = list(parts.read(asked, seen, trail, skipped))
    done = frozenset(name for part in found for name in part.ids)
    return Shard(place, record, done, max((directory.step for directory in trail), default=0))


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
