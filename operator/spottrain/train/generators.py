"""The random generators of a process: `random`, numpy's, torch's on the CPU and on the current GPU."""

import random
import sys
from collections.abc import Mapping
from typing import Any


def states() -> dict[str, Any]:
    """Their states, of kinds that torch loads with `weights_only`."""
    import torch

    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state(legacy=True)
        found["numpy"] = [name, keys.tolist(), *rest]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def put_back(found: Mapping[str, Any]) -> None:
    """Set them to what `states` gave; those that it had not are left alone."""
    import torch

    random.setstate(found["python"])
    torch.set_rng_state(found["torch"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in found:
        name, keys, *rest = found["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), *rest))
    if "cuda" in found and torch.cuda.is_available():
        torch.cuda.set_rng_state(found["cuda"])
