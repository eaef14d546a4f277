"""Whether a file is all there, as far as its own format says where it ends.

What torch.save and numpy.savez write is a zip archive, whose table of contents comes last; safetensors and
JSON say how long they are. Nothing is unpickled: that could run anything.
"""

import json
import pickletools
import struct
import zipfile
from pathlib import Path

_ZIP = b"PK\x03\x04"
_NEVER_EMPTY = {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz"}
_MEMO = {"BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"}
_OPCODES = 10_000


def problem(path: Path) -> str | None:
    """What is missing of the file, None if nothing that could be noticed is."""
    try:
        if path.suffix in _NEVER_EMPTY and path.stat().st_size < len(_ZIP):
            return f"{path.name} is empty"
        if _is_zip(path):
            zipfile.ZipFile(path).close()
        elif path.suffix == ".safetensors":
            return _short_of_tensors(path)
        elif path.suffix == ".json":
            json.loads(path.read_bytes())
    except FileNotFoundError:
        return f"{path.name} is gone"
    except (zipfile.BadZipFile, ValueError, struct.error) as error:
        return f"{path.name} is not whole ({error})"
    return None


def tells_its_end(path: Path) -> bool:
    """Whether `problem` would notice if anything of its end were missing."""
    try:
        return path.suffix == ".safetensors" or _is_zip(path)
    except FileNotFoundError:
        return False


def global_step(path: Path) -> int | None:
    """The number under `global_step` in what torch.save wrote, as Lightning has it; None if there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((one for one in archive.namelist() if one.endswith("/data.pkl")), None)
            return None if name is None else _after_key(archive.read(name), "global_step")
    except (OSError, zipfile.BadZipFile, ValueError):
        return None


def _after_key(pickled: bytes, key: str) -> int | None:
    found = False
    for number, (opcode, value, _) in enumerate(pickletools.genops(pickled)):
        if number > _OPCODES:
            break
        if opcode.name in _MEMO:
            continue
        if found:
            return value if isinstance(value, int) else None
        found = value == key
    return None


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _short_of_tensors(path: Path) -> str | None:
    """By the format of safetensors: eight bytes of length, a JSON header of offsets, then the data."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        size = path.stat().st_size
        if length > size:
            return f"{path.name} is not whole ({size} bytes, and its header alone has {length})"
        header = json.loads(file.read(length))
    ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
    wanted = 8 + length + max(ends, default=0)
    return None if size >= wanted else f"{path.name} is not whole ({size} of {wanted} bytes)"
