"""What a checkpoint was made under, beside what the run that goes on from it is under.

Versions and the GPU's model are told, and no more: a state is the same whatever computes with it, but for the
last digits of what comes out. The number of ranks decides what each of them has: with another one, shards and
places in the data have no owner. That is refused, before anything is loaded.
"""

import sys
from collections.abc import Mapping

from spottrain import errors
from spottrain.checkpoint import layout, manifest


def here() -> dict[str, str]:
    """Versions of the libraries that are loaded, and the model of the GPU that is in use."""
    found = {"python": ".".join(str(part) for part in sys.version_info[:3])}
    for name in ("torch", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def changes(saved: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Names of what is known of both and isn't the same."""
    return sorted(name for name in saved.keys() & found.keys() if saved[name] != found[name])


def described(names: list[str], values: Mapping[str, str]) -> str:
    """These of the values, for people."""
    return ", ".join(f"{name} {values[name]}" for name in names)


def refuse_other_world(commit: manifest.Commit, world: int) -> None:
    """Raise OtherWorld when another number of ranks saved this, each something of its own."""
    if commit.world_size == world or not any(layout.rank_of(file.name) for file in commit.files):
        return
    raise errors.OtherWorld(
        f"step {commit.step} was saved by {commit.world_size} ranks, each something of its own (its shard, "
        f"its place in the data), and now there are {world}: run with {commit.world_size}; or load it "
        "whatever the number, with spottrain.session(on_resize='Continue') or SPOTTRAIN_ON_RESIZE=Continue, "
        "where ranks that were not there get what rank 0 saved; or begin again with restore: Fresh"
    )
