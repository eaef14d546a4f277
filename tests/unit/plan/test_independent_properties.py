"""Whole lives of independent indexes drawn at random: whatever happens, the promises hold."""

import dataclasses

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from spottrain.api import indexes, shards, spec, status
from spottrain.plan import snapshot as snap
from tests.unit.plan import test_properties, virtual

WORKERS = 6
BUDGET = 2


class IndependentLife(test_properties.GangLife):
    """The same world as a gang's, and a little more; the virtual cluster refuses to run an index twice."""

    def __init__(self) -> None:
        super().__init__()
        self.wishes = virtual.shards(
            workers=WORKERS,
            parallelism=3,
            max_failures_per_index=BUDGET,
            spot=spec.Spot(floor=1, spread=spec.Spread.ZONE, fallback=spec.Fallback(60.0, 120.0)),
        )
        self.cluster = virtual.Cluster(self.wishes)
        self.known = shards.Shards()

    @stateful.rule()
    def the_operator_catches_up(self) -> None:
        self.cluster.settle()
        kept = self.cluster.status.shards or shards.Shards()
        running = [pod for pod in self.cluster.pods.values() if not pod.ended and pod.deleting is None]
        assert len({pod.index for pod in running}) == len(running), "an index has two pods that may run on"
        over = [pod for pod in running if pod.index in kept.decided and not self._is_ending(pod)]
        assert not over, "it runs on though it has ended"
        self._every_wait_has_a_wake_up()

    def _every_wait_has_a_wake_up(self) -> None:
        cluster, kept = self.cluster, self.cluster.status.shards
        super()._every_wait_has_a_wake_up()
        refused = cluster.snapshot().refused or cluster.server_gives_no_answer
        if kept is None or cluster.status.over or self.wishes.suspend or refused:
            return
        asleep = [one.time for one in kept.retries if one.time > cluster.now]
        if asleep:
            assert cluster.wake is not None, "an index that waits is forgotten"

    @stateful.rule(data=st.data())
    def a_pod_says_that_it_has_finished(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Running",))
        if name:
            self.cluster.end(name, 0, said=snap.Words("finished", 9))

    @stateful.rule()
    def another_operator_takes_over(self) -> None:
        """It remembers no pod that is gone."""
        self.cluster.departed.clear()

    @stateful.rule()
    def somebody_deletes_the_job(self) -> None:
        if self.cluster.job is not None and not self.cluster.status.over:
            self.cluster.delete_job()

    @stateful.rule(parallelism=st.integers(1, 7))
    def the_user_edits_the_parallelism(self, parallelism: int) -> None:
        self.wishes = dataclasses.replace(self.wishes, parallelism=parallelism)
        self.cluster.edit(self.wishes)

    @stateful.rule(quota=st.none() | st.integers(0, 4))
    def somebody_sets_a_quota(self, quota: int | None) -> None:
        self.cluster.quota = quota

    @stateful.invariant()
    def no_two_live_pods_share_an_index_of_one_attempt(self) -> None:
        live = [(pod.index, pod.attempt) for pod in self.cluster.pods.values() if not pod.ended]
        assert len(live) == len(set(live))

    @stateful.invariant()
    def what_is_recorded_is_never_taken_back(self) -> None:
        kept = self.cluster.status.shards or self.known
        assert not self.known.completed - kept.completed, "a finished index is open again"
        assert not self.known.failed - kept.failed, "a failed index is open again"
        assert not kept.completed & kept.failed
        for index in range(WORKERS):
            assert kept.attempt(index) >= self.known.attempt(index), "an attempt went down"
            assert kept.failures[index] >= self.known.failures[index], "a failure was forgotten"
        self.known = kept

    @stateful.invariant()
    def failures_are_those_of_the_index_and_an_index_fails_only_over_its_budget(self) -> None:
        kept = self.cluster.status.shards or shards.Shards()
        for index in range(WORKERS):
            assert kept.failures[index] <= self.cluster.crashed[index]
        assert kept.failed == kept.failures.over(BUDGET)
        assert self.cluster.status.failures == sum(kept.failures[index] for index in range(WORKERS))

    @stateful.invariant()
    def complete_only_when_every_member_of_an_attempt_ended_well(self) -> None:
        kept = self.cluster.status.shards or shards.Shards()
        assert set(kept.completed) <= self.cluster.succeeded
        if self.cluster.status.phase is status.Phase.COMPLETE:
            assert kept.completed == indexes.below(WORKERS)

    def teardown(self) -> None:
        self.cluster.quota = None
        super().teardown()


IndependentLife.TestCase.settings = hypothesis.settings(
    max_examples=150, stateful_step_count=40, deadline=None, print_blob=True
)
TestIndependentLife = IndependentLife.TestCase
