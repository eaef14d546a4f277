"""Which saves may go.

Kept: everything on the trail down to and including the K-th sound commit (what is damaged above it stays
too: it may be evidence, and judging by a listing is no reason to destroy), and every commit that some
attempt went on from. Removed: older commits of the attempts on the trail, commits they made past a fork
point (nobody will ever follow those), and what was uploaded and will never be committed.
Commits of attempts off the trail, left behind by a fresh start or a restore of an older step, are not
ours to remove.
"""

from collections.abc import Callable, Iterable, Mapping

from spottrain.checkpoint import layout, lineage, view
from spottrain.checkpoint.store import Store


def surplus(
    records: Mapping[int, lineage.Record],
    mine: lineage.Record,
    seen: view.View,
    *,
    keep: int,
    is_sound: Callable[[layout.StepDir], bool],
) -> list[layout.StepDir]:
    """The directories to remove, oldest first, when `keep` (at least 1) sound commits are to stay."""
    protected = set(lineage.parents(records))
    left = max(keep, 1)
    trail = lineage.trail(records, mine.seq, seen.committed, past_pins=True)
    for directory in trail:
        if left == 0:
            break
        protected.add(directory)
        left -= is_sound(directory)
    on_trail = {record.attempt_id for record, _ in lineage.ancestry(records, mine.seq)}
    committed = set(seen.committed)
    old = {d for d in committed if d.attempt_id in on_trail}
    return sorted((old | _left_behind(records, mine, seen)) - protected)


def _left_behind(
    records: Mapping[int, lineage.Record], mine: lineage.Record, seen: view.View
) -> set[layout.StepDir]:
    """Uploads that nobody will commit: older attempts', and our own from before our newest commit.

    Other ranks may be uploading the next save already, while rank 0 is still tidying up after the last.
    """
    committed = set(seen.committed)
    newest = max((d.step for d in committed if d.attempt_id == mine.attempt_id), default=-1)
    older = {record.attempt_id for record in records.values() if record.seq < mine.seq}
    return {
        directory
        for directory in set(seen.saves) - committed
        if directory.attempt_id in older
        or (directory.attempt_id == mine.attempt_id and directory.step < newest)
    }


def remove(store: Store, seen: view.View, directories: Iterable[layout.StepDir]) -> None:
    """Remove these saves, each COMMIT first, so that a half-removed one is never taken for a checkpoint."""
    for directory in directories:
        files = set(seen.saves[directory])
        if layout.COMMIT in files:
            store.delete([directory.commit_key])
        store.delete(directory.key(file) for file in sorted(files - {layout.COMMIT}))


def prune(
    store: Store,
    records: lineage.Records,
    mine: lineage.Record,
    *,
    keep: int,
    inspector: view.Inspector | None = None,
) -> list[layout.StepDir]:
    """Remove what may go and return it. StaleAttempt, with nothing removed, when a newer claim is there.

    `inspector`: one that knows commits already saves their reading.
    """
    # Saves before records, see `claim`.
    seen = view.look(store)
    known = records.refresh_as_newest(mine)
    inspect = (inspector or view.Inspector(store)).inspect
    gone = surplus(
        known,
        mine,
        seen,
        keep=keep,
        is_sound=lambda directory: not isinstance(inspect(seen, directory), view.Skipped),
    )
    remove(store, seen, gone)
    return gone
