"""What workers' time comes to: each second once, under one outcome, whatever happens and whoever looks."""

import dataclasses
import datetime as dt
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from spottrain.api import clouds, conditions, ledger, prices, spec, status
from spottrain.plan import bill
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

PRICES = prices.Prices(prices.parse("1.10"), prices.parse("3.67"))
HOUR = 3600


def started(job: spec.Spec, waited: float = 0) -> virtual.Cluster:
    """Its workers have nodes from the first second on, and run after that time."""
    cluster = virtual.Cluster(job)
    cluster.settle()
    for name, overlay in cluster.overlays.items():
        cluster.bind(name, "od" if overlay.ask is clouds.Ask.ON_DEMAND else f"n{overlay.index + 1}")
    cluster.settle()
    cluster.pass_time(waited)
    for name in cluster.pods:
        cluster.run(name)
    cluster.settle()
    return cluster


def tell(cluster: virtual.Cluster, **said: Any) -> None:
    """Worker 0 of the attempt is asked, and says this."""
    report = snap.Report(time=cluster.now, **said)
    cluster.progress = snap.Progress(cluster.status.attempt_id, report.step, 0.0, report=report)
    cluster.settle()


def ago(cluster: virtual.Cluster, seconds: float) -> dt.datetime:
    return cluster.now - dt.timedelta(seconds=seconds)


def outcomes(cluster: virtual.Cluster, capacity: str = "spot") -> dict[str, int]:
    """Seconds, without those that are 0."""
    account = cluster.status.cost.account(capacity)
    return {str(one): account.of(one) for one in ledger.Outcome if account.of(one)}


def figures(cluster: virtual.Cluster) -> dict[str, Any]:
    return ledger.render(cluster.status.cost) or {}


def test_the_time_of_a_gang_has_its_outcome_from_mark_to_mark() -> None:
    """30 s until all run, 60 s of restoring, useful up to a save's beginning, and lost after that."""
    cluster = started(virtual.wishes(workers=2, spot=spec.Spot(floor=1), prices=PRICES), waited=30)
    cluster.pass_time(700)
    saved = status.Checkpoint(5, ago(cluster, 20), save_seconds=40.0)
    tell(cluster, step=5, began=ago(cluster, 640), saved=saved)
    expected = {"useful": 580, "restoring": 60, "waiting": 30}
    assert outcomes(cluster) == outcomes(cluster, "on-demand") == expected
    cluster.pass_time(270)
    cluster.evict(cluster.pod(1).name)
    cluster.settle()
    cluster.pass_time(10)
    for name in cluster.names_of(1):
        cluster.end(name, 143)
    cluster.settle()
    assert outcomes(cluster) == outcomes(cluster, "on-demand") == {**expected, "lost": 340}


def test_a_look_at_which_nothing_is_new_changes_nothing_though_times_are_read_in_whole_seconds() -> None:
    cluster = started(virtual.wishes(workers=2, prices=PRICES))
    cluster.pass_time(100.75)
    tell(cluster, step=5, began=ago(cluster, 90.3), saved=status.Checkpoint(5, ago(cluster, 7.4), 2.0))
    written = cluster.status
    cluster.pass_time(3)
    plan = cluster.step()
    assert status.render(plan.status) == status.render(written)


def test_a_price_that_cannot_be_read_is_said_once_for_a_node_and_not_where_the_job_has_prices() -> None:
    for offer, times in ((None, 1), (PRICES, 0)):
        cluster = virtual.Cluster(virtual.wishes(workers=2, prices=offer))
        cluster.change_node("n1", rate_problem='"dear" is no price')
        cluster.settle()
        for name in cluster.overlays:
            cluster.bind(name, "n1")
        cluster.settle()
        assert len([one for one in cluster.events if one.reason == conditions.PRICE_UNREADABLE]) == times


