"""Models and optimizers that are spread over the ranks (FSDP, tensor parallel): torch.distributed.checkpoint.

Every rank writes the shards it holds into a file of its own, and rank 0 the index of all of them. What
several ranks hold alike is in the lowest one's file. On loading a rank asks the index which files have what
it needs: its own and rank 0's as long as the layout is the same, others' when the model is laid out anew on
another number of ranks.
"""

import sys
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from spottrain import errors

FOLDER = "shards"


class Shards:
    """The sharded ones among what was given to `Run.track`, by their names there."""

    def __init__(self, models: Mapping[str, Any], optimizers: Mapping[str, Any]) -> None:
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint import state_dict

        self._dcp = dcp
        self._state_dict = state_dict
        self._models = models
        self._optimizers = {name: (_owner(name, o, models), o) for name, o in optimizers.items()}

    def write(self, folder: Path) -> None:
        """Write this rank's shards, and on rank 0 the index; a collective."""
        # Not synced to the disk: what is here is removed once it is uploaded, and lost with its machine.
        writer = self._dcp.FileSystemWriter(folder / FOLDER, sync_files=False)
        planner = self._dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True)
        self._dcp.save(self._state(), storage_writer=writer, planner=planner)

    def wants(self, folder: Path) -> Collection[str]:
        """See tracked.Loader. CheckpointError when the checkpoint is of something else."""
        index = self._index(folder)
        planner = self._dcp.DefaultLoadPlanner()
        planner.set_up_planner(self._state_to_load, index, is_coordinator=False)
        try:
            plan = planner.create_local_plan()
        except (RuntimeError, ValueError) as error:
            raise errors.CheckpointError(
                f"the checkpoint does not fit the model or its optimizer: {error}"
            ) from error
        return {f"{FOLDER}/{index.storage_data[item.storage_index].relative_path}" for item in plan.items}

    def load(self, folder: Path) -> None:
        """Load what `write` wrote, on as many ranks as there are now; a collective."""
        state = self._state_to_load
        self._dcp.load(state, storage_reader=self._dcp.FileSystemReader(folder / FOLDER))
        for name, model in self._models.items():
            self._state_dict.set_model_state_dict(model, state[name])
        for name, (model, optimizer) in self._optimizers.items():
            self._state_dict.set_optimizer_state_dict(model, optimizer, state[name])

    def _index(self, folder: Path) -> Any:
        if not (folder / FOLDER / ".metadata").is_file():
            raise errors.CheckpointError(
                "the checkpoint holds whole models, and the model that run.track() was given is sharded: "
                "load it with a program that doesn't shard the model, or begin with another checkpoint.uri"
            )
        return self._dcp.FileSystemReader(folder / FOLDER).read_metadata()

    @cached_property
    def _state_to_load(self) -> dict[str, Any]:
        return self._state()

    def _state(self) -> dict[str, Any]:
        state = {name: self._state_dict.get_model_state_dict(model) for name, model in self._models.items()}
        for name, (model, optimizer) in self._optimizers.items():
            state[name] = self._state_dict.get_optimizer_state_dict(model, optimizer)
        return state


def find(torch: Any, objects: Mapping[str, Any]) -> Shards | None:
    """The models and optimizers among `objects`, if one of the models is sharded."""
    models = {name: value for name, value in objects.items() if isinstance(value, torch.nn.Module)}
    if not any(_is_sharded(model) for model in models.values()):
        return None
    optimizers = {name: value for name, value in objects.items() if isinstance(value, torch.optim.Optimizer)}
    return Shards(models, optimizers)


def _is_sharded(model: Any) -> bool:
    # Whoever sharded it has loaded these. They take most of a second, and others never need them.
    fsdp, tensor = (sys.modules.get(f"torch.distributed.{name}") for name in ("fsdp", "tensor"))
    wrapped = fsdp and any(isinstance(one, fsdp.FullyShardedDataParallel) for one in model.modules())
    return bool(wrapped or (tensor and any(isinstance(one, tensor.DTensor) for one in model.parameters())))


def _owner(name: str, optimizer: Any, models: Mapping[str, Any]) -> Any:
    """The model whose parameters this optimizer changes."""
    first = optimizer.param_groups[0]["params"][0]
    for model in models.values():
        if any(parameter is first for parameter in model.parameters()):
            return model
    raise errors.ConfigError(
        f"run.track({name}=…) changes a model that was not given: run.track(model=…) too"
    )
