"""What lies below a checkpoint URI at one moment, and which of it is sound."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spottrain.checkpoint import layout, manifest
from spottrain.checkpoint.store import Store

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Skipped:
    """A commit that must not be used, and why."""

    directory: layout.StepDir
    reason: str


@dataclass(frozen=True)
class View:
    """The saves in the store: for each directory its files (name to bytes)."""

    saves: Mapping[layout.StepDir, Sizes] = field(default_factory=dict)

    @property
    def committed(self) -> list[layout.StepDir]:
        """The directories that hold a COMMIT, sound or not."""
        return [directory for directory, sizes in self.saves.items() if layout.COMMIT in sizes]


def look(store: Store) -> View:
    """List all saves. Raises the store's error when it can't be listed: that is never "nothing there"."""
    saves: dict[layout.StepDir, dict[str, int]] = {}
    for entry in store.list(layout.STEPS):
        name, _, file = entry.key.removeprefix(layout.STEPS).partition("/")
        directory = layout.parse_step_dir(name)
        if directory is not None and file:
            saves.setdefault(directory, {})[file] = entry.size
    return View(saves)


def inspect(store: Store, view: View, directory: layout.StepDir) -> manifest.Commit | Skipped:
    """The commit in `directory`, if every file it names is there with its size."""
    data = store.get(directory.commit_key)
    if data is None:
        return Skipped(directory, "its COMMIT.json is gone")
    commit = manifest.decode(data, directory)
    if isinstance(commit, str):
        return Skipped(directory, commit)
    damage = manifest.damage(commit, view.saves.get(directory, {}))
    return Skipped(directory, damage) if damage else commit


def sound(
    store: Store, view: View, directories: Iterable[layout.StepDir]
) -> Iterator[manifest.Commit | Skipped]:
    """Each of `directories` as a commit or as a reason to skip it. Reads only as far as it is asked."""
    for directory in directories:
        yield inspect(store, view, directory)
