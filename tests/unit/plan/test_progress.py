"""What workers say of themselves, in the status."""

import dataclasses
import datetime as dt

from spottrain.api import conditions, status
from spottrain.plan import snapshot as snap
from tests.unit.plan import virtual

SAVED = status.Checkpoint(40, virtual.EPOCH + dt.timedelta(seconds=5), 12.0)


def told(cluster: virtual.Cluster, **changes: object) -> status.Status:
    """The status after worker 0 of the current attempt has told that."""
    report = dataclasses.replace(snap.Report(41, cluster.now, 1000, 3.125, SAVED), **changes)  # type: ignore[arg-type]
    cluster.progress = snap.Progress(cluster.status.attempt_id, report.step, 0.0, report=report)
    cluster.settle()
    return cluster.status


def grace(one: status.Status) -> conditions.Condition:
    found = conditions.find(one.conditions, conditions.GRACE_SUFFICIENT)
    assert found is not None
    return found


def test_step_rate_and_checkpoint_reach_the_status() -> None:
    cluster = virtual.Cluster().running()
    one = told(cluster)
    assert one.step == 41
    assert one.progress == status.Progress(1000, 3.125, cluster.now)
    assert one.checkpoint == SAVED
    rendered = status.render(one)
    assert rendered["progress"] == {
        "step": 41,
        "total": 1000,
        "perSecond": 3.125,
        "time": "2026-01-01T00:00:00Z",
    }
    assert rendered["checkpoint"] == {"step": 40, "time": "2026-01-01T00:00:05Z", "saveSeconds": 12.0}


def test_a_life_that_has_not_saved_yet_leaves_the_checkpoint_of_the_one_before() -> None:
    cluster = virtual.Cluster().running()
    told(cluster)
    cluster.evict("tr-1-1")
    cluster.recovered()
    assert cluster.status.attempt == 2
    one = told(cluster, step=None, saved=None)
    assert (one.step, one.checkpoint) == (41, SAVED)


def test_what_another_attempt_says_is_not_told() -> None:
    cluster = virtual.Cluster().running()
    report = snap.Report(41, cluster.now)
    cluster.progress = snap.Progress("other", 41, 0.0, report=report)
    cluster.settle()
    assert (cluster.status.step, cluster.status.progress) == (None, status.Progress())


def test_the_last_word_of_a_life_tells_its_checkpoint_where_nobody_could_ask() -> None:
    cluster = virtual.Cluster().running()
    name = cluster.pod(0).name
    cluster.pods[name] = dataclasses.replace(cluster.pods[name], said=snap.Words("preempted", 57, 57, 3.5))
    cluster.settle()
    assert cluster.status.checkpoint == status.Checkpoint(57, None, 3.5)
    assert cluster.status.step == 57


def test_the_last_word_of_a_life_outweighs_what_it_told_before() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    told(cluster)
    cluster.pass_time(30)
    cluster.end("tr-0-1", 0, said=snap.Words("finished", 57, 57, 3.5))
    cluster.settle()
    assert cluster.status.checkpoint == status.Checkpoint(57, cluster.now, 3.5)


def test_what_a_life_began_with_is_no_save_of_its_own() -> None:
    cluster = virtual.Cluster().running()
    name = cluster.pod(0).name
    cluster.pods[name] = dataclasses.replace(cluster.pods[name], said=snap.Words("preempted", 57, 20, None))
    cluster.settle()
    assert cluster.status.checkpoint is None


def steps(one: status.Status) -> list[tuple[int | None, int | None]]:
    return [(attempt.resume_step, attempt.last_step) for attempt in one.attempts]


def drained(cluster: virtual.Cluster, name: str, said: snap.Words) -> None:
    """The worker is evicted, leaves that last word, and the gang is whole again."""
    cluster.evict(name)
    cluster.settle()
    cluster.end(name, 75, said=said)
    cluster.recovered()


def test_each_attempt_keeps_where_it_went_on_and_how_far_it_came() -> None:
    """The first tells it while it lives, and once more when it ends; of the second nobody could ask."""
    cluster = virtual.Cluster().running()
    told(cluster, began=cluster.now)
    drained(cluster, "tr-1-1", snap.Words("preempted", 57, 50, 3.5))
    told(cluster, step=None, resumed_from=50)
    assert steps(cluster.status) == [(0, 57), (51, None)]
    drained(cluster, "tr-1-2", snap.Words("preempted", 66, 50, None, resumed_from=50))
    assert steps(cluster.status) == [(0, 57), (51, 66), (None, None)]
    assert [one.get("lastStep") for one in status.render(cluster.status)["attempts"]] == [57, 66, None]


