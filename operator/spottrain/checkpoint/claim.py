"""How an attempt starts: it finds its place in the lineage, or takes the next one."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spottrain import errors
from spottrain.checkpoint import layout, lineage, manifest, store, view

FRESH = "Fresh"
_MAX_RACES = 100

Skip = Callable[[view.Skipped], None]


@dataclass(frozen=True)
class Claimant:
    """Who starts, and what it was told: `wish` is Latest, Fresh or `Step:<n>`.

    A wish other than Latest is for the first attempt of a job that has it: later attempts of that job go
    on from the latest, or each reclaim would throw them back. `job_uid` tells the jobs apart; without one
    (on a laptop) the wish is carried out each time.
    """

    attempt_id: str
    job_uid: str = ""
    attempt: int = 0
    wish: str = lineage.LATEST
    start_fresh_when_broken: bool = False


@dataclass(frozen=True)
class Claim:
    """A place in the lineage, and what may be restored from there, best first (soundness not yet checked)."""

    record: lineage.Record
    trail: Sequence[layout.StepDir]
    view: view.View
    records: Mapping[int, lineage.Record]


def claim(place: store.Store, me: Claimant, *, now: float, skipped: Skip) -> Claim:
    """Find or take `me`'s place. `now`: Unix seconds; `skipped` is told of each damaged commit passed over.

    Raises StoreError when the store can't be read, StaleAttempt when a newer attempt is there, NoSuchStep,
    AllBroken and LineageBroken as their names say.
    """
    records = lineage.Records(place)
    for _ in range(_MAX_RACES):
        # Saves before records: whoever wrote a save had claimed before, so its record can't be missing.
        seen = view.look(place)
        known = records.refresh()
        mine = next((r for r in known.values() if r.attempt_id == me.attempt_id), None)
        if mine is not None:
            _refuse_if_newer(known, mine)
            return Claim(mine, lineage.trail(known, mine.seq, seen.committed), seen, known)
        made = _take_next(place, me, known, seen, now=now, skipped=skipped)
        if made is not None:
            return made
    raise errors.StoreUnavailable(f"{place.uri}: {_MAX_RACES} other attempts claimed at the same time")


def _refuse_if_newer(known: Mapping[int, lineage.Record], mine: lineage.Record) -> None:
    newest = known[max(known)]
    if newest.seq > mine.seq:
        raise lineage.stale(mine.attempt_id, newest)


def _take_next(  # noqa: PLR0913 - everything a claim is decided by
    place: store.Store,
    me: Claimant,
    known: Mapping[int, lineage.Record],
    seen: view.View,
    *,
    now: float,
    skipped: Skip,
) -> Claim | None:
    refuse_straggler(me, known)
    newest = known[max(known)] if known else None
    wish = _wish_now(me, known)
    trail = _choose(me, wish, known, seen)
    commit = _first_sound(place, me, seen, trail, skipped)
    parent = _parent(known, commit) if commit else None
    record = lineage.Record(
        seq=newest.seq + 1 if newest else 1,
        attempt_id=me.attempt_id,
        job_uid=me.job_uid,
        attempt=me.attempt,
        parent=parent,
        wish=me.wish,
        pinned=_asks_for_a_step(wish) or bool(newest and newest.pinned and newest.parent == parent),
        time=now,
        announced=_was_announced(newest, commit),
    )
    if store.create_once(place, layout.record_key(record.seq), record.encode()) is not None:
        return None
    return Claim(record, trail if commit else [], seen, {**known, record.seq: record})


def refuse_straggler(me: Claimant, known: Mapping[int, lineage.Record]) -> None:
    """StaleAttempt when a later attempt of the job has claimed: who wakes this late must not take over."""
    newest = known[max(known)] if known else None
    if newest is not None and me.job_uid and newest.job_uid == me.job_uid and newest.attempt > me.attempt:
        raise lineage.stale(me.attempt_id, newest)


def _was_announced(newest: lineage.Record | None, commit: manifest.Commit | None) -> bool:
    """The newest attempt ended with a save of its last step, and that is what is gone on from."""
    if newest is None or commit is None:
        return False
    return commit.stop and commit.writer.attempt_id == newest.attempt_id


def _wish_now(me: Claimant, known: Mapping[int, lineage.Record]) -> str:
    """What to restore: the wish, unless the job's last attempt had the same: then it has been carried out."""
    ours = [seq for seq, record in known.items() if me.job_uid and record.job_uid == me.job_uid]
    return lineage.LATEST if ours and known[max(ours)].wish == me.wish else me.wish


