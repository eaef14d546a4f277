"""`spottrain.batch.session()`: which inputs are to do here, and their results.

    with batch.session(model="name@version", parameters={…}) as run:
        for row in run.todo(rows):
            run.write(row, compute(row))

Results are committed in parts, by number, by time, and when SIGTERM comes.
"""

import dataclasses
import json
import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from spottrain import errors
from spottrain.batch import layout, life, shard
from spottrain.checkpoint import claim, lineage, location, view
from spottrain.checkpoint.store import Below, Store, create_once
from spottrain.train import patience, release, settings, termination
from spottrain.train.clock import Clock, SystemClock
from spottrain.train.log import Log

EVERY, SECONDS = 1000, 60.0
# While a stop is under way: whatever is written is committed as good as at once.
_STOPPING_SECONDS = 1.0

Row = TypeVar("Row")


@dataclasses.dataclass(frozen=True)
class Wishes:
    """`id_of`: from a row to its id. A part is committed after `every` results, or `seconds` after the first.

    `shards`: into how many the inputs are dealt, if this is the first worker to say so; None: one for each
    process of the job.
    """

    id_of: Callable[[Any], object]
    every: int = EVERY
    seconds: float = SECONDS
    shards: int | None = None

    def __post_init__(self) -> None:
        if self.every < 1 or not self.seconds >= 0 or (self.shards is not None and self.shards < 1):
            raise errors.ConfigError("every and shards must be at least 1, and seconds at least 0")