def test_a_price_that_cannot_be_read_is_said_once_although_the_status_waits_to_be_written() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1))
    cluster.change_node("n1", rate_problem='"dear" is no price')
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    told = []
    for waits in (True, True, False, False):
        cluster.words_wait = waits
        cluster.step()
        told.append(sum(one.reason == conditions.PRICE_UNREADABLE for one in cluster.events))
    assert told == [0, 0, 1, 1]


def test_24_hours_with_three_reclaims_that_lost_ten_minutes_cost_7_35_and_save_16_65() -> None:
    """24 h of work at 70 % off: the same work on demand costs 24."""
    offer = prices.Prices(prices.parse("0.30"), prices.parse("1"))
    cluster = started(virtual.wishes(workers=1, prices=offer))
    for _ in range(3):
        tell(cluster, step=0, began=cluster.now)
        cluster.pass_time(6 * HOUR)
        tell(cluster, step=6, saved=status.Checkpoint(6, cluster.now))
        cluster.pass_time(600)
        cluster.evict(cluster.pod(0).name)
        cluster.end(cluster.pod(0).name, 143)
        cluster.recovered()
    cluster.pass_time(6 * HOUR)
    cluster.end(cluster.pod(0).name, 0)
    cluster.settle()
    said = figures(cluster)
    assert (said["cost"], said["saved"]) == ("7.35", "16.65")
    assert (said["spotHours"], said["usefulHours"], said["lostHours"]) == (24.5, 24.0, 0.5)
    assert said["undecidedHours"] == 0


def test_a_save_on_the_way_out_makes_all_of_it_useful() -> None:
    cluster = started(virtual.wishes(workers=2))
    cluster.pass_time(500)
    cluster.delete(cluster.pod(1).name)
    cluster.settle()
    cluster.pass_time(20)
    cluster.end("tr-0-1", 75, said=snap.Words("preempted", 9, 9, 4.0))
    cluster.end("tr-1-1", 75)
    cluster.settle()
    assert outcomes(cluster) == {"useful": 1040}


def test_a_new_operator_knows_a_save_on_the_way_out_by_the_status() -> None:
    """Worker 0's pod is gone before the other one ends, and so is the operator that had seen it."""
    cluster = started(virtual.wishes(workers=2))
    cluster.pass_time(500)
    cluster.delete(cluster.pod(1).name)
    cluster.settle()
    cluster.pass_time(20)
    cluster.end("tr-0-1", 75, said=snap.Words("preempted", 9, 9, 4.0))
    cluster.settle()
    cluster.departed.clear()
    cluster.end("tr-1-1", 75)
    cluster.settle()
    assert outcomes(cluster) == {"useful": 1040}


def test_a_save_on_the_way_out_that_came_to_nothing_loses_what_came_after_the_one_before() -> None:
    cluster = stopped(snap.Words("preempted", 9, 8, 4.0))
    assert outcomes(cluster) == {"useful": 800, "lost": 200}


def test_a_save_that_only_the_last_word_tells_of_was_useful_until_it_began() -> None:
    """Committed 26 s before the end, and begun 4 s before that."""
    moment = virtual.EPOCH + dt.timedelta(seconds=474)
    cluster = stopped(snap.Words("preempted", 10, 9, 4.0, moment))
    assert outcomes(cluster) == {"useful": 940, "lost": 60}


def test_of_a_sidecars_program_nobody_knows_what_came_after_the_last_save() -> None:
    """Its last word names the step of that save, which says nothing of what the program did since."""
    moment = virtual.EPOCH + dt.timedelta(seconds=454)
    cluster = stopped(snap.Words("", 9, 9, 4.0, moment))
    assert outcomes(cluster) == {"useful": 900, "lost": 100}


def test_a_save_after_the_notice_of_a_gang_that_trains_on_is_not_its_last_work() -> None:
    """The next attempt is recorded at the notice; this one's workers go on until they are told to stop."""
    cluster = started(virtual.wishes(workers=1))
    cluster.pass_time(500)
    cluster.change_node("n1", notice="spot")
    cluster.settle()
    later = cluster.now + dt.timedelta(seconds=100)
    cluster.pods["tr-0-1"] = dataclasses.replace(cluster.pods["tr-0-1"], train_until=later)
    cluster.pass_time(90)
    cluster.end("tr-0-1", 143, said=snap.Words("preempted", 9, 8, 0.0, ago(cluster, 60)))
    cluster.settle()
    assert outcomes(cluster) == {"useful": 530, "lost": 60}


