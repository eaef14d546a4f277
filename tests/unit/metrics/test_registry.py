"""What is counted of a pass, and what remains of a job that is gone."""

import dataclasses
import time

import prometheus_client as prometheus
import pytest
from prometheus_client import exposition
from prometheus_client.openmetrics import parser

from spottrain.api import duration, status
from spottrain.metrics import registry

ONE = status.Status(
    phase=status.Phase.RUNNING,
    attempt=1,
    workers=status.Workers(desired=3, running=2, on_demand=1, spot=1),
)


def change(name: str, before: status.Status, after: status.Status) -> registry.Change:
    return registry.Change("t", name, 1, before, after)


def shown(metrics: registry.Metrics) -> str:
    return prometheus.generate_latest(metrics.registry).decode()


def test_a_jobs_series_vanish_with_it_and_no_others_do() -> None:
    metrics = registry.Metrics()
    metrics.saw(change("a", status.Status(), ONE))
    metrics.saw(change("b", status.Status(), ONE))
    metrics.forget("t", "a")
    assert 'job="a"' not in shown(metrics)
    assert 'spottrain_job_workers_running{capacity="spot",job="b",namespace="t"} 1.0' in shown(metrics)


def test_workers_that_fell_back_are_shown_until_the_job_is_over() -> None:
    metrics, series = registry.Metrics(), 'spottrain_job_fallback_workers{job="a",namespace="t"}'
    fell = dataclasses.replace(ONE, workers=dataclasses.replace(ONE.workers, fallback=1))
    metrics.saw(change("a", ONE, fell))
    assert f"{series} 1.0" in shown(metrics)
    metrics.saw(change("a", fell, dataclasses.replace(fell, phase=status.Phase.COMPLETE)))
    assert f"{series} 0.0" in shown(metrics)


def test_a_job_that_was_never_seen_can_be_forgotten() -> None:
    registry.Metrics().forget("t", "a")


def test_forgetting_costs_the_same_beside_a_thousand_jobs() -> None:
    """Each pod of a deleted job that goes asks for it: its cost must not grow with the others."""
    metrics = registry.Metrics()
    for number in range(1000):
        metrics.saw(change(f"j{number}", status.Status(), ONE))
    begun = time.process_time()
    for _ in range(500):
        metrics.forget("t", "j0")
    assert time.process_time() - begun < 0.5


def test_a_reclaim_is_counted_under_its_cause_and_place() -> None:
    moment = duration.parse_time("2026-01-01T00:00:00Z")
    lost = status.Reclaim(moment, "NodeLost", "n1", "zone-a", "spot", "aws", 0, 1, "p5")
    moved = dataclasses.replace(lost, cause="Evicted", zone="zone-b")
    metrics = registry.Metrics()
    after = dataclasses.replace(ONE, reclaims=3, last_reclaim=moved)
    metrics.saw(dataclasses.replace(change("a", ONE, after), reclaims=(lost, moved, lost)))
    labels = {"namespace": "t", "cause": "NodeLost", "capacity": "spot", "provider": "aws", "zone": "zone-a"}
    labels |= {"instance_type": "p5"}
    assert metrics.registry.get_sample_value("spottrain_reclaims_total", labels) == pytest.approx(2.0)
    labels |= {"cause": "Evicted", "zone": "zone-b"}
    assert metrics.registry.get_sample_value("spottrain_reclaims_total", labels) == pytest.approx(1.0)


def test_a_measured_window_is_told_by_provider() -> None:
    metrics = registry.Metrics()
    metrics.lasted("azure", 8.5)
    metrics.lasted("azure", 31)

    labels = {"provider": "azure"}
    assert metrics.registry.get_sample_value("spottrain_notice_window_seconds_count", labels) == 2
    assert metrics.registry.get_sample_value("spottrain_notice_window_seconds_sum", labels) == 39.5
    within = labels | {"le": "10.0"}
    assert metrics.registry.get_sample_value("spottrain_notice_window_seconds_bucket", within) == 1


def test_deaf_nodes_are_counted_at_each_scrape() -> None:
    metrics, deaf = registry.Metrics(), ["n1", "n2"]
    assert metrics.registry.get_sample_value("spottrain_spot_nodes_unheard") == 0
    metrics.count_deaf_nodes(lambda: len(deaf))
    assert metrics.registry.get_sample_value("spottrain_spot_nodes_unheard") == 2
    deaf.clear()
    assert metrics.registry.get_sample_value("spottrain_spot_nodes_unheard") == 0


def test_a_pool_that_is_known_no_more_has_no_series() -> None:
    metrics = registry.Metrics()
    metrics.pools({("spot", "zone-a", "g5"): (0.05, False), ("spot", "zone-b", "g5"): (0.5, True)})
    metrics.pools({("spot", "zone-b", "g5"): (0.4, True)})
    labels = {"capacity": "spot", "zone": "zone-b", "instance_type": "g5"}
    assert metrics.registry.get_sample_value("spottrain_pool_hazard", labels) == pytest.approx(0.4)
    assert metrics.registry.get_sample_value("spottrain_pool_resting", labels) == pytest.approx(1.0)
    assert 'zone="zone-a"' not in shown(metrics)


