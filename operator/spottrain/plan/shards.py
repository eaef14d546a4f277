"""The indexes of an Independent job beside their pods, and what a pass finds out about them."""

import dataclasses
import datetime as dt

from spottrain.api import indexes, spec
from spottrain.api import shards as kept
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap


@dataclasses.dataclass(frozen=True)
class Places:
    """`current`: the pods of their index's current attempt.

    `older`: those of attempts before, and of indexes that have ended for good.
    """

    current: dict[int, snap.Pod]
    older: tuple[snap.Pod, ...]

    @property
    def live(self) -> dict[int, snap.Pod]:
        """The current pods that have not ended."""
        return {index: pod for index, pod in self.current.items() if not pod.ended}

    @property
    def lingering(self) -> set[int]:
        """The indexes of which an older pod has not ended."""
        return {pod.index for pod in self.older if not pod.ended}


def places(draft: drafts.Draft) -> Places:
    """Whose pod is whose, by what the draft's status records; a pass may change that."""
    shards = draft.status.shards or kept.Shards()
    decided, workers = shards.decided, draft.snapshot.workers
    current: dict[int, snap.Pod] = {}
    older = []
    for pod in draft.snapshot.pods:
        open_ = pod.index < workers and pod.index not in decided
        if open_ and pod.attempt == shards.attempt(pod.index):
            current[pod.index] = pod
        else:
            older.append(pod)
    return Places(current, tuple(older))


def wanted(draft: drafts.Draft) -> int:
    """How many workers should run now: fewer than may, when fewer indexes are left."""
    shards, wishes = draft.status.shards or kept.Shards(), draft.snapshot.spec
    left = len(indexes.below(draft.snapshot.workers) - shards.decided)
    return left if isinstance(wishes, spec.InvalidSpecError) else min(left, wishes.at_once)


class Ledger:
    """What a pass finds out about indexes; it goes into the status at once."""

    def __init__(self) -> None:
        self.completed: set[int] = set()
        self.failed: set[int] = set()
        self.made: set[int] = set()
        self.again: dict[int, int] = {}
        self.failures: dict[int, int] = {}
        self.retries: dict[dt.datetime, set[int]] = {}

    def begin_again(self, index: int, at: dt.datetime | None = None) -> None:
        """The index's attempt is over, and its next one begins: at once, or at that moment."""
        self.again[index] = 1
        if at is not None:
            self.retries.setdefault(at, set()).add(index)

    def put_into(self, shards: kept.Shards) -> kept.Shards:
        """The shards with all of it."""
        decided = indexes.of(self.completed | self.failed)
        again, made = indexes.of(self.again), indexes.of(self.made)
        whole = dataclasses.replace(
            shards,
            completed=shards.completed | indexes.of(self.completed),
            failed=shards.failed | indexes.of(self.failed),
            made=(shards.made | made) - again - decided,
            restarts=shards.restarts.plus(self.again),
            failures=shards.failures.plus(self.failures),
        )
        return whole.without_retries(decided | again | made).with_retries(self.retries)


def release_what_is_deleted(draft: drafts.Draft) -> None:
    """What the plan itself deletes is nobody's loss: those indexes begin again, when they may.

    All of a job's pods are deleted to suspend it or to give it another template.
    """
    shards, deletes = draft.status.shards, draft.deletes
    if shards is None or not deletes:
        return
    ledger = Ledger()
    for index, pod in places(draft).live.items():
        if pod.uid in deletes:
            ledger.begin_again(index)
    draft.update(shards=ledger.put_into(shards))