def test_a_life_that_did_nothing_new_saved_nothing() -> None:
    cluster = stopped(snap.Words("preempted", 9, 9, None, None, 9))
    assert outcomes(cluster) == {"useful": 800, "lost": 200}


def stopped(said: snap.Words) -> virtual.Cluster:
    """Two workers that ran for 500 s, and told 100 s before that of a save; then worker 0 says this."""
    cluster = started(virtual.wishes(workers=2))
    cluster.pass_time(500)
    tell(cluster, step=8, saved=status.Checkpoint(8, ago(cluster, 100)))
    cluster.delete(cluster.pod(1).name)
    cluster.settle()
    cluster.end("tr-0-1", 75, said=said)
    cluster.end("tr-1-1", 75)
    cluster.settle()
    return cluster


def test_workers_that_never_all_ran_have_waited() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=2, placement_timeout=60.0))
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    cluster.run("tr-0-1")
    cluster.pass_time(60)
    cluster.settle()
    cluster.end("tr-0-1", 143)
    cluster.settle()
    assert cluster.status.attempts[-1].cause is status.Cause.UNPLACED
    assert outcomes(cluster) == {"waiting": 60}


def test_a_paused_job_owes_nothing_more() -> None:
    job = virtual.wishes(workers=2)
    cluster = started(job)
    cluster.pass_time(300)
    cluster.edit(dataclasses.replace(job, suspend=True))
    cluster.settle()
    for name in cluster.names_of(1):
        cluster.end(name, 75, said=snap.Words("preempted", 9, 9, 4.0))
    cluster.settle()
    cluster.pass_time(HOUR)
    cluster.settle()
    assert outcomes(cluster) == {"useful": 600}
    assert figures(cluster)["undecidedHours"] == 0


def test_what_went_while_nobody_looked_has_ended_when_that_is_noticed() -> None:
    """The operator that comes then knows of the pod what the ledger says alone."""
    cluster = started(virtual.wishes(workers=3))
    cluster.pass_time(100)
    cluster.remove(cluster.pod(1).name)
    cluster.departed.clear()
    cluster.pass_time(50)
    cluster.settle()
    for name in cluster.names_of(1):
        cluster.end(name, 143)
    cluster.settle()
    assert outcomes(cluster) == {"lost": 450}


def test_pods_that_are_kept_for_their_logs_are_counted_once_whoever_leads() -> None:
    cluster = started(virtual.wishes(workers=2))
    cluster.pass_time(100)
    for name in cluster.names_of(1):
        cluster.end(name, 1)
    cluster.settle()
    before = outcomes(cluster)
    cluster.departed.clear()
    cluster.recovered()
    assert cluster.names_of(1) == ["tr-0-1", "tr-1-1"]
    assert before == outcomes(cluster) == {"lost": 200}


def test_one_that_came_and_went_between_two_looks_is_counted() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1))
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    cluster.pass_time(40)
    cluster.remove("tr-0-1")
    cluster.settle()
    assert outcomes(cluster) == {"waiting": 40}


def test_figures_move_with_other_news_and_every_ten_minutes_without() -> None:
    cluster = started(virtual.wishes(workers=1))
    first = cluster.status
    cluster.pass_time(bill.FIGURES_EVERY.total_seconds() - 1)
    cluster.settle()
    assert cluster.status == first
    cluster.pass_time(1)
    cluster.settle()
    assert figures(cluster)["spotHours"] == figures(cluster)["undecidedHours"] == 0.1667


def test_nothing_of_it_is_a_reason_to_write_at_once() -> None:
    cluster = started(virtual.wishes(workers=1))
    more = cluster.status.cost.plus("spot", ledger.Outcome.LOST, 9, None)
    assert dataclasses.replace(cluster.status, cost=more).decides_as(cluster.status)


