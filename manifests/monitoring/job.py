"""The board of one job: its lives, its steps, its checkpoints."""

from manifests.monitoring.grafana import Board, Panel, Query, Row, Variable, stat
from manifests.monitoring.recorded import counted

_HERE = 'namespace="$namespace", job="$job"'


def _of(series: str, more: str = "") -> str:
    return f"{series}{{{_HERE}{more}}}"


def _now(series: str) -> str:
    """The newest life's: two can be seen for a moment."""
    return f"max({_of(series)})"


def _mean(summary: str) -> str:
    total, count = _of(f"{summary}_sum"), _of(f"{summary}_count")
    return f"max({total} / ({count} > 0))"


_FURTHEST = f"max(max_over_time({_of('spottrain_run_step')}[1h]))"
_BEFORE = (
    f"(max(max_over_time({_of('spottrain_run_step')}[1d] offset 1h))"
    f" or min(min_over_time({_of('spottrain_run_step')}[1h])))"
)
_DONE = counted(_of("spottrain_run_steps_total"), "1h")

NOW = Row(
    "Now",
    (
        stat(
            "Workers that run", "All of the newest attempt.", f"sum({_of('spottrain_job_workers_running')})"
        ),
        stat("Workers wanted", "None while it is suspended.", _now("spottrain_job_workers_desired")),
        stat("Attempt", "Each reclaim of a gang begins another.", _now("spottrain_job_attempt")),
        stat("Step", "As the operator knows it.", _now("spottrain_job_step")),
        stat(
            "Age of the newest checkpoint",
            "As the operator knows it.",
            f"time() - {_now('spottrain_job_checkpoint_timestamp_seconds')}",
            "s",
        ),
        stat(
            "Left to train",
            "At the present pace, without the next reclaim; of programs that tell how many steps they have.",
            f"({_now('spottrain_run_goal_steps')} - {_now('spottrain_run_step')})"
            f" / {_now('spottrain_run_steps_per_second')}",
            "s",
        ),
    ),
)
LIVES = Row(
    "Lives",
    (
        Panel(
            "Attempt",
            "`kubectl describe stj` has the cause of each.",
            (Query(_now("spottrain_job_attempt"), "attempt"),),
            kind="state-timeline",
            width=24,
        ),
        Panel(
            "Workers by capacity",
            "The line is what the job asks for.",
            (
                Query(f"sum by (capacity) ({_of('spottrain_job_workers_running')})", "{{capacity}}"),
                Query(_now("spottrain_job_workers_desired"), "wanted"),
            ),
        ),
        Panel(
            "Floor and fallback",
            "On-demand workers that it wants and lacks, and those that are there because spot had no room.",
            (
                Query(_now("spottrain_job_floor_shortfall"), "missing from the floor"),
                Query(_now("spottrain_job_fallback_workers"), "fell back"),
            ),
        ),
        Panel(
            "Restore",
            "From the claim in the store until the state was loaded, of each life.",
            (Query(_of("spottrain_run_restore_seconds"), "{{pod}}"),),
            "s",
        ),
    ),
)
STEPS = Row(
    "Steps",
    (
        Panel(
            "Step",
            "Where it falls back, work was lost: down to the checkpoint that the next life went on from.",
            (
                Query(_now("spottrain_run_step"), "done"),
                Query(_now("spottrain_run_checkpoint_step"), "saved"),
                Query(_now("spottrain_run_resumed_from_step"), "resumed from"),
            ),
            width=6,
        ),
        Panel(
            "Steps per second",
            "Of the last 100, with what lies between them.",
            (Query(_now("spottrain_run_steps_per_second"), "steps per second"),),
            "none",
            width=6,
        ),
        Panel(
            "To spare until the deadline",
            "If all goes well from now on; of jobs with completeBy whose length is known. Below 0: missing.",
            (Query(_now("spottrain_job_deadline_slack_seconds"), "to spare"),),
            "s",
            width=6,
            signed=True,
        ),
        Panel(
            "Share of steps that counted",
            "Of those done in the last hour: the rest had been done before a loss.",
            (Query(f"clamp(({_FURTHEST} - {_BEFORE}) / {_DONE}, 0, 1)", "counted"),),
            "percentunit",
            width=6,
        ),
    ),
)
CHECKPOINTS = Row(
    "Checkpoints",
    (
        Panel(
            "Work at risk",
            "Training that the loss of a node without notice would cost now, beside the time wanted "
            "between saves.",
            (
                Query(_now("spottrain_run_unsaved_seconds"), "at risk"),
                Query(_now("spottrain_run_save_interval_seconds"), "wanted between saves"),
            ),
            "s",
        ),
        Panel(
            "Saves an hour",
            "Those that failed are in the program's log.",
            (
                Query(
                    counted(_of("spottrain_run_saves_total"), "1h", "outcome"),
                    "{{outcome}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            "A save takes",
            "On average in this life: training stands still for the first part alone.",
            (
                Query(_mean("spottrain_run_save_blocked_seconds"), "training held up"),
                Query(_mean("spottrain_run_save_upload_seconds"), "upload"),
            ),
            "s",
        ),
        Panel(
            "A stop takes",
            "From SIGTERM to a committed checkpoint, beside the grace. Above it a reclaim costs what came "
            "since the last save.",
            (
                Query(_now("spottrain_run_stop_seconds"), "needed"),
                Query(_now("spottrain_run_grace_seconds"), "grace"),
            ),
            "s",
        ),
        Panel(
            "Damaged checkpoints passed over",
            "By the restore of each life.",
            (Query(_of("spottrain_run_checkpoints_skipped_total"), "{{pod}}"),),
        ),
    ),
)
BOARD = Board(
    "spottrain-job",
    "spottrain: one job",
    "The lives of one job, its steps and its checkpoints. Steps and saves need the chart's workerMonitor.",
    (
        Variable("namespace", "spottrain_job_workers_desired"),
        Variable("job", 'spottrain_job_workers_desired{namespace="$namespace"}'),
    ),
    (NOW, LIVES, STEPS, CHECKPOINTS),
    Query(f"changes({_of('spottrain_job_attempt')}[1m]) > 0", "another attempt"),
)
