"""What the time of workers on nodes comes to: by capacity and outcome, and with prices as money.

::

    bound ────────► all run ────────► trains ────────► checkpoint ────────► … ────────► the pod's end
           waiting          restoring         useful              useful        useful, or lost

What is paid for is a pod on a node, so its time is from when it was bound until the last of its containers
ended, or until it was seen to be gone. Up to each of the marks above the time of all workers of a gang gets
its outcome as soon as the mark is known; the rest gets it when the last of them has ended: useful if the job
is complete, and up to the last save that their last words tell of, else lost. An index of an Independent job
has no marks but the start of its program, and is settled by itself. What can't be known is lost.

Nothing is counted twice: a worker is in a line of the ledger from when it is bound until its pod is gone and
forgotten, and a second gets its outcome in the same write that moves the mark past it.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
import math

from spottrain.api import clouds, conditions, indexes, ledger, prices, spec, status
from spottrain.api import shards as kept
from spottrain.plan import draft as drafts
from spottrain.plan import loss
from spottrain.plan import snapshot as snap

FIGURES_EVERY = dt.timedelta(minutes=10)
"""How old the figures of a job may get while nothing else is written of it. No wake-up of its own is needed:
the operator looks at every job each two minutes."""
Key = tuple[int, str, prices.Rate | None]
Outcome = ledger.Outcome


def settle(draft: drafts.Draft) -> None:
    """Bring the ledger up to date: last of all, so that it is known whether anything else is written."""
    if draft.snapshot.deleting or draft.status.attempt == 0:
        return
    book = _Book(draft)
    book.take_in()
    book.close()
    book.pass_marks()
    book.settle_attempts()
    _put(draft, book.as_it_is())


def _put(draft: drafts.Draft, book: ledger.Ledger) -> None:
    """People's figures move with whatever else is written, and by themselves every few minutes."""
    draft.update(cost=book)
    now, under_way = draft.snapshot.now, any(line.there for line in book.lines)
    due = under_way and (book.time is None or now - book.time >= FIGURES_EVERY)
    if (book.lines or book.accounts) and (due or _says_more(draft)):
        draft.update(cost=dataclasses.replace(book, time=now))


def _says_more(draft: drafts.Draft) -> bool:
    """As it is written: a time that was just taken has fractions of a second, one that was read has none."""
    return draft.snapshot.is_news(draft.status)


