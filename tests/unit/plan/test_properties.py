"""Whole lives drawn at random: whatever happens, in whatever order, the promises hold."""

import dataclasses
import datetime as dt

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from spottrain.api import allowed, clouds, spec, status
from spottrain.plan import decide, pods
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

WORKERS = 3


class GangLife(stateful.RuleBasedStateMachine):
    """Everybody else acts at random between the operator's passes; the operator may be slow."""

    def __init__(self) -> None:
        super().__init__()
        spot = spec.Spot(floor=1, fallback=spec.Fallback(60.0, 120.0))
        self.wishes = virtual.wishes(max_failures=2, spot=spot, progress_timeout=600.0)
        self.cluster = virtual.Cluster(self.wishes)
        self.crashes = 0
        self.ended_well: set[tuple[int, int]] = set()
        """Attempt and index."""

    def _pick(self, data: st.DataObject, phases: tuple[str, ...], *, bound: bool = False) -> str | None:
        names = sorted(
            pod.name for pod in self.cluster.pods.values() if pod.phase in phases and (pod.node or not bound)
        )
        return data.draw(st.sampled_from(names)) if names else None

    @stateful.rule()
    def the_operator_makes_one_pass(self) -> None:
        self.cluster.step()

    def _is_ending(self, pod: snap.Pod) -> bool:
        """Its main container has just ended, and its kubelet may be about to say so."""
        finished = pod.exit.finished if pod.exit else None
        return finished is not None and self.cluster.now < finished + pods.LAST_ROUNDS

    @stateful.rule()
    def the_operator_catches_up(self) -> None:
        self.cluster.settle()
        older = self.cluster.snapshot().older
        now = self.cluster.now
        runs_on = [
            pod.name
            for pod in older
            if not (pod.ended or pod.deleting or self._is_ending(pod))
            if pod.train_until is None or pod.train_until <= now
        ]
        assert not runs_on, "a pod of an older attempt runs on"
        self._every_wait_has_a_wake_up()

    def _every_wait_has_a_wake_up(self) -> None:
        """What is waited for is a pod's, a node's or the user's doing (an event tells), or a moment."""
        cluster, now = self.cluster, self.cluster.status
        if now.over or self.wishes.suspend or cluster.snapshot().refused or cluster.wake is not None:
            return
        living = [pod for pod in cluster.pods.values() if not pod.ended]
        assert living, f"nobody would ever look at it again: {now}"

    @stateful.rule(zone=st.sampled_from(("", "zone-a", "zone-b")))
    def the_user_edits_the_pools(self, zone: str) -> None:
        pools = (allowed.Entry(zone),) if zone else ()
        spot = dataclasses.replace(self.wishes.spot, pools=pools)
        self.wishes = dataclasses.replace(self.wishes, spot=spot)
        self.cluster.edit(self.wishes)

    @stateful.rule()
    def pods_start(self) -> None:
        if any(node.ready and not node.notice for node in self.cluster.nodes.values() if node.name != "od"):
            self.cluster.run_all()

    @stateful.rule(data=st.data())
    def a_pod_finds_no_node(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending",))
        if name and not self.cluster.pods[name].node:
            self.cluster.find_no_node(name)

    @stateful.rule(data=st.data())
    def a_pod_is_evicted(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending", "Running"))
        if name:
            self.cluster.evict(name)

    @stateful.rule(data=st.data())
    def somebody_deletes_a_pod(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending", "Running", "Failed", "Succeeded"))
        if name:
            self.cluster.delete(name)

    @stateful.rule(data=st.data(), code=st.sampled_from([0, 1, 75, 137, 143]))
    def a_pod_ends(self, data: st.DataObject, code: int) -> None:
        name = self._pick(data, ("Running",))
        if name:
            pod = self.cluster.pods[name]
            self.crashes += code != 0 and not pod.asked_to_stop
            self.cluster.end(name, code)

    @stateful.rule(data=st.data(), code=st.sampled_from([0, 1]))
    def a_main_container_ends_beside_its_proxy(self, data: st.DataObject, code: int) -> None:
        names = sorted(one.name for one in self.cluster.pods.values() if one.running)
        if names:
            name = data.draw(st.sampled_from(names))
            self.crashes += code != 0 and not self.cluster.pods[name].asked_to_stop
            self.cluster.finish_main(name, code)

    @stateful.rule(
        still=st.sampled_from([0.0, 599.0, 601.0]),
        problem=st.sampled_from(["", "no answer"]),
        save_seconds=st.none() | st.sampled_from([1.0, 20.0]),
    )
    def worker_0_is_asked_for_its_step(self, still: float, problem: str, save_seconds: float | None) -> None:
        self.crashes += still > 600
        saved = status.Checkpoint(6, save_seconds=save_seconds)
        report = snap.Report(7, self.cluster.now, 100, 0.5, saved, snap.Stop(still, 60.0, still < 60))
        self.cluster.progress = snap.Progress(self.cluster.status.attempt_id, 7, still, problem, report)

    @stateful.rule(data=st.data())
    def a_machine_comes_back_and_starts_nothing(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending",), bound=True)
        if name:
            self.cluster.strand(name)

    @stateful.rule()
    def another_operator_leads(self) -> None:
        """It has seen none of the pods that are gone."""
        self.cluster.departed.clear()

    @stateful.rule(data=st.data())
    def a_container_cannot_be_made(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending",))
        if name:
            self.cluster.cannot_start(name, "trainer: ImagePullBackOff")

    @stateful.rule(nodes=st.sets(st.sampled_from(["a", "b", "c", "d"])))
    def other_jobs_lose_machines(self, nodes: set[str]) -> None:
        pool = snap.Pool(clouds.Capacity.SPOT, "zone-a", "g5")
        self.cluster.losses = tuple(snap.Loss(pool, node, self.cluster.now) for node in sorted(nodes))

    @stateful.rule(data=st.data())
    def a_pod_object_vanishes(self, data: st.DataObject) -> None:
        name = self._pick(data, ("Pending", "Running", "Failed", "Succeeded"))
        if name:
            self.cluster.remove(name)

    @stateful.rule(name=st.sampled_from(["n1", "n2", "n3"]))
    def a_node_falls_silent(self, name: str) -> None:
        if name in self.cluster.nodes:
            self.cluster.silence(name)

    @stateful.rule(name=st.sampled_from(["n1", "n2", "n3"]), seconds=st.none() | st.integers(1, 60))
    def a_node_is_under_notice(self, name: str, seconds: int | None) -> None:
        if name in self.cluster.nodes:
            deadline = None if seconds is None else self.cluster.now + dt.timedelta(seconds=seconds)
            self.cluster.change_node(name, notice="spot", deadline=deadline)

    @stateful.rule(name=st.sampled_from(["n1", "n2", "n3"]))
    def a_node_is_well_again(self, name: str) -> None:
        if name in self.cluster.nodes:
            self.cluster.change_node(
                name, ready=True, ready_since=self.cluster.now, notice="", deadline=None, unschedulable=False
            )

    @stateful.rule(name=st.sampled_from(["n4", "n5"]))
    def a_node_object_goes(self, name: str) -> None:
        if len(self.cluster.nodes) > 4:
            self.cluster.nodes.pop(name, None)

    @stateful.rule(suspend=st.booleans())
    def the_user_suspends_or_resumes(self, suspend: bool) -> None:
        self.wishes = dataclasses.replace(self.wishes, suspend=suspend)
        self.cluster.edit(self.wishes)

    @stateful.rule(hours=st.none() | st.sampled_from([0.1, 1.0, 48.0]))
    def the_user_sets_or_moves_a_deadline(self, hours: float | None) -> None:
        due = None if hours is None else self.cluster.now + dt.timedelta(hours=hours)
        self.wishes = dataclasses.replace(self.wishes, complete_by=due)
        self.cluster.edit(self.wishes)

    @stateful.rule(keeps=st.booleans())
    def the_user_wants_leaving_gangs_to_train_on(self, keeps: bool) -> None:
        spot = dataclasses.replace(self.wishes.spot, keep_training=keeps)
        self.wishes = dataclasses.replace(self.wishes, spot=spot)
        self.cluster.edit(self.wishes)

    @stateful.rule()
    def a_newer_version_was_there(self) -> None:
        """It left words that this one doesn't know, and was taken back."""
        cluster = self.cluster
        if not cluster.status.over and cluster.status.attempts:
            first = dataclasses.replace(cluster.status.attempts[0], cause="Migrated")
            attempts = (first, *cluster.status.attempts[1:])
            cluster.status = dataclasses.replace(cluster.status, phase="Moving", attempts=attempts)

    @stateful.rule(unheard=st.booleans())
    def a_webhook_cannot_be_called(self, unheard: bool) -> None:
        self.cluster.server_gives_no_answer = unheard

    @stateful.rule(wait=st.booleans())
    def words_of_the_status_wait_to_be_written(self, wait: bool) -> None:
        self.cluster.words_wait = wait

    @stateful.rule()
    def the_user_breaks_the_spec(self) -> None:
        self.cluster.edit(spec.InvalidSpecError("spec.workers: write a whole number of at least 1"))

    @stateful.rule(image=st.sampled_from(["i", "j"]))
    def the_user_edits_the_template(self, image: str) -> None:
        template = {"spec": {"containers": [{"name": "trainer", "image": image}]}}
        self.wishes = dataclasses.replace(self.wishes, template=template)
        self.cluster.edit(self.wishes)

    @stateful.rule()
    def the_user_mends_the_spec(self) -> None:
        self.cluster.edit(self.wishes)

    @stateful.rule(words=st.sampled_from(["", "spec.priority: Forbidden"]))
    def the_server_changes_its_mind_about_pods(self, words: str) -> None:
        self.cluster.server_says_no = words

    @stateful.rule(seconds=st.sampled_from([1, 5, 30, 80, 700]))
    def time_passes(self, seconds: int) -> None:
        self.cluster.pass_time(seconds)

    @stateful.invariant()
    def no_two_live_pods_share_an_index_of_one_attempt(self) -> None:
        live = [(pod.index, pod.attempt_id) for pod in self.cluster.pods.values() if not pod.ended]
        assert len(live) == len(set(live))

    @stateful.invariant()
    def failures_never_exceed_what_crashed(self) -> None:
        assert self.cluster.status.failures <= self.crashes

    @stateful.invariant()
    def complete_only_when_every_member_of_an_attempt_ended_well(self) -> None:
        seen = [*self.cluster.pods.values(), *self.cluster.departed]
        self.ended_well |= {(pod.attempt, pod.index) for pod in seen if pod.outcome == "Succeeded"}
        if self.cluster.status.phase is status.Phase.COMPLETE:
            attempt = self.cluster.status.attempt
            assert {(attempt, index) for index in range(WORKERS)} <= self.ended_well

    @stateful.invariant()
    def deciding_is_repeatable(self) -> None:
        snapshot = self.cluster.snapshot()
        assert decide.decide(snapshot) == decide.decide(snapshot)

    def teardown(self) -> None:
        """From any state, once the world is well again the job runs, or is over, or is held by its user."""
        cluster = self.cluster
        cluster.server_says_no = ""
        cluster.words_wait = False
        cluster.server_gives_no_answer = False
        cluster.edit(self.wishes)
        for name in cluster.nodes:
            cluster.change_node(
                name, ready=True, ready_since=cluster.now, notice="", deadline=None, unschedulable=False
            )
        for _ in range(12):
            cluster.pass_time(120)
            cluster.recovered()
        phases = {status.Phase.RUNNING, status.Phase.COMPLETE, status.Phase.FAILED}
        expected = {status.Phase.SUSPENDED} if self.wishes.suspend else phases
        assert cluster.status.phase in expected | {status.Phase.COMPLETE, status.Phase.FAILED}
        if cluster.status.over and cluster.job is not None:
            assert cluster.job.finished


GangLife.TestCase.settings = hypothesis.settings(
    max_examples=150, stateful_step_count=40, deadline=None, print_blob=True
)
TestGangLife = GangLife.TestCase


class LeavingGangLife(GangLife):
    """What happens to a gang that trains on after a notice, which a life from the start seldom comes to."""

    @stateful.initialize(seconds=st.sampled_from([60, 120, 600]), save=st.sampled_from([1.0, 20.0]))
    def a_gang_that_has_saved_hears_a_notice(self, seconds: int, save: float) -> None:
        self.the_user_wants_leaving_gangs_to_train_on(True)
        cluster = self.cluster.running()
        report = snap.Report(7, cluster.now, 100, 0.5, status.Checkpoint(6, save_seconds=save))
        cluster.progress = snap.Progress(cluster.status.attempt_id, 7, 0.0, "", report)
        cluster.settle()
        cluster.change_node("n2", notice="spot", deadline=cluster.now + dt.timedelta(seconds=seconds))
        cluster.settle()


LeavingGangLife.TestCase.settings = hypothesis.settings(
    max_examples=100, stateful_step_count=12, deadline=None, print_blob=True
)
TestLeavingGangLife = LeavingGangLife.TestCase


@hypothesis.given(
    crashes=st.integers(0, 4), reclaims=st.integers(0, 12), seed=st.randoms(use_true_random=False)
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_reclaims_in_any_order_spend_no_budget(crashes: int, reclaims: int, seed: object) -> None:
    """With a budget of four, four crashes and any number of reclaims still leave a running job."""
    cluster = virtual.Cluster(virtual.wishes(workers=1, max_failures=4)).running()
    events = ["crash"] * crashes + ["reclaim"] * reclaims
    seed.shuffle(events)  # type: ignore[attr-defined]
    for event in events:
        name = cluster.pod(0).name
        if event == "crash":
            cluster.end(name, 1)
        else:
            cluster.evict(name)
        cluster.recovered()
        cluster.pass_time(700)
        cluster.recovered()
    assert (cluster.status.failures, cluster.status.reclaims) == (crashes, reclaims)
    assert cluster.status.phase is status.Phase.RUNNING