# An index of an Independent job is settled by itself.


def test_indexes_that_finished_saved_or_failed_are_told_apart() -> None:
    cluster = started(virtual.shards(workers=3))
    cluster.pass_time(100)
    began = ago(cluster, 70)
    ends = ((0, None), (75, snap.Words("preempted", 4, 4, 1.0)), (1, snap.Words("preempted", 4, 3, 1.0)))
    for index, (code, said) in enumerate(ends):
        name = f"tr-{index}-1"
        cluster.end(name, code, said=said)
        pod = cluster.pods[name]
        cluster.pods[name] = dataclasses.replace(
            pod, exit=dataclasses.replace(pod.exit or snap.Exit(code, ""), started=began)
        )
    cluster.settle()
    assert outcomes(cluster) == {"useful": 140, "lost": 70, "waiting": 90}


def test_an_index_that_was_recorded_as_finished_is_useful_though_its_pod_is_forgotten() -> None:
    cluster = started(virtual.shards(workers=2))
    cluster.pass_time(100)
    shards = cluster.status.shards
    assert shards is not None
    done = dataclasses.replace(shards, completed=shards.made, made=ledger.NONE)
    cluster.status = dataclasses.replace(cluster.status, shards=done)
    for index in range(2):
        cluster.remove(f"tr-{index}-1")
    cluster.departed.clear()
    cluster.settle()
    assert outcomes(cluster) == {"useful": 200}


# Where prices come from.


def spent(cluster: virtual.Cluster, capacity: str = "spot") -> prices.Amount:
    """A second costs what an hour is said to, which is more than enough to tell prices apart."""
    cluster.pass_time(1)
    for pod in list(cluster.pods.values()):
        cluster.end(pod.name, 0)
    cluster.settle()
    return cluster.status.cost.account(capacity).spent


def priced(**more: Any) -> virtual.Cluster:
    """A worker on a node that has a price, in a pool that has another one."""
    cluster = virtual.Cluster(virtual.wishes(workers=1, **more))
    rate = prices.Rate(prices.parse("3"), prices.parse("9"))
    cluster.change_node("n1", rate=rate, instance_type="g5", zone="a")
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    return cluster


def test_the_spec_comes_before_the_table_and_the_table_before_the_node() -> None:
    lines, _ = prices.table("spot g5 a 2\non-demand g5 * 8")
    node, table, both = priced(), priced(), priced(prices=PRICES)
    table.prices = both.prices = lines
    assert [spent(one) for one in (node, table, both)] == [3, 2, prices.parse("1.10")]


def test_an_edit_of_the_prices_holds_for_workers_that_get_a_node_later() -> None:
    cluster = priced(prices=PRICES)
    cluster.settle()
    cluster.edit(virtual.wishes(workers=1, prices=prices.Prices(prices.parse("7"), prices.parse("7"))))
    assert spent(cluster) == prices.parse("1.10")


def test_where_nobody_knows_what_a_node_is_bought_as_the_dearer_price_holds() -> None:
    cluster = priced(prices=PRICES)
    cluster.change_node("n1", capacity=clouds.Capacity.UNKNOWN)
    assert spent(cluster, "unknown") == prices.parse("3.67")


def test_without_a_price_there_are_hours_and_no_amounts() -> None:
    cluster = started(virtual.wishes(workers=1))
    cluster.pass_time(HOUR)
    cluster.end("tr-0-1", 0)
    cluster.settle()
    said = figures(cluster)
    assert said["usefulHours"] == 1.0
    assert not {"cost", "saved", "unpricedHours"} & said.keys()


def test_marks_of_a_node_that_are_no_prices_are_said_and_the_hours_are_without_one() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1))
    cluster.change_node("n1", rate_problem='price: "free" is not a price')
    cluster.settle()
    cluster.bind("tr-0-1", "n1")
    cluster.settle()
    said = [one for one in cluster.events if one.reason == conditions.PRICE_UNREADABLE]
    assert [one.message for one in said] == ['node n1: price: "free" is not a price']


