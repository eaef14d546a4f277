"""From what is heard to what is done.

::

    a look at a source ─► take ─► which notices stand, how the sources are
                          act ──► the Node's mark or hint, one Event each, and after two seconds its workers

`act` looks at the whole each time: what could not be done is tried again, what is done is left alone.
"""

import collections.abc as cabc
import dataclasses
import logging

from spottrain.agent import clock as clocks
from spottrain.agent import (
    cluster,
    drill,
    duty,
    health,
    hints,
    marks,
    metrics,
    notice,
    own_node,
    standing,
    watch,
)
from spottrain.api import node_words

LOG = logging.getLogger(__name__)
LOOK_AGAIN = 10.0
"""Seconds until the mark is looked for again while the notice stands: somebody may have taken it away."""
STOP_AGAIN = 1.0
HEARTBEAT = 300.0
TICK = 0.25
"""Seconds between two passes while something is under way, and while nothing is."""
IDLE_TICK = 1.0


@dataclasses.dataclass(frozen=True)
class Saying:
    """An Event that is wanted: `told` is what makes it another one."""

    reason: str
    message: str = dataclasses.field(compare=False)
    told: tuple[str, ...]
    source: str
    cause: str


@dataclasses.dataclass(frozen=True)
class State:
    """The Node's condition that is wanted."""

    status: str
    reason: str
    message: str = dataclasses.field(compare=False)
    """Faults may vary from look to look: a new one alone is not written at once."""


