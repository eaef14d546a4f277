"""Checkpoints as programs lay them out, in their real formats but small, and without their libraries."""

import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any


def tensors(path: Path, count: int = 4) -> Path:
    """A safetensors file of that many numbers."""
    data = struct.pack(f"<{count}f", *range(count))
    header = {"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, len(data)]}}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return _write(path, struct.pack("<Q", len(text)) + text + data)


def saved(path: Path, **state: Any) -> Path:
    """What torch.save writes: a zip archive with the pickled state and the numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", pickle.dumps(state, protocol=2))
        archive.writestr(f"{path.stem}/data/0", bytes(256))
    return path


def hugging_face(root: Path, step: int) -> Path:
    """A folder of the Trainer."""
    folder = root / f"checkpoint-{step}"
    tensors(folder / "model.safetensors")
    saved(folder / "optimizer.pt", step=step)
    _write(folder / "trainer_state.json", json.dumps({"global_step": step}).encode())
    return folder


def distributed(folder: Path, shards: int = 1) -> Path:
    """A folder of torch.distributed.checkpoint."""
    for rank in range(shards):
        _write(folder / f"__{rank}_0.distcp", bytes(64))
    _write(folder / ".metadata", pickle.dumps({"state_dict_metadata": {}}))
    return folder


def cut(path: Path, by: int = 1) -> None:
    """Take its last bytes away."""
    _write(path, path.read_bytes()[:-by])


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
