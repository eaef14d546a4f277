"""The state of a torch run: model, optimizer, scheduler and the like, random generators, data position.

For layouts in which every rank holds the same model (one process, DistributedDataParallel): rank 0 writes
what is alike, and each rank its own generators and its own place in the data. Sharded models (FSDP,
tensor parallel) need `run.save(step, write)` with a `write` of the program's own.
"""

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spottrain import errors
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
        self._objects = {
            name: _unwrapped(torch, value) for name, value in objects.items() if value is not None
        }
        self._log = log
        for name, value in {**self._objects, "data": data}.items():
            if value is not None and not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict")):
                raise errors.ConfigError(f"run.track({name}=…) has no state_dict and load_state_dict")

    @property
    def resizable(self) -> bool:
        """Whether it can be loaded by another number of ranks: a place in the data can't."""
        return self._data is None

    def write(self, folder: Path) -> None:
        """Write this rank's part."""
        if self._rank == 0:
            shared = {name: value.state_dict() for name, value in self._objects.items()}
            self._torch.save(shared, folder / SHARED)
        own = {"rank": self._rank, "generators": self._generators()}
        if self._data is not None:
            own["data"] = self._data.state_dict()
        self._torch.save(own, folder / OWN)

    def load(self, folder: Path) -> None:
        """Load what `write` wrote."""
        shared = self._read(folder / SHARED)
        if set(shared) != set(self._objects):
            raise errors.CheckpointError(
                f"the checkpoint holds {', '.join(sorted(shared))}; "
                f"run.track() was given {', '.join(sorted(self._objects))}"
            )
        for name, value in self._objects.items():
            value.load_state_dict(shared[name])
        own = self._read(folder / OWN)
        if own["rank"] != self._rank:
            sentence = f"rank {self._rank} was not there at this save: its random generators start afresh"
            self._log.warning("new-rank", sentence, rank=self._rank)
            return
        if self._data is not None and "data" in own:
            self._data.load_state_dict(own["data"])
        self._set_generators(own["generators"])

    def _read(self, path: Path) -> Any:
        return self._torch.load(path, map_location="cpu", weights_only=True)

    def _generators(self) -> dict[str, Any]:
        states: dict[str, Any] = {"python": random.getstate(), "torch": self._torch.get_rng_state()}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            name, keys, *rest = numpy.random.get_state(legacy=True)
            states["numpy"] = [name, keys.tolist(), *rest]
        if self._torch.cuda.is_available() and self._torch.cuda.is_initialized():
            states["cuda"] = self._torch.cuda.get_rng_state()
        return states

    def _set_generators(self, states: Mapping[str, Any]) -> None:
        random.setstate(states["python"])
        self._torch.set_rng_state(states["torch"])
        numpy = sys.modules.get("numpy")
        if numpy is not None and "numpy" in states:
            name, keys, *rest = states["numpy"]
            numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), *rest))
        if "cuda" in states and self._torch.cuda.is_available():
            self._torch.cuda.set_rng_state(states["cuda"])


def _unwrapped(torch: Any, value: Any) -> Any:
    """The model inside DistributedDataParallel: its parameters have the same names without it."""
    wrapper = torch.nn.parallel.DistributedDataParallel
    return value.module if isinstance(value, wrapper) else value