class Batch:
    """One process's part in a batch. Made by `session()`; a context manager.

    `todo` is one loop's; results may be written from any thread.
    """

    def __init__(
        self,
        told: settings.Settings,
        seat: settings.Seat,
        what: layout.Identity,
        wishes: Wishes,
        clock: Clock,
    ) -> None:
        self._told = told
        self._seat = seat
        self._what = what
        self._wishes = wishes
        self._clock = clock
        self._log = Log(clock)
        hooks = life.Hooks(asked=self._on_stop, word=self._last_word)
        self._life = life.Life(settings.Ending(told.grace, told.termination_log), clock, self._log, hooks)
        self._lock = threading.Lock()
        self._dealt = 1
        self._shards: dict[int, shard.Shard] = {}
        self._listed: set[str] = set()
        self._taken: dict[str, shard.Shard] = {}
        self._found = 0
        self._written = 0
        self._waiting = 0
        self._oldest = 0.0
        self._not_before = 0.0
        self._broken: Exception | None = None

    @property
    def stopping(self) -> bool:
        """Whether SIGTERM has come; `todo` then gives out no more."""
        return self._life.stopping

    def todo(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those of `rows` that belong to this process's shards and have no result yet.

        Every process is given the same rows. Each one that comes out is then given to `write`, `fail` or
        `skip`. Ends early on SIGTERM. BatchError when an id is missing or comes twice.
        """
        for row in rows:
            if self.stopping:
                return
            name = self._name(row)
            mine = self._shards.get(layout.shard_of(name, self._dealt))
            if mine is None:
                continue
            if name in self._listed:
                raise errors.BatchError(f"two inputs have the id {name!r}: an id must name one input")
            self._listed.add(name)
            if name in mine.done:
                continue
            with self._lock:
                self._taken[name] = mine
            yield row

    def write(self, row: Any, output: Any) -> None:
        """The output for `row`, any JSON. BatchError when it isn't, or if `todo` did not give the row out."""
        self._finish(row, {"output": output})

    def fail(self, row: Any, error: BaseException | str) -> None:
        """`row` can't be computed: `error` is recorded in place of an output, and it is not tried again."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self._finish(row, {"error": text})

    def skip(self, row: Any) -> None:
        """`row` shall have no output, and shall not be asked for again."""
        self._finish(row, None)

    def key(self, row: Any) -> str:
        """32 letters and digits for this row, model and parameters, the same in every life, on every worker.

        For what the program does elsewhere: give it as idempotency key, or name an object by it.
        """
        return self._what.key(self._name(row))

    def __enter__(self) -> Self:
        self._life.start()
        try:
            self._begin()
        except BaseException as error:
            self._close(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(error)
        except BaseException as late:
            self._close(late)
            raise
        self._close(error)

    def _begin(self) -> None:
        me = self._claimant()
        if self._told.go_file is not None:
            release.wait(self._told.go_file, me.attempt_id, self._clock, lambda: self.stopping)
        if self.stopping:
            self._life.end_preempted(None)
        store = location.open_store(self._told.location)
        asked = patience.beginning(store, self._told, self._clock, self._log, lambda: self.stopping)
        try:
            self._take_shards(store, asked, me)
        except errors.StoreUnavailable:
            if self.stopping:
                self._life.end_preempted(None)
            raise
        self._found = sum(len(one.done) for one in self._shards.values())
        numbers = ",".join(map(str, self._shards)) or "none"
        self._log.info(
            "begun",
            f"shard {numbers} of {self._dealt}: {self._found} inputs are done with",
            batch=self._what.hash,
            shards=numbers,
            of=self._dealt,
            done=self._found,
        )

    def _take_shards(self, store: Store, asked: Store, me: claim.Claimant) -> None:
        self._dealt = self._describe(asked).shards
        for number in range(self._seat.index, self._dealt, self._seat.of):
            prefix = layout.shard_prefix(self._what.hash, number)
            self._shards[number] = shard.begin(
                Below(store, prefix), Below(asked, prefix), me, now=self._clock.unix(), skipped=self._skipped
            )

    def _claimant(self) -> claim.Claimant:
        told, seat = self._told, self._seat
        if told.wish not in {lineage.LATEST, claim.FRESH}:
            raise errors.ConfigError(
                f"a batch knows no restore: {told.wish}; say Latest, or Fresh to begin anew"
            )
        me = told.claimant(settings.draw_attempt_id())
        # Attempts are numbered for each index. With another number of workers another index has this shard.
        uid = me.job_uid and f"{me.job_uid}/{seat.index}/{seat.of}"
        # Without a part its inputs are to do again: no reason to stop.
        return dataclasses.replace(me, job_uid=uid, start_fresh_when_broken=True)

    def _describe(self, store: Store) -> layout.Description:
        mine = layout.Description(self._what, self._wishes.shards or self._seat.of)
        other = create_once(store, mine.key, mine.encode())
        return mine if other is None else layout.decode(other, mine.key)

    def _end(self, error: BaseException | None) -> None:
        if isinstance(error, errors.StaleAttempt):
            raise error
        with self._lock:
            if self._broken:
                raise self._broken
            if self.stopping or error is not None:
                self._commit_or_wait()
            else:
                self._commit()
        if self.stopping:
            self._life.end_preempted(error)
        if error is not None:
            return
        if self._taken:
            some = ", ".join(sorted(self._taken)[:3])
            raise errors.BatchError(
                f"{len(self._taken)} inputs came out of todo() and have no result ({some}): "
                "give each one to write, fail or skip"
            )
        self._life.say(life.FINISHED)

    def _close(self, error: BaseException | None) -> None:
        if isinstance(error, errors.StaleAttempt):
            self._log.error("stale", str(error))
            self._life.say(life.STALE)
        self._life.close()

    def _finish(self, row: Any, said: Mapping[str, Any] | None) -> None:
        name = self._name(row)
        line = None if said is None else _line(name, said)
        with self._lock:
            if self._broken:
                raise self._broken
            mine = self._taken.pop(name, None)
            if mine is None:
                raise errors.BatchError(f"{name!r} has a result already, or did not come out of todo()")
            mine.add(name, line)
            self._oldest = self._oldest if self._waiting else self._clock.monotonic()
            self._waiting += 1
            self._written += 1
            self._commit_if_due()

    def _commit_if_due(self) -> None:
        now = self._clock.monotonic()
        seconds = _STOPPING_SECONDS if self.stopping else self._wishes.seconds
        due = self._waiting >= self._wishes.every or now - self._oldest >= seconds
        if due and now >= self._not_before:
            self._commit_or_wait()

    def _commit_or_wait(self) -> None:
        """Commit, or keep what waits for later when the store doesn't answer: that costs no work yet."""
        try:
            self._commit()
        except errors.StoreUnavailable as error:
            self._not_before = self._clock.monotonic() + self._wishes.seconds
            self._log.warning("commit-failed", f"{self._waiting} results wait in memory: {error}")

    def _commit(self) -> None:
        if not self._waiting:
            return
        begun, count = self._clock.monotonic(), self._waiting
        for one in self._shards.values():
            one.commit(self._clock.unix(), self._told.scratch)
        self._waiting = 0
        seconds = self._clock.monotonic() - begun
        self._log.info(
            "committed", f"committed {count} results in {seconds:.2f} s", results=count, seconds=seconds
        )

    def _on_stop(self) -> None:
        """SIGTERM, in a thread of its own: what is there is safe before the item under way is finished."""
        with self._lock:
            try:
                self._commit_or_wait()
            except (errors.SpottrainError, OSError) as error:
                self._broken = error  # for the program's own thread to raise

    def _last_word(self, state: str) -> termination.LastWord:
        done = self._found + self._written
        return termination.LastWord(
            state, step=done, resumed_from=self._found, saved_step=done - self._waiting, save_seconds=None
        )

    def _skipped(self, one: view.Skipped) -> None:
        name = one.directory.name
        sentence = f"skipping part {name}, whose inputs are computed anew: {one.reason}"
        self._log.warning("skipped", sentence, step=one.directory.step, commit=name)

    def _name(self, row: Any) -> str:
        try:
            found = self._wishes.id_of(row)
        except (LookupError, TypeError) as error:
            raise errors.BatchError(
                f'no id in {row!r:.200}: give each input an "id", or say where it is: session(id_of=…)'
            ) from error
        if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
            raise errors.BatchError(f"an id must be text or a whole number, not {found!r:.200}")
        return str(found)


def session(  # noqa: PLR0913 - all by keyword, nearly all with a default
    *,
    model: str,
    parameters: Mapping[str, Any] | None = None,
    uri: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    id_of: Callable[[Any], object] = operator.itemgetter("id"),
    every: int = EVERY,
    seconds: float = SECONDS,
    shards: int | None = None,
) -> Batch:
    """This process's part of a batch, for a `with` block in the main thread.

    `model` (with its version) and `parameters` (JSON): what decides the results; those of others lie apart.
    `uri`, `endpoint`, `region`: where results go, as for `spottrain.session`. `id_of(row)`: the id of an
    input, text or a whole number; row["id"] unless said otherwise. A part is committed after `every`
    results, or `seconds` after the first of them. `shards`: into how many the inputs are dealt, fixed by the
    first worker of a batch; one for each process of the job unless said otherwise.
    """
    told = settings.read(os.environ, settings.Arguments(uri, endpoint, region), of_job=True)
    wishes = Wishes(id_of, every, seconds, shards)
    return Batch(
        told, settings.seat(os.environ), layout.Identity(model, parameters or {}), wishes, SystemClock()
    )


def _line(name: str, said: Mapping[str, Any]) -> str:
    try:
        return json.dumps({"id": name, **said}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise errors.BatchError(
            f"the output for {name!r} is not JSON ({error}): convert it, for example with .tolist()"
        ) from error
