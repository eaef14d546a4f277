"""Jobs with a deadline: on spot while that can go well, else on on-demand. Stories in virtual time."""

import dataclasses
import datetime as dt

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from spottrain.api import allowed, clouds, conditions, spec, status
from spottrain.plan import completion, outlook
from spottrain.plan import snapshot as snap
from spottrain.policy import deadline, hazard, induction
from spottrain.policy.induction import Terms
from tests.unit.plan import virtual

HOUR = 3600.0
RATE = 2.0
EVERY = 600.0
"""Seconds between two saves."""
START = outlook.START + EVERY + 12.0
"""Before one is measured: the prior, and what a loss takes: an interval and a save of 12 s."""


def wishes(hours: float, **changes: object) -> spec.Spec:
    """A gang of two whose work is to be done in so many hours."""
    return virtual.wishes(
        workers=2,
        complete_by=virtual.EPOCH + dt.timedelta(hours=hours),
        checkpoint=spec.Checkpoint(uri="s3://ck/tr", interval=EVERY),
        **changes,
    )


def tell(cluster: virtual.Cluster, *, step: int, total: int | None, saved: int | None) -> None:
    """Worker 0 tells how it fares; it saves in 12 s, and in time."""
    kept = None if saved is None else status.Checkpoint(saved, cluster.now, 12.0)
    report = snap.Report(step, cluster.now, total, RATE, kept, snap.Stop(12.0, 25.0, fits=True))
    cluster.progress = snap.Progress(cluster.status.attempt_id, step, 0.0, report=report)
    cluster.settle()


def work(hours: float) -> int:
    """The steps of so many hours."""
    return round(hours * HOUR * RATE)


def lost(cluster: virtual.Cluster) -> virtual.Cluster:
    """Spot takes a worker, and there is none to be had; the others have ended."""
    cluster.evict(cluster.pod(0).name)
    cluster.settle()
    for pod in list(cluster.pods.values()):
        if pod.deleting is not None:
            cluster.end(pod.name, 143)
    cluster.progress = None
    cluster.settle()
    return cluster


def waiting(*, hours: float, left: float) -> virtual.Cluster:
    """A job that has lost its spot at once, with a checkpoint that leaves `left` hours of work until then."""
    cluster = virtual.Cluster(wishes(hours)).running()
    tell(cluster, step=work(1), total=work(1 + left), saved=work(1) - 1)
    return lost(cluster)


def waits_for_ever(start: float = START) -> deadline.Plan:
    """A plan by which it always pays to wait."""
    always = tuple(induction.Curve((0.0, 0.0)) for _ in range(3))
    return deadline.Plan(Terms(start / 600, 3.0), induction.Curves(always, always, always))


def buys_at_once() -> deadline.Plan:
    """A plan by which no wait pays."""
    never = tuple(induction.Curve((999.0, 999.0)) for _ in range(3))
    return deadline.Plan(Terms(2.0, 3.0), induction.Curves(never, never, never))


def place(cluster: virtual.Cluster) -> str:
    return "on-demand" if cluster.status.attempts[-1].on_demand else "spot"


def feasible(cluster: virtual.Cluster) -> conditions.Condition:
    found = conditions.find(cluster.status.conditions, conditions.DEADLINE_FEASIBLE)
    assert found is not None
    return found


def pass_until(cluster: virtual.Cluster, moment: dt.datetime) -> None:
    """As the queue does: a pass whenever one was asked for, and one at that moment."""
    while cluster.now < moment:
        asked = cluster.now + dt.timedelta(seconds=cluster.wake or HOUR)
        cluster.now = min(moment, asked)
        cluster.settle()


def test_without_a_deadline_nothing_is_said_and_nobody_moves() -> None:
    cluster = virtual.Cluster().running()
    tell(cluster, step=5, total=100, saved=4)
    pass_until(lost(cluster), cluster.now + dt.timedelta(hours=50))
    assert place(cluster) == "spot"
    assert conditions.find(cluster.status.conditions, conditions.DEADLINE_FEASIBLE) is None


def test_the_net_moves_all_workers_to_on_demand_at_its_moment_and_not_a_second_before() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.plan = waits_for_ever()
    net = virtual.EPOCH + dt.timedelta(hours=10) - dt.timedelta(seconds=2 * START)
    pass_until(cluster, net - dt.timedelta(seconds=1))
    assert (place(cluster), cluster.status.attempt) == ("spot", 2)
    assert feasible(cluster).message.endswith(
        f"it waits for spot until {net:%Y-%m-%dT%H:%M:%SZ} at the latest"
    )
    pass_until(cluster, net)
    last = cluster.status.attempts[-1]
    assert (last.cause, last.number, place(cluster)) == (status.Cause.MOVED, 3, "on-demand")
    asked = [[cluster.overlays[f"tr-{index}-{attempt}"].ask for index in (0, 1)] for attempt in (2, 3)]
    assert asked == [2 * [clouds.Ask.ONLY_SPOT], 2 * [clouds.Ask.ON_DEMAND]]
    assert last.detail == (
        "to on-demand: there is no more time to wait for spot: 10h of work are left and a start takes 20m; "
        "spec.completeBy is 2026-01-01T20:00:00Z"
    )


