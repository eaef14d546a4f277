"""Attempts and their saves, made by hand on a store."""

from spottrain.checkpoint import claim, layout, lineage, manifest, view
from spottrain.checkpoint.store import Store, create_once


class Skips(list[view.Skipped]):
    """What was passed over, and why."""

    @property
    def told(self) -> list[tuple[int, str]]:
        return [(skipped.directory.step, skipped.reason) for skipped in self]


def start(  # how an attempt begins
    store: Store,
    attempt_id: str,
    *,
    wish: str = lineage.LATEST,
    job_uid: str = "job",
    attempt: int = 0,
    fresh_when_broken: bool = False,
    skips: Skips | None = None,
) -> claim.Claim:
    me = claim.Claimant(attempt_id, job_uid, attempt, wish, fresh_when_broken)
    return claim.claim(store, me, now=1.0, skipped=(skips if skips is not None else Skips()).append)


def upload(store: Store, record: lineage.Record, step: int, nonce: str = "00") -> manifest.Commit:
    """Store the files of a save without committing it."""
    data = f"state after {step}".encode()
    file = manifest.File("state", len(data), "")
    writer = manifest.Writer(record.attempt_id, nonce, record.seq, record.attempt, record.job_uid)
    commit = manifest.Commit(step, writer, (file,), world_size=1)
    store.delete([commit.directory.key("state")])
    store.put_if_absent(commit.directory.key("state"), data)
    return commit


def save(store: Store, record: lineage.Record, step: int, nonce: str = "00") -> layout.StepDir:
    """A save as the library makes it."""
    commit = upload(store, record, step, nonce)
    claim.publish(store, lineage.Records(store), record, commit)
    return commit.directory


def slip_in(store: Store, record: lineage.Record, step: int, nonce: str = "00") -> layout.StepDir:
    """A save whose writer looked at the lineage before a newer claim, and commits after it."""
    commit = upload(store, record, step, nonce)
    create_once(store, commit.directory.commit_key, commit.encode())
    return commit.directory


def best(store: Store, claimed: claim.Claim) -> layout.StepDir | None:
    """What an attempt would restore now."""
    seen = view.look(store)
    records = lineage.Records(store).refresh()
    for found in view.sound(store, seen, lineage.trail(records, claimed.record.seq, seen.committed)):
        if isinstance(found, manifest.Commit):
            return found.directory
    return None
