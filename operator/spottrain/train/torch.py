"""The state of a torch run: model, optimizer, scheduler and the like, random generators, data position.

Rank 0 writes what is alike on every rank, and each rank its own generators and its own place in the data.
Where every rank holds the whole model (one process, DistributedDataParallel), it is alike; sharded ones are
`shards`' business.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from spottrain import errors
from spottrain.train import generators, shards
from spottrain.train.log import Log

SHARED, OWN = "state.pt", "rank.pt"


class State:
    """Writes to a folder and loads from it. Files are read with `weights_only`: no code in them is run."""

    def __init__(self, rank: int, *, data: Any, objects: Mapping[str, Any], log: Log) -> None:
        """`objects`: what all ranks have alike; `data`: this rank's own; all with state_dict and its twin."""
        try:
            import torch
        except ImportError as error:
            raise errors.ConfigError("run.track() needs torch: pip install torch") from error
        self._torch = torch
        self._rank = rank
        self._data = data
        self._log = log
        given = {name: _unwrapped(torch, value) for name, value in objects.items() if value is not None}
        for name, value in {**given, "data": data}.items():
            if value is not None and not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
                raise errors.ConfigError(f"run.track({name}=…) has no state_dict and load_state_dict")
        self._shards = shards.find(torch, given)
        self._objects = {name: value for name, value in given.items() if not self._is_sharded(value)}

    @property
    def resizable(self) -> bool:
        """Whether it can be loaded by another number of ranks: a place in the data can't."""
        return self._data is None

    def write(self, folder: Path) -> None:
        """Write this rank's part."""
        if self._rank == 0:
            shared = {name: value.state_dict() for name, value in self._objects.items()}
            self._torch.save(shared, folder / SHARED)
        own = {"rank": self._rank, "generators": generators.states()}
        if self._data is not None:
            own["data"] = self._data.state_dict()
        self._torch.save(own, folder / OWN)
        if self._shards:
            self._shards.write(folder)

    def wants(self, folder: Path) -> Collection[str]:
        """See tracked.Loader."""
        return self._shards.wants(folder) if self._shards else ()

    def load(self, folder: Path) -> None:
        """Load what `write` wrote."""
        if self._shards is None and (folder / shards.FOLDER).is_dir():
            raise errors.CheckpointError(
                "the checkpoint holds a sharded model, and the one that run.track() was given is whole: "
                "shard it before run.track()"
            )
        shared = self._read(folder / SHARED)
        if set(shared) != set(self._objects):
            raise errors.CheckpointError(
                f"the checkpoint holds {', '.join(sorted(shared))}; "
                f"run.track() was given {', '.join(sorted(self._objects))}"
            )
        for name, value in self._objects.items():
            value.load_state_dict(shared[name])
        if self._shards:
            self._shards.load(folder)
        own = self._read(folder / OWN)
        if own["rank"] != self._rank:
            sentence = f"rank {self._rank} was not there at this save: its random generators start afresh"
            self._log.warning("new-rank", sentence, rank=self._rank)
            return
        if self._data is not None and "data" in own:
            self._data.load_state_dict(own["data"])
            # A stateful loader makes its iterator when it is asked for its state, and `iter` then takes that
            # one. To make it draws from torch's generator, in the middle of an epoch in which the unbroken
            # run draws nothing: so it has to happen before the generators are set.
            self._data.state_dict()
        generators.put_back(own["generators"])

    def _is_sharded(self, value: Any) -> bool:
        kinds = (self._torch.nn.Module, self._torch.optim.Optimizer)
        return self._shards is not None and isinstance(value, kinds)

    def _read(self, path: Path) -> Any:
        return self._torch.load(path, map_location="cpu", weights_only=True)


def _unwrapped(torch: Any, value: Any) -> Any:
    """The model inside DistributedDataParallel: its parameters have the same names without it."""
    wrapper = torch.nn.parallel.DistributedDataParallel
    return value.module if isinstance(value, wrapper) else value
