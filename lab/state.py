"""Where a lab keeps its files, and the lock that lets one command at a time change it."""

import json
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from lab import config, locks
from lab.config import Addresses, Config

ROOT = Path("/var/lib/spottrain-lab")
# How the host's kernel was set before the first lab.
HOST_SETTINGS = ROOT / "host-settings.json"


@dataclass(frozen=True)
class State:
    """The folder of one lab."""

    name: str

    @property
    def folder(self) -> Path:
        """All files of this lab."""
        return ROOT / self.name

    @property
    def addresses(self) -> Addresses:
        """By the slot this lab has, or would get now."""
        return Addresses(config.choose_slot(self.name, slots()))

    @property
    def admin(self) -> Path:
        """Kubeconfig with all rights."""
        return self.folder / "admin.kubeconfig"

    @property
    def bin(self) -> Path:
        """Links to the programs this lab was started with."""
        return self.folder / "bin"

    @property
    def pki(self) -> Path:
        """Keys and certificates; kept when the lab goes down."""
        return self.folder / "pki"

    @property
    def log(self) -> Path:
        """What the programs print."""
        return self.folder / "log"

    @property
    def pids(self) -> Path:
        """One file for each process the lab started."""
        return self.folder / "pids"

    @property
    def etcd(self) -> Path:
        """The cluster's objects; gone when the lab goes down."""
        return self.folder / "etcd"

    @property
    def store(self) -> Path:
        """The object store: a folder for each bucket, a file for each object."""
        return self.folder / "s3"

    def node(self, name: str) -> Path:
        """A machine's disk."""
        return self.folder / "nodes" / name

    def exists(self) -> bool:
        """Whether there was ever a lab of this name (and it was not removed)."""
        return (self.folder / "slot").exists()

    def take_slot(self) -> None:
        """Make the networks and ports of the lowest free slot this lab's own, if it has none yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locks.held(ROOT / ".slots.lock"):
            _write(self.folder / "slot", f"{self.addresses.slot}\n")

    def prepare(self) -> None:
        """Make the folders."""
        for folder in (self.pki, self.log, self.pids, self.bin, self.store, self.folder / "nodes"):
            folder.mkdir(parents=True, exist_ok=True)

    def save(self, wanted: Config) -> None:
        """Remember what was started; written last, so its absence means a start that was cut short."""
        _write(self.folder / "config.json", json.dumps(config.to_json(wanted), indent=1) + "\n")

    def forget(self) -> None:
        """The lab is down."""
        (self.folder / "config.json").unlink(missing_ok=True)

    def started(self) -> Config | None:
        """The configuration of the lab that was started and not taken down since."""
        text = _read(self.folder / "config.json")
        return None if text is None else config.from_json(json.loads(text))

    def locked(self) -> AbstractContextManager[None]:
        """Held by every command that changes the lab."""
        return locks.held(ROOT / f".{self.name}.lock")


def slots() -> dict[str, int]:
    """The slot of every lab that has files here."""
    texts = {path.parent.name: _read(path) for path in ROOT.glob("*/slot")}
    return {name: int(text) for name, text in texts.items() if text is not None}


def left_over() -> list[str]:
    """Names of the labs that have something to take down: started, or killed in the middle of it."""
    return [name for name in sorted(slots()) if State(name).started() or any(State(name).pids.glob("*"))]


def others_started(name: str) -> bool:
    """Whether another lab than this one was started and not taken down since."""
    return any(State(other).started() for other in slots() if other != name)


def is_root() -> bool:
    """Whether this process may make namespaces and mounts."""
    return os.geteuid() == 0


def _write(path: Path, text: str) -> None:
    """Whole or not at all: other labs' commands read these files while this lab's are at work."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)


def _read(path: Path) -> str | None:
    """None when the file is not there, or no longer."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