def test_with_short_starts_the_net_leaves_a_tick_beside_one() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.plan = waits_for_ever()
    cluster.status = dataclasses.replace(cluster.status, restart=60.0)
    cluster.edit(dataclasses.replace(wishes(20), checkpoint=spec.Checkpoint(uri="s3://ck/tr", interval=60.0)))
    start = 60 + 60 + 12
    net = virtual.EPOCH + dt.timedelta(hours=10) - dt.timedelta(seconds=start + 600)
    pass_until(cluster, net - dt.timedelta(seconds=1))
    assert place(cluster) == "spot"
    assert f"until {net:%Y-%m-%dT%H:%M:%SZ} at the latest" in feasible(cluster).message
    pass_until(cluster, net)
    assert place(cluster) == "on-demand"


def test_an_edit_moves_the_deadline_and_takes_effect_at_once() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.plan = waits_for_ever()
    pass_until(cluster, virtual.EPOCH + dt.timedelta(hours=5))
    assert place(cluster) == "spot"
    cluster.edit(wishes(15.5))
    cluster.settle()
    assert place(cluster) == "on-demand"


def test_a_later_deadline_lets_a_waiting_job_wait_on() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.plan = waits_for_ever()
    cluster.edit(wishes(60))
    cluster.settle()
    pass_until(cluster, virtual.EPOCH + dt.timedelta(hours=30))
    assert place(cluster) == "spot"


def test_an_operator_that_has_just_begun_buys_nothing_before_there_is_a_plan() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.pass_time(2 * HOUR)
    cluster.settle()
    assert place(cluster) == "spot"
    cluster.plan = buys_at_once()
    cluster.settle()
    assert place(cluster) == "on-demand"


def test_a_plan_that_says_buy_is_followed_once_spot_has_had_time_to_come() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.plan = buys_at_once()
    pass_until(cluster, virtual.EPOCH + dt.timedelta(seconds=outlook.ARRIVAL - 1))
    assert place(cluster) == "spot"
    pass_until(cluster, virtual.EPOCH + dt.timedelta(seconds=outlook.ARRIVAL))
    assert place(cluster) == "on-demand"


def test_a_loss_with_too_little_slack_left_is_followed_by_on_demand_at_once() -> None:
    cluster = virtual.Cluster(wishes(5.6)).running()
    tell(cluster, step=work(1), total=work(6), saved=work(1) - 1)
    assert place(cluster) == "spot", "what runs on spot is kept"
    lost(cluster)
    assert (place(cluster), cluster.status.attempt) == ("on-demand", 2)
    assert cluster.status.attempts[-1].cause is status.Cause.RECLAIMED


def test_what_a_life_told_last_counts_though_its_end_is_seen_in_the_same_pass() -> None:
    cluster = virtual.Cluster(wishes(20)).running()
    kept = status.Checkpoint(work(1) - 1, cluster.now, 12.0)
    report = snap.Report(work(1), cluster.now, work(11), RATE, kept)
    cluster.progress = snap.Progress(cluster.status.attempt_id, work(1), 0.0, report=report)
    assert place(lost(cluster)) == "spot", "its work is known"
    assert cluster.status.checkpoint == kept
    assert [one.stepping for one in cluster.status.attempts] == [None, None]


def test_while_the_work_is_unknown_spot_is_tried_once_and_not_waited_for() -> None:
    cluster = virtual.Cluster(wishes(20))
    cluster.settle()
    pass_until(cluster, virtual.EPOCH + dt.timedelta(seconds=outlook.ARRIVAL - 1))
    assert place(cluster) == "spot"
    pass_until(cluster, virtual.EPOCH + dt.timedelta(seconds=outlook.ARRIVAL))
    assert place(cluster) == "on-demand"
    tried = virtual.Cluster(wishes(20)).running()
    assert feasible(tried).reason == conditions.WORK_UNKNOWN
    assert place(lost(tried)) == "on-demand"


def test_a_loss_while_the_work_is_unknown_is_followed_by_one_attempt_on_on_demand() -> None:
    """It was a reclaim, and says so; nobody moves a second later."""
    cluster = virtual.Cluster(wishes(48)).running()
    cluster.pass_time(HOUR)
    lost(cluster)
    assert (cluster.status.attempt, place(cluster)) == (2, "on-demand")
    assert cluster.status.attempts[-1].cause is status.Cause.RECLAIMED


