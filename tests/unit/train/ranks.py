"""Ranks as threads: channels between them that need no network, and a way to run all of them at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from spottrain import errors
from spottrain.train import peers

_PATIENCE = 10.0


class _Table:
    """Where the ranks of one channel lay down what they say."""

    def __init__(self, world: int) -> None:
        self.barrier = threading.Barrier(world, timeout=_PATIENCE)
        self.said: list[Any] = [None] * world


class _Seat:
    """One rank's channel."""

    def __init__(self, rank: int, table: _Table) -> None:
        self._rank, self._table = rank, table

    def agree(self, values: Sequence[int]) -> list[int]:
        return [max(column) for column in zip(*self._exchange(list(values)), strict=True)]

    def share(self, value: Any) -> Any:
        return self._exchange(value)[0]

    def gather(self, value: Any) -> list[Any]:
        said = self._exchange(value)
        return said if self._rank == 0 else []

    def _exchange(self, value: Any) -> list[Any]:
        try:
            self._table.barrier.wait()
            self._table.said[self._rank] = value
            self._table.barrier.wait()
            said = list(self._table.said)
            self._table.barrier.wait()
        except threading.BrokenBarrierError as error:
            raise errors.PeerLost("another rank is gone") from error
        return said

    def leave(self) -> None:
        """Die."""
        self._table.barrier.abort()


def together(world: int, act: Callable[[peers.Peers], Any]) -> list[Any]:
    """What `act` returned or raised on each of `world` ranks."""
    steps, saves = _Table(world), _Table(world)
    lines = [peers.Peers(rank, world, _Seat(rank, steps), _Seat(rank, saves)) for rank in range(world)]

    def one(line: peers.Peers) -> Any:
        try:
            return act(line)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            return error

    with ThreadPoolExecutor(world) as pool:
        return list(pool.map(one, lines))


def leave_saves(line: peers.Peers) -> None:
    """This rank's uploads die: the others find the connection broken."""
    assert isinstance(line.saves, _Seat)
    line.saves.leave()