class Engine:
    """Of one node and the sources of its cloud. Used by one thread; what the probes ask by any."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        node: own_node.OwnNode,
        sources: cabc.Sequence[notice.Source],
        *,
        provider: str,
        margin: float,
        clock: clocks.Clock,
        counts: metrics.Metrics,
    ) -> None:
        self._node = node
        self._provider = provider
        self._margin = margin
        self._clock = clock
        self._counts = counts
        self._needed = {one.name for one in sources if one.needed}
        self.health = {one.name: health.Health() for one in sources}
        self._standing = standing.Standing()
        self._mark: marks.Mark | None = None
        self._hint: hints.Hint | None = None
        self._rehearsed = ""
        """The drill that is over, by its event; what asked for it may still be there."""
        self._seen_at = 0.0
        self._started = clock.monotonic()
        self._adopting = duty.Duty("reading the node", self._adopt)
        self._marking = duty.Duty("marking the node", node.mark)
        self._hinting = duty.Duty("the node's hint", node.hint)
        self._showing = duty.Duty("the node's condition", self._show)
        self._sayings: dict[Saying, duty.Duty[Saying]] = {}
        self._stopping = duty.Duty("stopping workers", self._stop)

    def take(self, heard: watch.Heard) -> None:
        """What came of one look."""
        before = self.health[heard.source]
        if heard.fault is None:
            if before.failing is not None:
                LOG.info("%s answers again", heard.source)
            self.health[heard.source] = before.after_success(heard.at)
            # What the Node says is no odd answer, and no other one may follow for minutes.
            patience = 0.0 if heard.source == drill.NAME else standing.WITHDRAWN_AFTER
            self._standing.take(heard.source, heard.notices, heard.at, patience)
            return
        self.health[heard.source] = before.after_fault(heard.began, str(heard.fault))
        self._counts.fault(heard.source, heard.fault.kind)
        if before.failing is None:
            LOG.warning("%s: %s", heard.source, heard.fault)

    def act(self) -> float:
        """One pass; returns the seconds until there may be something to do, even if nothing is heard."""
        now = self._clock.monotonic()
        self._choose(now)
        try:
            self._do(now)
        except cluster.UnreachableError:
            return TICK
        return IDLE_TICK if self._settled() else TICK

    def _choose(self, now: float) -> None:
        before = self._mark
        if before is not None and before.drill and before.deadline <= self._clock.now():
            self._rehearsed = before.event
        ends = [one for one in self._standing.of(notice.Kind.END) if one.event != self._rehearsed]
        self._mark = marks.chosen(ends, before, self._clock.now())
        if self._mark is not None and before is None:
            self._seen_at = now
        self._hint = hints.chosen(self._standing.of(notice.Kind.HINT), self._hint, self._clock.now())

    def _do(self, now: float) -> None:
        self._adopting.see_to(self._node.name, now)
        known = self._adopting.is_done(self._node.name)
        if known:
            self._marking.see_to(self._mark, now, again=LOOK_AGAIN if self._mark else None)
            self._hinting.see_to(self._hint, now)
        if self._mark is not None and now >= self._seen_at + own_node.OPERATOR_ACTS_WITHIN:
            self._stopping.see_to(self._mark, now, again=STOP_AGAIN)
        sayings = list(self._wanted_sayings(now)) if known else []
        self._sayings = {one: self._sayings.get(one) or duty.Duty("an event", self._say) for one in sayings}
        for one in sayings:
            self._sayings[one].see_to(one, now)
        self._showing.see_to(self.state(now), now, again=HEARTBEAT)

    def _settled(self) -> bool:
        done = self._adopting.is_done(self._node.name) and self._hinting.is_done(self._hint)
        return self._mark is None and done and self._marking.is_done(None)

    def _adopt(self, _: str) -> None:
        """What an earlier life wrote stands until its source says otherwise, or goes if none of ours is."""
        node = self._node.get()
        hint = hints.on(node)
        if hint is not None and hint.source in self.health:
            self._hint = hint
            self._standing.adopt(hint.as_notice(), self._clock.monotonic())
        found = marks.on(node)
        if found is None or found.source not in self.health:
            return
        if self._mark is None or (self._mark.source, self._mark.event) == (found.source, found.event):
            self._mark = found
            self._seen_at = self._clock.monotonic()
        self._standing.adopt(found.as_notice(), self._clock.monotonic())

    def _stop(self, mark: marks.Mark) -> None:
        """Nobody has: each worker that is left gets what is left of the window."""
        refused: list[cluster.ApiError] = []
        for worker in self._node.workers():
            if own_node.trains_on(worker, mark.deadline, self._clock.now(), self._margin):
                continue
            seconds = own_node.grace(worker, mark.deadline, self._clock.now(), self._margin)
            try:
                stopped = self._node.stop(worker, seconds)
            except cluster.ApiError as error:
                refused.append(error)
                continue
            if stopped:
                self._counts.stopped()
                LOG.warning("nobody stopped %s: deleted with %d s", worker["metadata"]["name"], seconds)
        if refused:
            raise refused[0]

    def _wanted_sayings(self, now: float) -> cabc.Iterator[Saying]:
        mark = self._mark
        if mark is not None and self._marking.is_done(mark):
            words = own_node.sentence(mark.as_notice())
            told = (mark.source, mark.event, mark.since.isoformat())
            reason = node_words.RECLAIM_DRILL if mark.drill else node_words.RECLAIM_NOTICE
            yield Saying(reason, words, told, mark.source, mark.cause)
        hint = self._hint
        if hint is not None and self._hinting.is_done(hint):
            words = own_node.sentence(hint.as_notice())
            yield Saying(node_words.RECLAIM_HINT, words, (hint.source, hint.event), hint.source, hint.cause)
        for name, fault in self._blind(now):
            began = str(self.health[name].failing)
            yield Saying(node_words.NOTICES_UNHEARD, f"{name} fails: {fault}", (name, began), "", "")

    def _say(self, one: Saying) -> None:
        new = self._node.say(one.reason, one.message, one.told, self._clock.now())
        if new:
            LOG.warning("%s", one.message)
        if new and one.source:
            self._counts.notice(one.source, one.cause)

    def _blind(self, now: float) -> list[tuple[str, str]]:
        return [
            (name, one.fault) for name, one in self.health.items() if name in self._needed and one.blind(now)
        ]

    def state(self, now: float) -> State:
        """Whether a notice would be heard, at that monotonic moment."""
        if not self._needed:
            return State(
                "False", node_words.NO_NOTICES, f"{self._provider} gives no notice that the agent knows of"
            )
        blind = self._blind(now)
        if blind:
            return State(
                "False", node_words.BLIND, "; ".join(f"{name}: {fault}" for name, fault in blind)[:500]
            )
        if all(self.health[name].armed(now) for name in self._needed):
            return State("True", node_words.ARMED, f"notices of {self._provider} are heard")
        return State("Unknown", node_words.STARTING, f"{self._provider} has not answered yet")

    @property
    def ready(self) -> bool:
        """A notice would be heard, or there is none to hear."""
        return self.state(self._clock.monotonic()).reason in {node_words.ARMED, node_words.NO_NOTICES}

    def words(self) -> str:
        """The state for people."""
        return self.state(self._clock.monotonic()).message

    def show_metrics(self) -> None:
        """Bring the gauges up to date."""
        now = self._clock.monotonic()
        self._counts.show(
            armed=self.state(now).status == "True",
            blind={name: one.blind(now) for name, one in self.health.items()},
            ages={
                name: now - (self._started if one.succeeded is None else one.succeeded)
                for name, one in self.health.items()
            },
        )

    def _show(self, wanted: State) -> None:
        self._node.show(wanted.status, wanted.reason, wanted.message, self._clock.now())