def test_a_program_that_starts_anew_within_an_attempt_is_the_same_life() -> None:
    cluster = virtual.Cluster().running()
    told(cluster, step=57, resumed_from=20)
    assert steps(told(cluster, step=44, resumed_from=40)) == [(21, 57)]


def test_a_life_that_ended_before_it_began_went_on_nowhere() -> None:
    cluster = virtual.Cluster().running()
    drained(cluster, "tr-1-1", snap.Words("preempted"))
    assert steps(cluster.status) == [(None, None), (None, None)]


def test_a_save_that_fits_the_grace_is_a_condition_without_an_event() -> None:
    cluster = virtual.Cluster().running()
    events = len(cluster.events)
    one = grace(told(cluster, stop=snap.Stop(12.345, 25.0, fits=True)))
    assert (one.status, one.reason) == (True, "SaveFits")
    assert one.message == "a save on SIGTERM takes about 12 s of the 25 s of grace"
    assert len(cluster.events) == events


def test_a_save_that_does_not_fit_is_said_once_and_again_when_it_happens_again() -> None:
    cluster = virtual.Cluster().running()
    events = len(cluster.events)
    for seconds, fits in ((31.2, False), (33.3, False), (20.0, True), (31.2, False)):
        told(cluster, stop=snap.Stop(seconds, 25.0, fits=fits))
    found = grace(cluster.status)
    assert (found.status, found.reason) == (False, "SaveTooSlow")
    needs = "a save on SIGTERM takes about 31 s of the 25 s of grace"
    assert found.message == f"{needs}: a reclaim loses what came since the last save"
    said = [event for event in cluster.events[events:] if event.reason == "SaveTooSlow"]
    assert [event.warning for event in said] == [True, True]


def test_a_report_alone_decides_nothing_but_its_step() -> None:
    one = status.Status(step=41)
    more = dataclasses.replace(one, progress=status.Progress(1000, 3.0, virtual.EPOCH), checkpoint=SAVED)
    assert more.decides_as(one)
    attempt = status.Attempt(1, "a", status.Cause.INITIAL, virtual.EPOCH)
    further = dataclasses.replace(attempt, resume_step=0, last_step=41)
    both = [dataclasses.replace(one, attempts=(life,)) for life in (attempt, further)]
    assert both[0].decides_as(both[1])
    assert not dataclasses.replace(one, step=42).decides_as(one)


def storing(one: status.Status) -> tuple[bool | None, str] | None:
    found = conditions.find(one.conditions, conditions.CHECKPOINTS_STORED)
    return None if found is None else (found.status, found.message)


def test_what_a_sidecar_does_not_store_is_said_once_until_it_does() -> None:
    cluster = virtual.Cluster().running()
    events = len(cluster.events)
    assert storing(told(cluster)) is None
    for _ in range(2):
        assert storing(told(cluster, problem="it is in shards")) == (False, "it is in shards")
    assert [event.reason for event in cluster.events[events:]] == ["NotStored"]
    assert storing(told(cluster)) == (True, "they are stored again")


def test_a_job_that_finished_says_if_its_last_checkpoint_was_not_stored() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    told(cluster)
    said = snap.Words(snap.UNSAVED, 40, 40, 2.5)
    cluster.end("tr-0-1", 0, said=said)
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
    stored, text = storing(cluster.status) or (None, "")
    assert stored is False
    assert text.startswith("tr-0-1 finished, and its last checkpoint was not stored: ")


def test_a_job_is_not_complete_while_a_last_checkpoint_is_on_its_way() -> None:
    cluster = virtual.Cluster(virtual.wishes(workers=1)).running()
    ended = snap.Exit(0, "Completed", cluster.now)
    running = cluster.pods["tr-0-1"]
    cluster.pods["tr-0-1"] = dataclasses.replace(running, exit=ended, flushing=True)
    cluster.settle()
    assert not cluster.status.over
    cluster.pods["tr-0-1"] = dataclasses.replace(running, exit=ended, running=False, phase="Succeeded")
    cluster.settle()
    assert cluster.status.phase is status.Phase.COMPLETE
