"""The page for Prometheus, read by Prometheus' own parser."""

from typing import Any

from prometheus_client import parser

from spottrain.train import metrics


def parsed(now: metrics.Reading) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name → its type, and sample names (with the label's value) → values."""
    families = parser.text_string_to_metric_families(metrics.render(now).decode())
    return {
        one.name: (
            one.type,
            {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in one.samples},
        )
        for one in families
    }


def test_before_the_first_step_there_are_counters_alone() -> None:
    assert parsed(metrics.Reading(metrics.Tally())) == {
        "spottrain_run_steps": ("counter", {"spottrain_run_steps_total": 0}),
        "spottrain_run_saves": (
            "counter",
            {"spottrain_run_saves_total committed": 0, "spottrain_run_saves_total failed": 0},
        ),
        "spottrain_run_save_blocked_seconds": (
            "summary",
            {"spottrain_run_save_blocked_seconds_sum": 0, "spottrain_run_save_blocked_seconds_count": 0},
        ),
        "spottrain_run_save_upload_seconds": (
            "summary",
            {"spottrain_run_save_upload_seconds_sum": 0, "spottrain_run_save_upload_seconds_count": 0},
        ),
    }


def test_what_is_known_is_told() -> None:
    tally = metrics.Tally(steps=21, failed=1).saved(blocked=0.5, whole=2.0).saved(blocked=0.25, whole=1.25)
    now = metrics.Reading(
        tally, step=41, total=100, rate=3.125, resumed_from=20, restore=0.75, skipped=2,
        saved_step=40, saved_time=1795965891.8, interval=60.0, unsaved=1.5, stop=2.5, grace=25.0,
    )  # fmt: skip
    gauges = {
        name: value
        for _, (kind, values) in parsed(now).items()
        if kind == "gauge"
        for name, value in values.items()
    }
    assert gauges == {
        "spottrain_run_step": 41,
        "spottrain_run_goal_steps": 100,
        "spottrain_run_steps_per_second": 3.125,
        "spottrain_run_resumed_from_step": 20,
        "spottrain_run_restore_seconds": 0.75,
        "spottrain_run_checkpoint_step": 40,
        "spottrain_run_checkpoint_timestamp_seconds": 1795965891.8,
        "spottrain_run_save_interval_seconds": 60,
        "spottrain_run_unsaved_seconds": 1.5,
        "spottrain_run_stop_seconds": 2.5,
        "spottrain_run_grace_seconds": 25,
    }
    counters = {
        name: value
        for _, (kind, values) in parsed(now).items()
        if kind != "gauge"
        for name, value in values.items()
    }
    assert counters == {
        "spottrain_run_steps_total": 21,
        "spottrain_run_checkpoints_skipped_total": 2,
        "spottrain_run_saves_total committed": 2,
        "spottrain_run_saves_total failed": 1,
        "spottrain_run_save_blocked_seconds_sum": 0.75,
        "spottrain_run_save_blocked_seconds_count": 2,
        "spottrain_run_save_upload_seconds_sum": 2.5,
        "spottrain_run_save_upload_seconds_count": 2,
    }
