"""Random lives of a URI: attempts start, save, go stale, slip commits in, prune, lose files."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spottrain import errors
from spottrain.checkpoint import claim, layout, lineage, retention, view
from tests.contract.memory import MemoryStore
from tests.unit.checkpoint.lives import best, save, slip_in, start, upload


class Lives(RuleBasedStateMachine):
    """The model keeps the true history of the current attempt: the commits that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.current: claim.Claim | None = None
        self.stale: list[lineage.Record] = []
        self.history: list[layout.StepDir] = []
        self.broken: set[layout.StepDir] = set()
        self.slipped: set[layout.StepDir] = set()
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"{self.count:x}"

    @property
    def sound(self) -> list[layout.StepDir]:
        return [directory for directory in self.history if directory not in self.broken]

    @rule()
    def an_attempt_starts(self) -> None:
        expected = self.sound[-1] if self.sound else None
        before = self.current
        try:
            self.current = start(self.store, f"a{self.fresh()}", attempt=self.count)
        except errors.AllBroken:
            assert self.history
            assert not self.sound
            return
        parent = self.current.record.parent
        assert (parent and parent.directory) == expected
        if before is not None:
            self.stale.append(before.record)
        self.history = self.history[: self.history.index(expected) + 1] if expected else []

    @precondition(lambda self: self.current)
    @rule(ahead=st.integers(1, 5))
    def it_saves(self, ahead: int) -> None:
        assert self.current is not None
        step = (self.sound[-1].step if self.sound else 0) + ahead
        self.history = self.sound + [d for d in self.history if d in self.broken and d.step < step]
        self.history.sort()
        self.history.append(save(self.store, self.current.record, step, self.fresh()))

    @precondition(lambda self: self.current)
    @rule(step=st.integers(1, 50))
    def it_uploads_and_does_not_commit(self, step: int) -> None:
        assert self.current is not None
        upload(self.store, self.current.record, step, self.fresh())

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), ahead=st.integers(0, 50))
    def a_stale_attempt_slips_a_commit_in(self, data: st.DataObject, ahead: int) -> None:
        writer = data.draw(st.sampled_from(self.stale))
        forks = [
            r.parent.directory.step
            for r in lineage.Records(self.store).refresh().values()
            if r.parent and r.parent.directory.attempt_id == writer.attempt_id
        ]
        step = max(forks, default=0) + ahead
        self.slipped.add(slip_in(self.store, writer, step, self.fresh()))

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), step=st.integers(1, 50))
    def a_stale_attempt_asks_first_and_is_refused(self, data: st.DataObject, step: int) -> None:
        writer = data.draw(st.sampled_from(self.stale))
        before = view.look(self.store).committed
        try:
            save(self.store, writer, step, self.fresh())
        except errors.StaleAttempt:
            assert view.look(self.store).committed == before
        else:
            raise AssertionError("a stale attempt committed")

    @precondition(lambda self: self.current)
    @rule(keep=st.integers(1, 4))
    def it_prunes(self, keep: int) -> None:
        assert self.current is not None
        newest = self.sound[-keep:]
        records = lineage.Records(self.store)
        parents = lineage.parents(records.refresh()) & set(view.look(self.store).committed)
        retention.prune(self.store, records, self.current.record, keep=keep)
        there = set(view.look(self.store).committed)
        assert set(newest) <= there
        assert parents <= there
        self.history = [directory for directory in self.history if directory in there]

    @precondition(lambda self: self.sound)
    @rule(data=st.data())
    def a_file_is_lost(self, data: st.DataObject) -> None:
        directory = data.draw(st.sampled_from(self.sound))
        self.store.delete([directory.key("state")])
        self.broken.add(directory)

    @invariant()
    def the_current_attempt_would_restore_the_newest_of_its_history(self) -> None:
        if self.current is not None:
            assert best(self.store, self.current) == (self.sound[-1] if self.sound else None)

    @invariant()
    def nothing_that_slipped_in_is_on_the_trail(self) -> None:
        if self.current is not None:
            records = lineage.Records(self.store).refresh()
            committed = view.look(self.store).committed
            trail = lineage.trail(records, self.current.record.seq, committed)
            assert not self.slipped & set(trail)


Lives.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestLives = Lives.TestCase