class _Book:
    """The ledger in the making."""

    def __init__(self, draft: drafts.Draft) -> None:
        self._draft = draft
        self._snapshot = draft.snapshot
        self._now = _unix(draft.snapshot.now)
        self._book = draft.status.cost
        self._lines: dict[Key, ledger.Line] = {_key(line): line for line in self._book.lines}
        pods = (*draft.snapshot.departed, *draft.snapshot.leftover, *draft.snapshot.pods)
        self._pods = {(pod.attempt, pod.index): pod for pod in pods}
        """As they were last seen."""
        wishes = draft.snapshot.spec
        self._has_prices = not isinstance(wishes, spec.InvalidSpecError) and wishes.prices is not None
        self._told: set[str] = set()
        """The nodes whose price can't be read."""
        self._there = {
            (pod.attempt, pod.index)
            for pod in (*draft.snapshot.leftover, *draft.snapshot.pods)
            if not pod.ended
        }

    def as_it_is(self) -> ledger.Ledger:
        """Without lines that nothing can come of."""
        remembered: dict[int, list[int]] = {}
        for attempt, index in self._pods:
            remembered.setdefault(attempt, []).append(index)
        lines = [
            one
            if one.rest or self._snapshot.job is None  # without it no pods are shown
            else dataclasses.replace(one, ended=one.ended & indexes.of(remembered.get(one.attempt, ())))
            for one in self._lines.values()
        ]
        left = tuple(line for line in lines if line.there or line.ended or line.rest)
        return dataclasses.replace(self._book, lines=left)

    def take_in(self) -> None:
        """The workers that have a node and are in no line yet; also one that came and went meanwhile."""
        known = {(line.attempt, index) for line in self._lines.values() for index in line.there | line.ended}
        unseen = [pod for pod in self._snapshot.departed if self._left_since(pod)]
        new: dict[Key, dict[int, int]] = {}
        for pod in (*unseen, *self._snapshot.pods):
            if pod.node and (pod.attempt, pod.index) not in known:
                new.setdefault(self._key_of(pod), {})[pod.index] = _start(pod)
        for key, starts in new.items():
            line = self._lines.get(key) or ledger.Line(*key)
            since = line.since + sum(max(start, line.mark) for start in starts.values())
            self._lines[key] = dataclasses.replace(line, there=line.there | indexes.of(starts), since=since)

    def _left_since(self, pod: snap.Pod) -> bool:
        """It went after the ledger was last written; whoever wrote it then knew of all that had gone."""
        last = self._book.time
        return pod.left is not None and (last is None or pod.left >= last)

    def _key_of(self, pod: snap.Pod) -> Key:
        node = self._snapshot.machine(pod)
        capacity = node.capacity if node else clouds.Capacity.UNKNOWN
        if node is not None and node.rate_problem and not self._has_prices and node.name not in self._told:
            self._told.add(node.name)
            text = f"node {node.name}: {node.rate_problem}"
            self._draft.say(conditions.PRICE_UNREADABLE, text, with_status=True)
        return pod.attempt, _name(capacity), _rate(self._snapshot, capacity, node)

    def close(self) -> None:
        """The workers that have ended since, or are gone."""
        for key, line in self._lines.items():
            gone = [index for index in line.there if (line.attempt, index) not in self._there]
            if gone:
                self._lines[key] = self._closed(line, gone)

    def _closed(self, line: ledger.Line, gone: list[int]) -> ledger.Line:
        """One that went while nobody looked has ended now, and began as the others did on average."""
        since, rest, left = line.since, line.rest, len(line.there)
        pods = [(index, self._pods.get((line.attempt, index))) for index in gone]
        for index, pod in sorted(pods, key=lambda one: one[1] is None):
            start = max(_start(pod), line.mark) if pod else line.mark or since // left
            seconds = max(0, (_end(pod, self._now) if pod else self._now) - start)
            if self._snapshot.independent:
                self._settle_index(line, index, pod, seconds)
            else:
                rest += seconds
            since, left = max(0, since - start), left - 1
        return dataclasses.replace(
            line,
            there=line.there - indexes.of(gone),
            since=since if left else 0,
            ended=line.ended | indexes.of(gone),
            rest=rest,
        )

    def _settle_index(self, line: ledger.Line, index: int, pod: snap.Pod | None, seconds: int) -> None:
        waited = seconds
        if pod is None:
            waited = 0
        elif pod.exit is not None:
            began = pod.exit.started
            waited = 0 if began is None else min(seconds, max(0, _unix(began) - _start(pod)))
        self._count(line, Outcome.WAITING, waited)
        lost = 0 if self._is_finished(line, index, pod) else seconds - waited
        if pod is not None:
            lost = min(lost, self._after(pod, line, _saved_until(pod.said)))
        self._count(line, Outcome.LOST, lost)
        self._count(line, Outcome.USEFUL, seconds - waited - lost)

    def _is_finished(self, line: ledger.Line, index: int, pod: snap.Pod | None) -> bool:
        if pod is not None:
            return loss.classify(pod, self._snapshot).fate is loss.Fate.FINISHED
        shards = self._draft.status.shards or kept.Shards()
        return index in shards.completed and shards.attempt(index) == line.attempt

    def _after(self, pod: snap.Pod, line: ledger.Line, moment: float) -> int:
        """Seconds of a pod that has ended, of those that have no outcome yet, after that moment."""
        since = max(_start(pod), line.mark, moment)
        return max(0, int(_end(pod, self._now) - since)) if since < math.inf else 0

    def pass_marks(self) -> None:
        """Of the attempt that the snapshot shows: until when its workers waited, restored, were useful."""
        number = self._snapshot.status.attempt
        marks = [] if self._snapshot.independent else [*self._marks(number)]
        for key, line in self._lines.items():
            if line.attempt == number and line.there:
                self._lines[key] = self._passed(line, marks)

    def _marks(self, number: int) -> cabc.Iterator[tuple[dt.datetime, Outcome]]:
        """In the order of time."""
        attempt = self._attempt(number)
        if attempt is None or attempt.running is None:
            return
        yield attempt.running, Outcome.WAITING
        told = self._snapshot.progress
        report = told.report if told and told.attempt_id == attempt.id else None
        if report is None:
            return
        if report.began is not None:
            yield report.began, Outcome.RESTORING
        if report.saved is not None and report.saved.time is not None:
            yield _captured(report.saved.time, report.saved.save_seconds), Outcome.USEFUL

    def _attempt(self, number: int) -> status.Attempt | None:
        return next((one for one in self._draft.status.attempts if one.number == number), None)

    def _passed(self, line: ledger.Line, marks: cabc.Iterable[tuple[dt.datetime, Outcome]]) -> ledger.Line:
        starts = [_start(self._pods[line.attempt, index]) for index in line.there]
        for moment, outcome in marks:
            mark = min(_unix(moment), self._now)
            if mark <= line.mark:
                continue
            seconds = sum(max(0, mark - max(start, line.mark)) for start in starts)
            self._count(line, outcome, seconds)
            line = dataclasses.replace(line, since=line.since + seconds, mark=mark)
        return line

    def settle_attempts(self) -> None:
        """What is left of attempts whose workers have all ended, and of which none will come."""
        running = {line.attempt for line in self._lines.values() if line.there}
        for key, line in self._lines.items():
            if line.rest and line.attempt not in running and self._is_over(line.attempt):
                self._settle_rest(line)
                self._lines[key] = dataclasses.replace(line, rest=0)

    def _is_over(self, number: int) -> bool:
        now = self._draft.status
        return number < now.attempt or now.over or now.phase is status.Phase.SUSPENDED

    def _settle_rest(self, line: ledger.Line) -> None:
        now, attempt = self._draft.status, self._attempt(line.attempt)
        complete = now.phase is status.Phase.COMPLETE and line.attempt == now.attempt
        if not complete and attempt is not None and attempt.running is None:
            self._count(line, Outcome.WAITING, line.rest)
            return
        lost = 0 if complete else min(line.rest, self._lost(line, attempt))
        self._count(line, Outcome.LOST, lost)
        self._count(line, Outcome.USEFUL, line.rest - lost)

    def _lost(self, line: ledger.Line, attempt: status.Attempt | None) -> int:
        """What came after the last save that is known; one that began after the stop holds all."""
        pods = [pod for pod in self._pods.values() if pod.attempt == line.attempt]
        known = self._draft.status.checkpoint
        told = _captured(known.time, known.save_seconds).timestamp() if known and known.time else 0.0
        saved = max((told, *(_saved_until(pod.said) for pod in pods)))
        if attempt is not None and attempt.end is not None:
            stop = max((attempt.end, *(pod.train_until for pod in pods if pod.train_until)))
            if saved >= stop.timestamp():
                return 0
        ended = [self._pods.get((line.attempt, index)) for index in line.ended]
        if saved < math.inf and None in ended:  # nobody remembers when it ended
            return line.rest
        return sum(self._after(pod, line, saved) for pod in ended if pod is not None)

    def _count(self, line: ledger.Line, outcome: Outcome, seconds: int) -> None:
        self._book = self._book.plus(line.capacity, outcome, seconds, line.rate)


