"""The logs of all pods, copied from the machines' disks as they grow, so that they outlive both."""

import threading
from pathlib import Path

from lab.cluster import Lab

_EVERY = 2.0


class NodeLogs:
    """Copies what containers print into a folder, one file for each container that was started."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._nodes = lab.state.folder / "nodes"
        self._folder = folder
        self._read: dict[tuple[Path, int], int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="node-logs")

    def start(self) -> None:
        """Begin to copy."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Copy what is new, and no more."""
        self._over.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._over.wait(_EVERY):
            self.copy()
        self.copy()

    def copy(self) -> None:
        """Once. A file that goes meanwhile has been copied up to the time before."""
        for path in self._nodes.glob("*/log/pods/*/*/*.log"):
            try:
                self._copy(path)
            except FileNotFoundError:
                continue

    def _copy(self, path: Path) -> None:
        node = path.relative_to(self._nodes).parts[0]
        pod, container = path.parts[-3], path.parts[-2]
        with path.open("rb") as source:
            # A machine that was replaced has a new disk: the same path may be another file.
            known = (path, path.stat().st_ino)
            source.seek(self._read.get(known, 0))
            new = source.read()
            self._read[known] = source.tell()
        if new:
            with (self._folder / f"{pod}.{container}.{path.stem}.{node}.log").open("ab") as target:
                target.write(new)