def test_how_far_a_job_is_and_when_it_last_saved_is_told_once_known() -> None:
    metrics, job = registry.Metrics(), {"namespace": "t", "job": "a"}
    metrics.saw(change("a", status.Status(), ONE))
    value = metrics.registry.get_sample_value
    assert value("spottrain_job_attempt", job) == 1
    assert value("spottrain_job_step", job) is None
    assert value("spottrain_job_checkpoint_timestamp_seconds", job) is None
    saved = status.Checkpoint(40, duration.parse_time("1970-01-01T00:01:00Z"))
    metrics.saw(change("a", ONE, dataclasses.replace(ONE, step=41, checkpoint=saved)))
    assert value("spottrain_job_step", job) == 41
    assert value("spottrain_job_checkpoint_timestamp_seconds", job) == 60


@pytest.mark.parametrize("phase", registry.ENDS)
def test_a_job_that_ends_is_counted_once_by_its_outcome(phase: status.Phase) -> None:
    metrics, ended = registry.Metrics(), dataclasses.replace(ONE, phase=phase)
    metrics.saw(change("a", status.Status(), ONE))
    assert ends(metrics) == {"Complete": 0, "Failed": 0}
    metrics.saw(change("a", ONE, ended))
    metrics.saw(change("a", ended, dataclasses.replace(ended, workers=status.Workers(desired=3))))
    assert ends(metrics) == {"Complete": 0, "Failed": 0} | {str(phase): 1}
    metrics.forget("t", "a")
    assert ends(metrics)[str(phase)] == 1


def test_a_job_that_was_over_before_its_operator_began_is_not_counted() -> None:
    metrics, failed = registry.Metrics(), dataclasses.replace(ONE, phase=status.Phase.FAILED)
    metrics.saw(change("a", failed, failed))
    assert ends(metrics) == {"Complete": 0, "Failed": 0}


def ends(metrics: registry.Metrics) -> dict[str, float | None]:
    value = metrics.registry.get_sample_value
    return {
        end: value("spottrain_jobs_ended_total", {"namespace": "t", "outcome": end})
        for end in ("Complete", "Failed")
    }


def test_a_suspended_job_asks_for_no_workers() -> None:
    metrics = registry.Metrics()
    metrics.saw(change("a", ONE, dataclasses.replace(ONE, phase=status.Phase.SUSPENDED)))
    labels = {"namespace": "t", "job": "a"}
    assert metrics.registry.get_sample_value("spottrain_job_workers_desired", labels) == 0


def test_the_silence_of_a_watch_is_asked_for_at_each_scrape() -> None:
    metrics, silent = registry.Metrics(), [3.0, 185.0]
    metrics.time_watch("pods", lambda: silent.pop(0))
    found = [
        metrics.registry.get_sample_value("spottrain_watch_silence_seconds", {"watch": "pods"})
        for _ in range(2)
    ]
    assert found == [3.0, 185.0]


def test_the_time_to_run_again_is_split_where_all_workers_have_a_node() -> None:
    begun, placed, ran = (duration.parse_time(f"2026-01-01T00:00:{second}Z") for second in ("00", "40", "50"))
    again = status.Attempt(2, "b", status.Cause.RECLAIMED, begun)
    waiting = dataclasses.replace(ONE, attempt=2, attempts=(again,))
    running = dataclasses.replace(waiting, attempts=(dataclasses.replace(again, running=ran),))
    metrics = registry.Metrics()
    metrics.saw(dataclasses.replace(change("a", waiting, running), placed=placed))
    names = ("reclaim_to_running", "reclaim_to_placed", "placed_to_running")
    sums = [f"spottrain_{name}_seconds_sum" for name in names]
    assert [metrics.registry.get_sample_value(one, {"namespace": "t"}) for one in sums] == [50, 40, 10]


def test_reclaims_and_restarts_lead_to_the_job_and_its_attempt_in_openmetrics_alone() -> None:
    begun, ran = (duration.parse_time(f"2026-01-01T00:00:{second}Z") for second in ("00", "50"))
    lost = status.Reclaim(begun, "NodeLost", "n1", "zone-a", "spot", "aws", 0, 1, "p5")
    again = status.Attempt(2, "b", status.Cause.RECLAIMED, begun)
    waiting = dataclasses.replace(ONE, attempt=2, attempts=(again,))
    running = dataclasses.replace(waiting, attempts=(dataclasses.replace(again, running=ran),))
    metrics = registry.Metrics()
    name = "j" * 52  # the longest
    metrics.saw(dataclasses.replace(change(name, ONE, waiting), reclaims=(lost,)))
    metrics.saw(change(name, waiting, running))
    encode, _ = exposition.choose_encoder("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3")
    text = encode(metrics.registry).decode()
    points = {
        sample.name: (sample.exemplar.labels, sample.exemplar.value)
        for family in parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.exemplar
    }
    assert points == {
        "spottrain_reclaims_total": ({"job": name, "attempt": "1"}, 1),
        "spottrain_reclaim_to_running_seconds_bucket": ({"job": name, "attempt": "2"}, 50),
    }
    assert "# {" not in shown(metrics)


def test_the_slack_until_a_deadline_is_shown_while_it_is_known() -> None:
    metrics = registry.Metrics()
    metrics.saw(dataclasses.replace(change("a", ONE, ONE), slack=-90.0))
    assert 'spottrain_job_deadline_slack_seconds{job="a",namespace="t"} -90.0' in shown(metrics)
    metrics.saw(change("a", ONE, ONE))
    assert 'job_deadline_slack_seconds{job="a"' not in shown(metrics)
    metrics.saw(dataclasses.replace(change("a", ONE, ONE), slack=5.0))
    metrics.forget("t", "a")
    assert 'job="a"' not in shown(metrics)
