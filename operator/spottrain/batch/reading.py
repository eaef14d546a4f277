"""Reading a batch: every result that was committed, each input's once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spottrain import errors
from spottrain.batch import layout, parts
from spottrain.checkpoint import lineage, location, view
from spottrain.checkpoint.store import Below, Store


def results(
    uri: str,
    *,
    model: str,
    parameters: Mapping[str, Any] | None = None,
    endpoint: str = "",
    region: str = "",
) -> Iterator[dict[str, Any]]:
    """The results at `uri` of this model with these parameters: `{"id": …, "output": …}` or `"error"`.

    As they are now, also while workers run; by shard, and within one in the order in which they were done.
    BatchError when there is no such batch, StoreErrors, CheckpointError when a part's bytes are damaged.
    """
    store = location.open_store(location.Location(uri, endpoint, region))
    wanted = layout.Identity(model, parameters or {})
    for described in describe(store):
        if described.identity.hash == wanted.hash:
            return read(store, described)
    raise errors.BatchError(f"{store.uri} holds no results of {model} with these parameters")


def describe(store: Store) -> list[layout.Description]:
    """The batches below a URI."""
    keys = [entry.key for entry in store.list(layout.BATCHES) if layout.parse_description_key(entry.key)]
    found = ((key, store.get(key)) for key in keys)
    return [layout.decode(data, key) for key, data in found if data is not None]


def read(store: Store, described: layout.Description) -> Iterator[dict[str, Any]]:
    """The results of a batch."""
    for number in range(described.shards):
        yield from _shard(Below(store, layout.shard_prefix(described.identity.hash, number)))


def _shard(place: Store) -> Iterator[dict[str, Any]]:
    told: set[str] = set()
    for part in _parts(place):
        # A part that a worker could not read was computed anew; should it be readable now, it has come first.
        yield from (one for one in parts.outputs(place, part) if one["id"] not in told)
        told.update(part.ids)


def _parts(place: Store) -> Iterator[parts.Part]:
    # Parts before claims: whoever wrote a part had claimed before.
    seen = view.look(place)
    known = lineage.Records(place).refresh()
    if not known:
        return iter(())
    return parts.read(place, seen, lineage.trail(known, max(known), seen.committed), lambda _: None)


@dataclass(frozen=True)
class Standing:
    """How far a batch is: inputs that are done with (rejected ones too), in how many parts."""

    described: layout.Description
    inputs: int
    parts: int


def standing(store: Store, described: layout.Description) -> Standing:
    """How far this batch is."""
    found = [
        list(_parts(Below(store, layout.shard_prefix(described.identity.hash, number))))
        for number in range(described.shards)
    ]
    inputs = sum(len({name for part in shard for name in part.ids}) for shard in found)
    return Standing(described, inputs, sum(map(len, found)))
