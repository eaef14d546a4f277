"""A rank's files between its disk and the store, with their checksums."""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import checksum, layout, manifest
from spottrain.checkpoint.store import Store

_TRIES = 2


def upload(
    store: Store,
    source: Path,
    directory: layout.StepDir,
    rank: int,
    *,
    abandoned: Callable[[], bool] = lambda: False,
) -> tuple[manifest.File, ...]:
    """Store every file below `source` as rank `rank`'s part of the save, and say what they are.

    Raises CheckpointError before the next file once `abandoned` says so. A file's checksum is computed while
    it is on its way: both read it at the disk's or the page cache's speed.
    """
    sent: list[manifest.File] = []
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        if abandoned():
            raise errors.CheckpointError(f"the upload of {directory.name} was given up")
        name = layout.rank_folder(rank) + path.relative_to(source).as_posix()
        if name == layout.COMMIT or (rank == 0 and layout.rank_of(name)):
            raise errors.CheckpointError(
                f"a checkpoint may not hold a file named {name}: choose another name"
            )
        with ThreadPoolExecutor(1) as aside:
            total = aside.submit(checksum.of, path)
            store.put_file(directory.key(name), path)
            sent.append(manifest.File(name, path.stat().st_size, total.result()))
    return tuple(sent)


def download(store: Store, commit: manifest.Commit, rank: int, target: Path) -> str | None:
    """Fetch rank 0's files into `target`, and over them rank `rank`'s own, both by their plain names.

    None, or what is wrong with the checkpoint: a file that is gone, or whose bytes are not those that
    were saved.
    """
    files = sorted(commit.files_for(rank), key=lambda f: layout.rank_of(f.name))
    return _fetch_all(store, commit, files, target)


def download_more(store: Store, commit: manifest.Commit, names: Collection[str], target: Path) -> str | None:
    """Fetch what other ranks wrote under these plain names into `target`, but for what is there already.

    None, or what is wrong with the checkpoint. Names that two ranks wrote under are not for this.
    """
    files = [file for file in commit.files if _plain(file.name) in names]
    missing = set(names) - {_plain(file.name) for file in files}
    if missing:
        return f"it has no {min(missing)}"
    return _fetch_all(store, commit, [f for f in files if not (target / _plain(f.name)).exists()], target)


def _fetch_all(
    store: Store, commit: manifest.Commit, files: Iterable[manifest.File], target: Path
) -> str | None:
    for file in files:
        path = target / _plain(file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        problem = _fetch(store, commit.directory.key(file.name), file, path)
        if problem:
            return problem
    return None


def _plain(name: str) -> str:
    """A file's name as its rank wrote it."""
    return name.removeprefix(layout.rank_folder(layout.rank_of(name)))


def _fetch(store: Store, key: str, file: manifest.File, path: Path) -> str | None:
    for _ in range(_TRIES):
        found = store.get_file(key, path)
        if found is None:
            return f"{file.name} is missing"
        if found == file.sha256:
            return None
    return f"{file.name} has another checksum than when it was saved"
