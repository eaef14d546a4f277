"""The fields of a SpotTrainingJob that this version reads and writes, and which of them a schema lacks."""

import collections.abc as cabc
import functools
import importlib.resources
from typing import Any

Schema = cabc.Mapping[str, Any]

_OURS = ("spec", "status")
_SHOWN = 5


def paths(schema: Schema) -> frozenset[str]:
    """Every field of spec and status, as `status.attempts[].cause`.

    Nothing below a field that keeps what its schema doesn't know, such as a pod: nothing gets lost there.
    """
    root = _table(schema.get("properties"))
    return frozenset(path for name in _OURS if name in root for path in (name, *_below(root[name], name)))


def _table(found: object) -> cabc.Mapping[str, Any]:
    """Nothing is known to be there where a server publishes anything but a table."""
    return found if isinstance(found, cabc.Mapping) else {}


def _below(found: object, path: str) -> cabc.Iterator[str]:
    schema = _table(found)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, child in _table(schema.get("properties")).items():
        yield f"{path}.{name}"
        yield from _below(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(child := schema.get(key), dict):
            yield from _below(child, f"{path}[]")


@functools.cache
def known() -> frozenset[str]:
    """What the resource of this version has. `make manifests` writes the list."""
    return frozenset(importlib.resources.files(__package__).joinpath("fields.txt").read_text().split())


def lacking(schema: Schema) -> list[str]:
    """What that schema lacks of `known()`, in order; of a missing field not the fields below it."""
    gone = known() - paths(schema)
    return sorted(path for path in gone if not any(path.startswith((f"{one}.", f"{one}[")) for one in gone))


def kept(found: object, path: str, lacking: cabc.Set[str]) -> object:
    """What a server that lacks these fields keeps of what is written to that path."""
    if not lacking:
        return found
    if isinstance(found, dict):
        below = ((name, f"{path}.{name}", value) for name, value in found.items())
        return {name: kept(value, place, lacking) for name, place, value in below if place not in lacking}
    if isinstance(found, list):
        return [kept(one, f"{path}[]", lacking) for one in found]
    return found


def shown(names: cabc.Sequence[str]) -> str:
    """The first few of many, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