def test_workers_that_wait_for_on_demand_need_it_no_more_when_the_deadline_is_taken_away() -> None:
    cluster = waiting(hours=20, left=10)
    cluster.edit(wishes(10.2))
    cluster.settle()
    assert place(cluster) == "on-demand"
    for pod in list(cluster.pods.values()):
        if not pod.node and not pod.ended:
            cluster.pods[pod.name] = dataclasses.replace(pod, unschedulable="no node has room")
    assert isinstance(cluster.spec, spec.Spec)
    cluster.edit(dataclasses.replace(cluster.spec, complete_by=None))
    cluster.settle()
    assert place(cluster) == "spot"


def test_a_program_that_tells_no_total_is_told_what_to_do() -> None:
    cluster = virtual.Cluster(wishes(20)).running()
    tell(cluster, step=10, total=None, saved=9)
    assert feasible(cluster).status is None
    assert "use run.steps(total), or pass total= to run.done" in feasible(cluster).message


def test_a_deadline_out_of_reach_is_said_as_soon_as_the_work_is_known_and_once() -> None:
    cluster = virtual.Cluster(wishes(8)).running()
    tell(cluster, step=1, total=work(10), saved=0)
    assert (feasible(cluster).status, feasible(cluster).reason) == (False, conditions.TOO_LATE)
    assert feasible(cluster).message == (
        "it will be late by about 2h, on on-demand too: 10h of work are left. Set spec.completeBy to "
        "2026-01-01T10:00:00Z or later, or give it less work"
    )
    cluster.pass_time(60)
    tell(cluster, step=100, total=work(10), saved=0)
    assert [one.reason for one in cluster.events].count(conditions.TOO_LATE) == 1
    assert cluster.step().slack == pytest.approx(-2 * HOUR - 10, abs=2)
    cluster.edit(wishes(11))
    cluster.settle()
    assert feasible(cluster).status is True


def test_a_rate_that_wavers_makes_no_second_event() -> None:
    """Late by a minute, then in time by a minute, and late again; then in time by ten."""
    cluster = virtual.Cluster(wishes(10)).running()
    seen = []
    for spare in (-60, 60, -60, 600):
        tell(cluster, step=0, total=1 + work(10) - round(spare * RATE), saved=None)
        seen.append(feasible(cluster).status)
    assert seen == [False, False, False, True]
    assert [one.reason for one in cluster.events].count(conditions.TOO_LATE) == 1


def test_a_deadline_that_cannot_be_met_is_missed_by_as_little_as_possible() -> None:
    cluster = virtual.Cluster(wishes(8)).running()
    tell(cluster, step=1, total=work(10), saved=0)
    assert place(lost(cluster)) == "on-demand"


def test_when_the_work_is_done_it_says_by_how_much_in_time() -> None:
    cluster = virtual.Cluster(wishes(20)).running()
    cluster.pass_time(18 * HOUR)
    for name in cluster.live():
        cluster.end(name, 0)
    cluster.settle()
    assert (feasible(cluster).status, feasible(cluster).reason) == (True, conditions.ON_TIME)
    assert feasible(cluster).message == "the work was done 2h before spec.completeBy"


def on_on_demand(**pools: hazard.Record) -> virtual.Cluster:
    """A job that was moved to on-demand, runs there, and has since got a deadline days later."""
    cluster = waiting(hours=20, left=10)
    cluster.edit(wishes(10.2))
    cluster.settle()
    assert place(cluster) == "on-demand"
    cluster.run_all()
    cluster.settle()
    tell(cluster, step=work(1.01), total=work(11), saved=work(1) - 1)
    cluster.edit(wishes(60))
    cluster.plan = waits_for_ever()
    cluster.settle()
    return cluster


def test_on_demand_is_left_when_spot_pays_again_but_not_in_its_first_hour() -> None:
    cluster = on_on_demand()
    began = cluster.status.attempts[-1].running
    assert began is not None
    pass_until(cluster, began + dt.timedelta(seconds=completion.STAY - 1))
    assert place(cluster) == "on-demand"
    pass_until(cluster, began + dt.timedelta(seconds=completion.STAY))
    last = cluster.status.attempts[-1]
    assert (place(cluster), last.cause) == ("spot", status.Cause.MOVED)
    assert last.detail.startswith("back to spot: spot pays again, with ")


@pytest.mark.parametrize(("hours", "held"), [(-5.0, False), (1.0, True)])
def test_spot_that_others_held_while_this_gang_found_none_is_no_reason_to_leave_on_demand(
    hours: float, held: bool
) -> None:
    """Or it would be left, waited and bought for, once an hour."""
    cluster = on_on_demand()
    since = virtual.EPOCH.timestamp() / 3600 + hours
    cluster.known = {
        snap.Pool(clouds.Capacity.SPOT, "a", "p5"): hazard.Record(state=hazard.State.HELD, since=since)
    }
    cluster.pass_time(2 * HOUR)
    found = outlook.of(cluster.snapshot(), cluster.status)
    assert found is not None
    assert found.held == held


