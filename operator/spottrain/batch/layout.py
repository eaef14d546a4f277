"""What a batch is, and where its results lie below a URI.

    batches/<hash>/batch.json       model, parameters, and into how many shards the inputs are dealt
    batches/<hash>/00007/lineage/…  the claims on shard 7
    batches/<hash>/00007/steps/0000002000-<attemptID>-<nonce>/outputs.jsonl, ids.jsonl, COMMIT.json

`<hash>` is that of model and parameters, so that the results of two models can't mix. A shard is a place of
checkpoints like any other (docs/checkpoint-format.md). Each of its commits is a **part**: the results since
the one before, where a training's checkpoint is all there is. So what a shard holds is its whole trail, and
the step of a part is how many inputs the shard is done with, this part's included.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spottrain import errors
from spottrain.checkpoint import layout

FORMAT = 1
BATCHES = "batches/"
OUTPUTS, IDS = "outputs.jsonl", "ids.jsonl"
_DESCRIPTION = "batch.json"
_HASH_LENGTH, _KEY_LENGTH = 16, 32


@dataclass(frozen=True)
class Identity:
    """What decides a result, beside the input: the model, with its version, and the parameters (JSON)."""

    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.model:
            raise errors.ConfigError("say which model computes the results, with its version: model='name@1'")
        try:
            _canonical([self.parameters])
        except (TypeError, ValueError) as error:
            raise errors.ConfigError(
                f"parameters must be JSON, since a hash of them names the results: {error}"
            ) from error

    @property
    def hash(self) -> str:
        """The name of the batch."""
        return _digest(_canonical({"model": self.model, "parameters": self.parameters}))[:_HASH_LENGTH]

    def key(self, name: str) -> str:
        """32 letters and digits for the input `name`: the same whenever and wherever it is computed."""
        return _digest(f"{self.hash}/{name}")[:_KEY_LENGTH]


@dataclass(frozen=True)
class Description:
    """What the first worker of a batch wrote down, and every later one goes by."""

    identity: Identity
    shards: int

    @property
    def key(self) -> str:
        """Where it lies."""
        return f"{BATCHES}{self.identity.hash}/{_DESCRIPTION}"

    def encode(self) -> bytes:
        """The bytes of batch.json."""
        said = {"format": FORMAT, "model": self.identity.model, "parameters": self.identity.parameters}
        return json.dumps({**said, "shards": self.shards}, indent=1, sort_keys=True).encode()


def decode(data: bytes, key: str) -> Description:
    """The description in these bytes; CheckpointError when they are none, or NewerFormat."""
    try:
        raw = json.loads(data)
        layout.refuse_newer(raw["format"], key)
        return Description(Identity(raw["model"], raw["parameters"]), int(raw["shards"]))
    except (ValueError, KeyError, TypeError) as error:
        raise errors.CheckpointError(f"{key} cannot be read: {error!r}") from error


def parse_description_key(key: str) -> str | None:
    """The hash of the batch that is described at `key`; None when it is no description."""
    parts = key.removeprefix(BATCHES).split("/")
    return parts[0] if key.startswith(BATCHES) and parts[1:] == [_DESCRIPTION] else None


def shard_prefix(batch: str, shard: int) -> str:
    """Where a shard lies."""
    return f"{BATCHES}{batch}/{shard:05d}/"


def shard_of(name: str, shards: int) -> int:
    """The shard of an input: by its name alone, so that no change of the inputs' order or number moves it."""
    return int(_digest(name)[:16], 16) % shards


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
