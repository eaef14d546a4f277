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


class Inspector:
    """Looks into commits. A COMMIT never changes, so each is read once, and none that is known already."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[layout.StepDir, manifest.Commit] = {}

    def remember(self, commit: manifest.Commit) -> None:
        """This is in the store."""
        self._known[commit.directory] = commit

    def inspect(self, view: View, directory: layout.StepDir) -> manifest.Commit | Skipped:
        """The commit in `directory`, if every file it names is there with its size."""
        commit = self._known.get(directory) or self._read(directory)
        if isinstance(commit, str):
            return Skipped(directory, commit)
        self.remember(commit)
        damage = manifest.damage(commit, view.saves.get(directory, {}))
        return Skipped(directory, damage) if damage else commit

    def _read(self, directory: layout.StepDir) -> manifest.Commit | str:
        data = self._store.get(directory.commit_key)
        return "its COMMIT.json is gone" if data is None else manifest.decode(data, directory)


def inspect(store: Store, view: View, directory: layout.StepDir) -> manifest.Commit | Skipped:
    """As an Inspector does who knows nothing yet."""
    return Inspector(store).inspect(view, directory)


def sound(
    store: Store, view: View, directories: Iterable[layout.StepDir]
) -> Iterator[manifest.Commit | Skipped]:
    """Each of `directories` as a commit or as a reason to skip it. Reads only as far as it is asked."""
    for directory in directories:
        yield inspect(store, view, directory)