# Lives at random.

EVENTS = st.sampled_from(
    (
        "run",
        "end 0",
        "end 1",
        "end 75",
        "evict",
        "vanish",
        "silence",
        "heal",
        "suspend",
        "edit",
        "report",
        "restart",
    )
)


def total(cluster: virtual.Cluster) -> int:
    """All seconds of the ledger, with an outcome or without one yet."""
    book, now = cluster.status.cost, int(cluster.now.timestamp())
    assert sum(one.seconds for one in book.accounts) == sum(
        one.of(outcome) for outcome in ledger.Outcome for one in book.accounts
    )
    return sum(one.seconds for one in book.accounts) + sum(one.undecided(now) for one in book.lines)


class Witnessed(virtual.Cluster):
    """Every pod that had a node, as it was last, by the cluster alone."""

    def __init__(self, job: spec.Spec) -> None:
        super().__init__(job)
        self.gone: list[snap.Pod] = []

    def remove(self, name: str) -> None:
        super().remove(name)
        self.gone.append(self.departed[-1])

    def delete_job(self) -> None:
        assert all(pod.ended for pod in self.pods.values())
        self.gone += self.pods.values()
        super().delete_job()

    def paid(self) -> int:
        """Seconds of pods on nodes until now."""
        pods = [pod for pod in (*self.gone, *self.pods.values()) if pod.node]
        ends = [(pod.exit.finished if pod.exit else None) or pod.left or self.now for pod in pods]
        return sum(int((end - pod.created).total_seconds()) for pod, end in zip(pods, ends, strict=True))


@pytest.mark.parametrize(
    "job",
    [virtual.wishes(workers=3, prices=PRICES), virtual.shards(workers=4)],
    ids=["gang", "independent"],
)
@hypothesis.given(script=st.lists(st.tuples(EVENTS, st.integers(0, 5), st.integers(0, 90)), max_size=25))
@hypothesis.settings(max_examples=40, deadline=None)
def test_every_second_of_a_pod_on_a_node_is_counted_once(
    job: spec.Spec, script: list[tuple[str, int, int]]
) -> None:
    """Whatever happens, passes are made again, and another operator takes over where this one has written."""
    cluster = Witnessed(job)
    for event, which, seconds in script:
        happen(cluster, job, event, which)
        cluster.settle()
        if event == "restart":
            cluster.departed.clear()
        cluster.pass_time(seconds)
        assert total(cluster) == cluster.paid()
    book = cluster.status.cost
    assert ledger.parse(ledger.render(book) or {}) == book


def happen(cluster: virtual.Cluster, job: spec.Spec, event: str, which: int) -> None:
    """One thing that others do."""
    living = sorted(pod.name for pod in cluster.pods.values() if not pod.ended and pod.node)
    chosen = living[which % len(living)] if living else ""
    match event.split():
        case ["run"]:
            cluster.run_all()
        case ["end", code] if chosen:
            cluster.end(chosen, int(code), said=snap.Words("preempted", 9, 9 if which % 2 else 8, 1.0))
        case ["evict"] if chosen:
            cluster.evict(chosen)
        case ["vanish"] if chosen:
            cluster.remove(chosen)
        case ["silence"]:
            cluster.silence("n1")
        case ["heal"]:
            cluster.change_node("n1", ready=True, ready_since=cluster.now)
        case ["suspend"]:
            cluster.edit(dataclasses.replace(job, suspend=which % 2 == 0))
        case ["edit"]:
            image = {"name": "trainer", "image": f"i{which % 2}"}
            cluster.edit(dataclasses.replace(job, template={"spec": {"containers": [image]}}))
        case ["report"]:
            saved = status.Checkpoint(which, ago(cluster, which), 1.0)
            report = snap.Report(which + 1, cluster.now, saved=saved, began=ago(cluster, 30))
            cluster.progress = snap.Progress(cluster.status.attempt_id, which, 0.0, report=report)