@pytest.mark.parametrize(("zone", "held"), [("a", True), ("b", False)])
def test_spot_that_others_hold_counts_only_where_this_job_may_run(zone: str, held: bool) -> None:
    cluster = on_on_demand()
    assert isinstance(cluster.spec, spec.Spec)
    listed = spec.Spot(pools=(allowed.Entry(zone),))
    cluster.edit(dataclasses.replace(cluster.spec, spot=listed))
    since = virtual.EPOCH.timestamp() / 3600 + 1
    pool = snap.Pool(clouds.Capacity.SPOT, "a", "p5")
    cluster.known = {pool: hazard.Record(state=hazard.State.HELD, since=since)}
    cluster.pass_time(2 * HOUR)
    found = outlook.of(cluster.snapshot(), cluster.status)
    assert found is not None
    assert found.held == held


def test_on_demand_is_not_left_by_workers_that_could_not_save() -> None:
    cluster = on_on_demand()
    found = conditions.find(cluster.status.conditions, conditions.GRACE_SUFFICIENT)
    assert found is not None
    slow = dataclasses.replace(found, status=False, reason=conditions.SAVE_TOO_SLOW)
    cluster.status = dataclasses.replace(
        cluster.status, conditions=conditions.merged(cluster.status.conditions, slow)
    )
    cluster.progress = None
    pass_until(cluster, cluster.now + dt.timedelta(hours=5))
    assert place(cluster) == "on-demand"


class Life:
    """A job minute by minute: spot comes and goes, and is lost without notice."""

    RESTORE, BOUGHT = 240.0, 300.0
    """Seconds of a restore, and until on-demand machines are there: with them a start is below the prior."""

    def __init__(self, hours: float, left: float) -> None:
        self.due = virtual.EPOCH + dt.timedelta(hours=hours)
        self.cluster = virtual.Cluster(wishes(hours))
        self.total = work(left)
        self.step = self.saved = 0
        self.solved: dt.datetime | None = None
        self.cluster.settle()

    def minute(self, *, there: bool) -> None:
        cluster = self.cluster
        cluster.pass_time(60)
        last = cluster.status.attempts[-1]
        if last.running and not last.on_demand and not there:
            self.step = self.saved
            lost(cluster)
        self._start(there=there)
        self._train()
        cluster.settle()
        self._solve()

    def _start(self, *, there: bool) -> None:
        cluster = self.cluster
        waiting = [pod for pod in cluster.pods.values() if pod.phase == "Pending"]
        for pod in list(cluster.pods.values()):
            if pod.deleting is not None:
                cluster.end(pod.name, 143)
        if waiting and cluster.status.attempts[-1].on_demand:
            there = cluster.now >= waiting[0].created + dt.timedelta(seconds=self.BOUGHT)
        if waiting and there:
            cluster.run_all()
        cluster.settle()

    def _train(self) -> None:
        cluster, last = self.cluster, self.cluster.status.attempts[-1]
        if last.running is None or cluster.now < last.running + dt.timedelta(seconds=self.RESTORE):
            return
        self.step = min(self.total, self.step + round(60 * RATE))
        if self.step - self.saved >= EVERY * RATE:
            self.saved = self.step
        kept = self.saved - 1 if self.saved else None
        tell(cluster, step=max(0, self.step - 1), total=self.total, saved=kept)

    def _solve(self) -> None:
        question = outlook.question(self.cluster.snapshot())
        stale = self.solved is None or self.cluster.now - self.solved >= dt.timedelta(hours=12)
        if question is not None and stale:
            self.cluster.plan, self.solved = question.solve(), self.cluster.now

    @property
    def done(self) -> bool:
        return self.step >= self.total


@settings(deadline=None, max_examples=12)
@given(
    left=st.floats(0.5, 2),
    slack=st.floats(3 * START / HOUR, 3),
    spells=st.lists(st.integers(1, 120), min_size=1, max_size=20),
    first=st.booleans(),
)
def test_a_feasible_deadline_is_met_whatever_spot_does(
    left: float, slack: float, spells: list[int], first: bool
) -> None:
    life = Life(left + slack, left)
    spot = [first ^ bool(number % 2) for number, ticks in enumerate(spells) for _ in range(ticks)]
    for there in (*spot, *[False] * round(60 * (left + slack))):
        if life.done:
            break
        life.minute(there=there)
    assert life.done
    assert life.cluster.now <= life.due
