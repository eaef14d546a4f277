"""What lies below a checkpoint URI, as a person wants to see it: each save, and what a restore makes of it.

Read the same way as the library reads it: the newest claim's trail, best first, then what nobody will follow.
"""

import datetime as dt
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from spottrain import errors
from spottrain.checkpoint import layout, lineage, manifest, view
from spottrain.checkpoint.store import Store


class Place(enum.StrEnum):
    """Where a save stands in the lineage."""

    LATEST = "latest"
    """A new attempt goes on from here."""
    TRAIL = "trail"
    """Taken when what is before it is damaged."""
    ASIDE = "aside"
    """Past a fork, or of an attempt that nobody goes on from: never taken."""


@dataclass(frozen=True)
class Save:
    """One save. `commit` is None when it was never committed or is damaged, and `problem` says which."""

    directory: layout.StepDir
    place: Place
    commit: manifest.Commit | None
    problem: str
    bytes: int
    files: int
    parent: bool
    """Some attempt went on from it, so it is never removed."""

    @property
    def time(self) -> dt.datetime | None:
        """When it was committed."""
        known = self.commit is not None and self.commit.time > 0
        return dt.datetime.fromtimestamp(self.commit.time, dt.UTC) if known and self.commit else None


@dataclass(frozen=True)
class Overview:
    """All saves, best first, and the claims by number."""

    saves: tuple[Save, ...]
    records: Mapping[int, lineage.Record]
    seen: view.View

    @property
    def newest(self) -> lineage.Record | None:
        """The newest claim."""
        return self.records[max(self.records)] if self.records else None

    @property
    def committed(self) -> list[Save]:
        """Those that were committed, damaged ones too."""
        known = set(self.seen.committed)
        return [save for save in self.saves if save.directory in known]

    def find(self, wanted: str) -> Save:
        """The save that `wanted` names: `latest`, a step, or a directory's name or the beginning of it."""
        if wanted == Place.LATEST:
            found = [save for save in self.saves if save.place is Place.LATEST]
        elif wanted.isdecimal():
            at_step = [save for save in self.saves if save.directory.step == int(wanted)]
            found = [save for save in at_step if save.place is not Place.ASIDE] or at_step
        else:
            found = [save for save in self.saves if save.directory.name.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if not found:
            there = ", ".join(str(save.directory.step) for save in self.saves[:10]) or "none"
            raise errors.NoSuchStep(f"there is no checkpoint {wanted!r}; steps that are there: {there}")
        names = ", ".join(save.directory.name for save in found)
        raise errors.NoSuchStep(f"{wanted!r} may be any of {names}: write more of the name")


def look(store: Store) -> Overview:
    """Read all of it: one LIST of the saves, one of the claims, and a GET for each claim and each commit."""
    # Saves before records, as everywhere: whoever wrote a save had claimed before.
    seen = view.look(store)
    records = lineage.Records(store).refresh()
    if not records and not seen.saves:
        _refuse_the_folder_of_indexes(store)
    trail = lineage.trail(records, max(records), seen.committed) if records else []
    parents = lineage.parents(records)
    found = {directory: view.inspect(store, seen, directory) for directory in seen.committed}
    latest = next((one for one in trail if isinstance(found[one], manifest.Commit)), None)
    others = sorted(set(seen.saves) - set(trail), reverse=True)
    places = {one: Place.LATEST if one == latest else Place.TRAIL for one in trail}
    saves = (
        _save(one, seen.saves[one], found.get(one), places.get(one, Place.ASIDE), parent=one in parents)
        for one in (*trail, *others)
    )
    return Overview(tuple(saves), records, seen)


def _save(
    directory: layout.StepDir,
    files: view.Sizes,
    found: manifest.Commit | view.Skipped | None,
    place: Place,
    *,
    parent: bool,
) -> Save:
    sizes = {name: size for name, size in files.items() if name != layout.COMMIT}
    problem = "never committed" if found is None else found.reason if isinstance(found, view.Skipped) else ""
    return Save(
        directory=directory,
        place=place,
        commit=found if isinstance(found, manifest.Commit) else None,
        problem=problem,
        bytes=sum(sizes.values()),
        files=len(sizes),
        parent=parent,
    )


def _refuse_the_folder_of_indexes(store: Store) -> None:
    """An Independent job keeps each index's checkpoints below its number."""
    if store.list(f"0/{layout.LINEAGE}"):
        raise errors.ConfigError(
            f"{store.uri} holds the checkpoints of an Independent job: name an index's, such as {store.uri}/0"
        )
