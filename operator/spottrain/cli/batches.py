"""`spottrain batch`: which batches there are, and how far they are."""

import json
from collections.abc import Sequence
from typing import Any

from spottrain import errors
from spottrain.batch import layout, reading
from spottrain.checkpoint.store import Store
from spottrain.cli import words


def look(store: Store) -> list[reading.Standing]:
    """Each batch below a URI."""
    return [reading.standing(store, described) for described in reading.describe(store)]


def find(store: Store, name: str) -> layout.Description:
    """The batch whose hash begins with `name`; BatchError, with those that there are, unless it is one."""
    known = reading.describe(store)
    found = [one for one in known if one.identity.hash.startswith(name)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{one.identity.hash} ({one.identity.model})" for one in known) or "none"
    raise errors.BatchError(f"name one batch, by the beginning of its hash; in {store.uri}: {there}")


def table(found: Sequence[reading.Standing]) -> str:
    """For people."""
    heads = ("BATCH", "DONE", "PARTS", "SHARDS", "MODEL", "PARAMETERS")
    return words.table(heads, ([*map(str, _cells(one))] for one in found))


def _cells(one: reading.Standing) -> tuple[object, ...]:
    what = one.described.identity
    parameters = json.dumps(what.parameters, sort_keys=True)
    return what.hash, one.inputs, one.parts, one.described.shards, what.model, parameters


def plain(one: reading.Standing) -> dict[str, Any]:
    """For programs."""
    what = one.described.identity
    return {
        "batch": what.hash,
        "done": one.inputs,
        "parts": one.parts,
        "shards": one.described.shards,
        "model": what.model,
        "parameters": dict(what.parameters),
    }