def _asks_for_a_step(wish: str) -> bool:
    return wish.startswith("Step:")


def _choose(
    me: Claimant, wish: str, known: Mapping[int, lineage.Record], seen: view.View
) -> Sequence[layout.StepDir]:
    if wish == FRESH:
        return []
    if not known and seen.committed and not me.start_fresh_when_broken:
        raise errors.LineageBroken(
            "there are checkpoints but no lineage/ that says which to follow; "
            "put lineage/ back, use another URI, or ask for restore: Fresh"
        )
    trail = lineage.trail(known, max(known), seen.committed) if known else []
    return _only_step(wish, trail) if _asks_for_a_step(wish) else trail


def _only_step(wish: str, trail: Sequence[layout.StepDir]) -> Sequence[layout.StepDir]:
    step = int(wish.removeprefix("Step:"))
    chosen = [directory for directory in trail if directory.step == step]
    if not chosen:
        there = ", ".join(str(directory.step) for directory in trail[:10]) or "none"
        raise errors.NoSuchStep(f"step {step} was asked for and is not there; steps that are: {there}")
    return chosen


def _first_sound(
    place: store.Store, me: Claimant, seen: view.View, trail: Sequence[layout.StepDir], skipped: Skip
) -> manifest.Commit | None:
    for found in view.sound(place, seen, trail):
        if isinstance(found, manifest.Commit):
            return found
        skipped(found)
    if trail:
        refuse_unless_fresh(me, trail)
    return None


def refuse_unless_fresh(me: Claimant, trail: Sequence[layout.StepDir]) -> None:
    """Every commit of `trail` is damaged: raise, unless the user allowed a fresh start in that case."""
    if _asks_for_a_step(me.wish) and len({d.step for d in trail}) == 1:
        raise errors.AllBroken(f"step {trail[0].step} was asked for and is damaged")
    if not me.start_fresh_when_broken:
        raise errors.AllBroken(
            f"all {len(trail)} checkpoints are damaged ({trail[0].name} is the newest); "
            "set checkpoint.onBroken: StartFresh to begin again from step 0"
        )


def _parent(known: Mapping[int, lineage.Record], commit: manifest.Commit) -> lineage.Parent:
    seq = next(r.seq for r in known.values() if r.attempt_id == commit.writer.attempt_id)
    return lineage.Parent(seq, commit.directory)


def writer(record: lineage.Record, directory: layout.StepDir) -> manifest.Writer:
    """Who writes this save: the claim's holder, on this machine."""
    return manifest.Writer(
        attempt_id=record.attempt_id,
        nonce=directory.nonce,
        seq=record.seq,
        attempt=record.attempt,
        job_uid=record.job_uid,
        host=platform.node(),
    )


def publish(
    place: store.Store, records: lineage.Records, mine: lineage.Record, commit: manifest.Commit
) -> None:
    """Make a checkpoint exist, all of whose files are stored. StaleAttempt when a newer claim is there."""
    records.ensure_newest(mine)
    other = store.create_once(place, commit.directory.commit_key, commit.encode())
    if other is not None:
        raise errors.CheckpointError(f"{commit.directory.name} was committed before, by another writer")


def same_wish(wish: str) -> str:
    """`wish` in one spelling; ConfigError when it is none of Latest, Fresh and `Step:<n>`."""
    if wish in {lineage.LATEST, FRESH}:
        return wish
    step = wish.removeprefix("Step:")
    if step != wish and step.isdecimal():
        return f"Step:{int(step)}"
    raise errors.ConfigError(f"restore must be Latest, Fresh or Step:<number>, not {wish!r}")
