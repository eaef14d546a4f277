"""`logs`: what a worker wrote, attempt after attempt, as far as its pods are still there."""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from spottrain import errors
from spottrain.cli import once
from spottrain.cli.history import History, Worker
from spottrain.train.clock import Clock

POLL_SECONDS = 2.0


class Cluster(Protocol):
    """What is needed of it; see kubectl.Kubectl."""

    def stream(self, *arguments: str) -> Iterator[str]: ...  # noqa: D102


@dataclass(frozen=True)
class Wish:
    """Whose log: of worker `index`, of one `attempt` or of all; `follow`: on into the attempts to come."""

    index: int = 0
    attempt: int | None = None
    follow: bool = False


@dataclass(frozen=True)
class Piece:
    """One attempt's log. `pod` is empty where there is none to read; `over`: and none will come."""

    attempt: int
    pod: str
    remark: str
    over: bool = True


def pieces(one: History, wish: Wish) -> list[Piece]:
    """What there is to read, the oldest attempt first. Raises ClusterError: no such worker or attempt."""
    size = int(one.spec.get("workers", 1))
    if not 0 <= wish.index < size:
        raise errors.ClusterError(f"there is no worker {wish.index}: {one.name} has 0 to {size - 1}")
    newest = _newest(one, wish.index)
    if wish.attempt is not None and not 1 <= wish.attempt <= newest:
        raise errors.ClusterError(f"there is no attempt {wish.attempt}: the newest is {newest}")
    numbers = range(1, newest + 1) if wish.attempt is None else (wish.attempt,)
    pods = {worker.attempt: worker for worker in _own(one) if worker.index == wish.index}
    found = [_piece(one, wish, number, pods.get(number), last=number == newest) for number in numbers]
    return _without_long_gone(found)


def _newest(one: History, index: int) -> int:
    if one.independent:
        return one.status.shards.attempt(index) if one.status.shards else 0
    return one.status.attempt


def _own(one: History) -> list[Worker]:
    if one.independent:
        return list(one.pods)
    return [worker for life in one.lives for worker in life.workers]


def _piece(one: History, wish: Wish, number: int, worker: Worker | None, *, last: bool) -> Piece:
    who = f"attempt {number}, worker {wish.index}"
    if worker is None:
        still_to_come = last and not one.status.over
        life = next((each for each in one.lives if each.number == number), None)
        ending = f"; {life.ending}" if life and life.ending else ""
        gone = "its pod is gone, and its log with it" if life is None or life.made else "it had no pod"
        gone = "no pod yet" if still_to_come else gone + ending
        return Piece(number, "", f"{who}: {gone}", over=not still_to_come)
    if worker.began is None:
        return Piece(number, "", f"{who}: {worker.pod} has not started: {worker.state}", over=not last)
    return Piece(number, worker.pod, f"==> {worker.pod} ({who}, {worker.state})")


def _without_long_gone(found: list[Piece]) -> list[Piece]:
    """Attempts of which nothing is left at the beginning are one remark, but for the newest of them."""
    gone = next((place for place, piece in enumerate(found) if piece.pod), len(found)) - 1
    if gone < 1:
        return found
    first, last = found[0].attempt, found[gone - 1].attempt
    which = f"attempts {first} to {last}" if last > first else f"attempt {first}"
    return [Piece(last, "", f"{which}: the pods are gone, and their logs with them"), *found[gone:]]


class Fate(enum.Enum):
    """What has become of a pod."""

    RUNS = enum.auto()
    ENDED = enum.auto()
    GONE = enum.auto()


@dataclass(frozen=True)
class Reader:
    """Reads what `wish` says. `find`: the job as it is now; the log goes to `out`, remarks to `note`."""

    wish: Wish
    cluster: Cluster
    find: Callable[[], History]
    clock: Clock
    out: Callable[[str], None]
    note: Callable[[str], None]

    def read(self) -> bool:
        """All of it, and what is still to come if that is wished; whether any could be read."""
        done, any_read = 0, False
        one = self.find()  # not `_found`: a cluster that is away from the beginning may be the wrong one
        while True:
            found = pieces(one, self.wish)
            for piece in found:
                if piece.attempt <= done or (self.wish.follow and not piece.over):
                    continue
                self.note(piece.remark)
                any_read = self._copied(one, piece) or any_read
                done = piece.attempt
            nothing_to_come = one.status.over or self.wish.attempt is not None
            if not self.wish.follow or (nothing_to_come and (not found or done >= found[-1].attempt)):
                return any_read
            self.clock.sleep(POLL_SECONDS)
            one = self._found()

    def _found(self) -> History:
        """The job, as soon as the cluster answers; that it does not is said once."""
        said = False
        while True:
            try:
                return self.find()
            except errors.ClusterUnreachable as error:
                if not said:
                    self.note(f"no answer, so asked again until there is one: {error}")
                said = True
                self.clock.sleep(POLL_SECONDS)

    def _copied(self, one: History, piece: Piece) -> bool:
        if not piece.pod:
            return False
        if self.wish.follow:
            return self._followed(one.namespace, piece.pod)
        try:
            for line in self.cluster.stream("logs", f"--namespace={one.namespace}", piece.pod):
                self.out(line)
        except errors.ClusterError as error:
            self.note(f"the log of {piece.pod} can't be read: {error}")
            return False
        return True

    def _followed(self, namespace: str, pod: str) -> bool:
        """Read until one that began after the pod's end is over: a connection may break without a word."""
        lines = once.Once()
        trouble: errors.ClusterError | None = None
        while True:
            fate = self._fate(pod)
            if fate is Fate.GONE:
                if trouble or not lines.begun:
                    self.note(f"{pod} is gone, and what was not read of its log with it")
                return lines.begun
            before, trouble = trouble, self._read(namespace, pod, lines, whole=fate is Fate.ENDED)
            if trouble and not _may_pass(trouble, fate, begun=lines.begun):
                self.note(f"the log of {pod} can't be read{' to its end' if lines.begun else ''}: {trouble}")
                return lines.begun
            if fate is Fate.ENDED and not trouble:
                return True
            if trouble and not before:
                what = "broke off" if lines.begun else "did not come"
                self.note(f"the log of {pod} {what}, and is opened again: {trouble}")
            self.clock.sleep(POLL_SECONDS)

    def _read(self, namespace: str, pod: str, lines: once.Once, *, whole: bool) -> errors.ClusterError | None:
        """Copy what comes; why it broke off, if it did. `whole`: a line without an end is no broken one."""
        flags, rest = ("--follow", *lines.reopen()), ""
        try:
            for text in self.cluster.stream("logs", f"--namespace={namespace}", pod, *flags):
                if text.endswith("\n"):
                    self._let_through(lines, text)
                else:
                    rest = text
        except errors.ClusterError as error:
            return error
        if rest and whole:
            self._let_through(lines, rest)
        return None

    def _let_through(self, lines: once.Once, text: str) -> None:
        line = lines.line(text)
        if line is not None:
            self.out(line)

    def _fate(self, pod: str) -> Fate:
        """What has become of it."""
        found = next((one for one in _own(self._found()) if one.pod == pod), None)
        if found is None:
            return Fate.GONE
        return Fate.RUNS if found.ended is None else Fate.ENDED


def _may_pass(trouble: errors.ClusterError, fate: Fate, *, begun: bool) -> bool:
    """Whether to open the log again. Of a pod that has ended, the node may be gone for good."""
    if isinstance(trouble, errors.ClusterUnreachable):
        return True
    return fate is Fate.RUNS and (begun or isinstance(trouble, errors.NodeUnreachable))