def _key(line: ledger.Line) -> Key:
    return line.attempt, line.capacity, line.rate


def _name(capacity: clouds.Capacity) -> str:
    """Reserved machines are bought as on-demand ones are, and fill a floor as they do."""
    return str(clouds.Capacity.ON_DEMAND if capacity.fills_floor else capacity)


def _rate(snapshot: snap.Snapshot, capacity: clouds.Capacity, node: snap.Node | None) -> prices.Rate | None:
    """The spec's prices, else the table's, else the node's own."""
    if isinstance(snapshot.spec, spec.Spec) and snapshot.spec.prices is not None:
        return snapshot.spec.prices.rate(capacity)
    if node is None:
        return None
    return snapshot.prices.rate(capacity, node.instance_type, node.zone) or node.rate


def _unix(moment: dt.datetime) -> int:
    return int(moment.timestamp())


def _start(pod: snap.Pod) -> int:
    return _unix(pod.bound or pod.created)


def _end(pod: snap.Pod, now: int) -> int:
    moment = pod.stopped or (pod.exit.finished if pod.exit else None) or pod.left
    return now if moment is None else _unix(moment)


def _captured(committed: dt.datetime, seconds: float | None) -> dt.datetime:
    """A save holds the state of the moment at which it began."""
    return committed - dt.timedelta(seconds=seconds or 0.0)


def _saved_until(said: snap.Words | None) -> float:
    """The moment (Unix seconds) up to which the work of a life is saved, by its last word; inf: all of it.

    A sidecar knows what is stored, and not what its program has done since.
    """
    if said is None or said.step is None or said.saved_step is None:
        return 0.0
    library, more = said.state not in {"", snap.UNSAVED}, said.step != said.resumed_from
    if library and more and said.saved_step >= said.step:
        return math.inf
    return 0.0 if said.saved_time is None else _captured(said.saved_time, said.save_seconds).timestamp()
