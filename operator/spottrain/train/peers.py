"""The library's own line between the ranks, apart from training's collectives.

Two channels, each used by one thread: `steps` by the training thread, `saves` by the one that uploads.
Whoever waits here waits as long as it takes (rank 0 may evaluate for an hour); what bounds the waiting
after a stop was asked for is the watchdog, and a dead peer breaks the connection and raises PeerLost at
once.
"""

import datetime as dt
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spottrain import errors

_PATIENCE = dt.timedelta(days=1)


class Channel(Protocol):
    """What all ranks call in the same order. PeerLost when a rank is gone."""

    def agree(self, values: Sequence[int]) -> list[int]:
        """The largest value of any rank, place by place; every rank gets the same."""

    def share(self, value: Any) -> Any:
        """Rank 0's value, which must be JSON, on every rank."""

    def gather(self, value: Any) -> list[Any]:
        """On rank 0 every rank's value (JSON), by rank; elsewhere nothing."""


@dataclass(frozen=True)
class Peers:
    """This process's place among the ranks, and its channels to them.

    `processes`: the ranks are processes that hold torch's connections to each other.
    """

    rank: int
    world: int
    steps: Channel
    saves: Channel
    processes: bool = False


class _Alone:
    """The channel of a single process."""

    def agree(self, values: Sequence[int]) -> list[int]:
        return list(values)

    def share(self, value: Any) -> Any:
        return value

    def gather(self, value: Any) -> list[Any]:
        return [value]


class _Gloo:
    """A channel over a gloo group of its own: small messages on the CPU, whatever training itself uses."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._dist = torch.distributed
        self._group = self._dist.new_group(backend="gloo", timeout=_PATIENCE)
        self._rank = self._dist.get_rank()
        self._world = self._dist.get_world_size()

    def agree(self, values: Sequence[int]) -> list[int]:
        tensor = self._torch.tensor(values, dtype=self._torch.int64)
        self._do("all_reduce", tensor, op=self._dist.ReduceOp.MAX)
        return [int(value) for value in tensor.tolist()]

    def share(self, value: Any) -> Any:
        data = self._bytes(value) if self._rank == 0 else None
        size = self._torch.tensor([0 if data is None else len(data)], dtype=self._torch.int64)
        self._do("broadcast", size, src=0)
        if data is None:
            data = self._torch.empty(int(size), dtype=self._torch.uint8)
        self._do("broadcast", data, src=0)
        return json.loads(bytes(data.tolist()))

    def gather(self, value: Any) -> list[Any]:
        data = self._bytes(value)
        sizes = [self._torch.zeros(1, dtype=self._torch.int64) for _ in range(self._world)]
        self._do("all_gather", sizes, self._torch.tensor([len(data)], dtype=self._torch.int64))
        padded = self._torch.zeros(max(int(size) for size in sizes), dtype=self._torch.uint8)
        padded[: len(data)] = data
        into = [self._torch.empty_like(padded) for _ in range(self._world)] if self._rank == 0 else None
        self._do("gather", padded, gather_list=into, dst=0)
        return [json.loads(bytes(d[: int(n)].tolist())) for d, n in zip(into or (), sizes, strict=False)]

    def _bytes(self, value: Any) -> Any:
        return self._torch.tensor(list(json.dumps(value).encode()), dtype=self._torch.uint8)

    def _do(self, collective: str, *tensors: Any, **options: Any) -> None:
        try:
            getattr(self._dist, collective)(*tensors, group=self._group, **options)
        except RuntimeError as error:
            raise errors.PeerLost(f"another rank is gone ({error})") from error


ALONE = Peers(0, 1, _Alone(), _Alone())


def lead(line: Peers, act: Callable[[], Any]) -> Any:
    """What `act` answers (JSON) on rank 0, on every rank; a SpottrainError it raises, likewise."""
    caught: errors.SpottrainError | None = None
    answer: Any = None
    if line.rank == 0:
        try:
            answer = {"value": act()}
        except errors.SpottrainError as error:
            caught = error
            answer = {"error": type(error).__name__, "text": str(error)}
    answer = line.steps.share(answer)
    if caught is not None:
        raise caught
    if "error" in answer:
        raise getattr(errors, answer["error"])(answer["text"])
    return answer["value"]


def connect(env: Mapping[str, str], *, workers: int) -> Peers:
    """The line to the other ranks, if there are any. Every rank calls this at the same place of the program.

    `workers`: how many pods the job has. ConfigError when there should be others and torch.distributed
    isn't up.
    """
    torch = sys.modules.get("torch")
    if torch is not None and _is_up(torch) and torch.distributed.get_world_size() > 1:
        rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        return Peers(rank, size, _Gloo(torch), _Gloo(torch), processes=True)
    world = max(int(env.get("WORLD_SIZE") or 1), workers)
    if world > 1:
        raise errors.ConfigError(
            f"this process is one of {world} and torch.distributed is not initialised: "
            "call torch.distributed.init_process_group() before spottrain.session()"
        )
    return ALONE


def _is_up(torch: Any) -> bool:
    distributed = importlib.import_module("torch.distributed") if torch else None
    return bool(distributed and distributed.is_available() and distributed.is_initialized())


def is_loss(error: BaseException) -> bool:
    """Whether this error means that another rank is gone, in our collectives or in training's."""
    if isinstance(error, errors.PeerLost):
        return True
    kinds = getattr(sys.modules.get("torch.distributed"), "DistError", ())
    # gloo's broken connections are plain RuntimeErrors that name its source files.
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "gloo" in str(error))


def host() -> str:
    """This machine's name, for messages."""
    return os.uname().nodename
