"""The board of all jobs: how the spot fleet fares and what it costs in lost time."""

from manifests.monitoring.grafana import Board, Panel, Query, Row, Variable, stat
from manifests.monitoring.recorded import RECLAIM_RATE, USUAL_RATE, counted

_HERE = 'namespace=~"$namespace"'
_RECLAIMS = f"spottrain_reclaims_total{{{_HERE}}}"
_RUNNING = f"spottrain_job_workers_running{{{_HERE}}}"
_ON_SPOT = f'spottrain_job_workers_running{{{_HERE}, capacity="spot"}}'
_WANTED = f"spottrain_job_workers_desired{{{_HERE}}}"
_SHORT = f"spottrain_job_floor_shortfall{{{_HERE}}}"
_JOB = "by (namespace, job)"
_ENDED = f"spottrain_jobs_ended_total{{{_HERE}}}"
_TIME = f"spottrain_worker_seconds_total{{{_HERE}}}"
_SPENT = f"spottrain_cost_total{{{_HERE}}}"
_INSTEAD = f"spottrain_cost_on_demand_total{{{_HERE}}}"
_SPOT_SHARE = f"sum({_ON_SPOT}) / sum({_RUNNING})"


def _per_hour(by: str) -> str:
    return counted(_RECLAIMS, "1h", by)


def _took(share: float, histogram: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (increase({histogram}_bucket{{{_HERE}}}[1h])))"


def _outcome(word: str) -> str:
    return f'spottrain_worker_seconds_total{{{_HERE}, outcome="{word}"}}'


def _useful(by: str = "") -> str:
    return f"sum {by}(increase({_outcome('useful')}[1h])) / sum {by}(increase({_TIME}[1h]))"


def _window(share: float) -> str:
    return f"histogram_quantile({share}, sum by (provider, le) (spottrain_notice_window_seconds_bucket))"


NOW = Row(
    "Now",
    (
        stat("Workers that run", "Of all jobs that are chosen.", f"sum({_RUNNING})"),
        stat("Workers wanted", "By jobs that are neither over nor suspended.", f"sum({_WANTED})"),
        stat("Spot share", "Of the workers that run.", _SPOT_SHARE, "percentunit"),
        stat(
            "Reclaims",
            "Workers lost with their node or by eviction, in the time that is shown.",
            f"{counted(_RECLAIMS, '$__range')} or vector(0)",
        ),
        stat("Missing from floors", "On-demand workers.", f"sum({_SHORT})"),
        stat(
            "Jobs that wait",
            "Some of their workers don't run.",
            f"count(max {_JOB} ({_WANTED}) > sum {_JOB} ({_RUNNING})) or vector(0)",
        ),
    ),
)
RECLAIMS = Row(
    "Reclaims",
    (
        Panel(
            "Reclaims an hour, by cause",
            "What took the workers away: docs/losses.md has the words.",
            (Query(_per_hour("cause"), "{{cause}}"),),
            stacked=True,
        ),
        Panel(
            "Reclaims an hour, by cloud and zone",
            "One zone alone: its pools are short of capacity. All at once: look for a drain or a roll-out.",
            (Query(_per_hour("provider, zone"), "{{provider}} {{zone}}"),),
            stacked=True,
        ),
        Panel(
            "Reclaims an hour, by instance type",
            "With the capacity that the node was bought as.",
            (Query(_per_hour("instance_type, capacity"), "{{instance_type}} {{capacity}}"),),
            stacked=True,
        ),
        Panel(
            "Reclaims per hour and spot worker",
            "Of all namespaces. 0.05: a worker is reclaimed every 20 hours. Over three times the usual rate "
            "SpottrainReclaimRateChanged fires.",
            (Query(RECLAIM_RATE.name, "last hour"), Query(USUAL_RATE.name, "usual, week before")),
        ),
        Panel(
            "Time that a notice gave",
            "From the notice to the node's last sign of life, since the operator started. The lower line: "
            "nine of ten machines lasted longer. A grace above it is not always granted.",
            (Query(_window(0.1), "{{provider}} 10 %"), Query(_window(0.5), "{{provider}} half")),
            "s",
        ),
        Panel(
            "Learnt hazard of pools",
            "Losses per machine-hour. New workers prefer the pools at the bottom.",
            (
                Query(
                    "max by (capacity, zone, instance_type) (spottrain_pool_hazard)",
                    "{{capacity}} {{zone}} {{instance_type}}",
                ),
            ),
        ),
    ),
)
AGAIN = Row(
    "Running again",
    (
        Panel(
            "From a reclaim until all workers run",
            "Over the last hour: 95 % took less. Until a node is had it is capacity, then images and "
            "volumes. Loading the checkpoint comes after it: see the panel beside it.",
            (
                Query(_took(0.95, "spottrain_reclaim_to_running_seconds"), "whole"),
                Query(_took(0.95, "spottrain_reclaim_to_placed_seconds"), "until all have a node"),
                Query(_took(0.95, "spottrain_placed_to_running_seconds"), "from there on"),
                Query(_took(0.5, "spottrain_reclaim_to_running_seconds"), "whole, half of them"),
            ),
            "s",
        ),
        Panel(
            "Restore",
            "How long the newest life of a job took to load its checkpoint; the ten slowest.",
            (
                Query(
                    f"topk(10, max {_JOB} (spottrain_run_restore_seconds{{{_HERE}}}))",
                    "{{namespace}}/{{job}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Attempts begun an hour, by cause",
            "Failed: programs that ended badly by themselves spend maxFailures.",
            (Query(f"sum by (cause) (increase(spottrain_attempts_total{{{_HERE}}}[1h]))", "{{cause}}"),),
            stacked=True,
        ),
    ),
)
WORKERS = Row(
    "Workers and their work",
    (
        Panel(
            "Workers by capacity",
            "The line is what jobs ask for.",
            (
                Query(f"sum by (capacity) ({_RUNNING})", "{{capacity}}"),
                Query(f"sum({_WANTED})", "wanted"),
            ),
        ),
        Panel("Spot share", "Of the workers that run.", (Query(_SPOT_SHARE, "spot"),), "percentunit"),
        Panel(
            "Missing from the floor",
            "On-demand workers that a job wants and lacks; the ten that lack most.",
            (Query(f"topk(10, max {_JOB} ({_SHORT}))", "{{namespace}}/{{job}}"),),
        ),
        Panel(
            "Jobs that ended in an hour",
            "Complete: all their work is done. Failed: given up, and SpottrainJobFailed fires.",
            (Query(counted(_ENDED, "1h", "outcome", announced=True), "{{outcome}}"),),
            width=12,
            stacked=True,
        ),
        Panel(
            "Work at risk",
            "Training that the loss of a node without notice would cost now; the ten jobs with most of it.",
            (
                Query(
                    f"topk(10, max {_JOB} (spottrain_run_unsaved_seconds{{{_HERE}}}))",
                    "{{namespace}}/{{job}}",
                ),
            ),
            "s",
            width=12,
        ),
        Panel(
            "Jobs",
            "A name leads to the job's own board.",
            (
                Query(f"sum {_JOB} ({_RUNNING})", "running"),
                Query(f"max {_JOB} ({_WANTED})", "wanted"),
                Query(f"max {_JOB} (spottrain_job_attempt{{{_HERE}}})", "attempt"),
                Query(f"max {_JOB} (spottrain_job_step{{{_HERE}}})", "step"),
                Query(
                    f"time() - max {_JOB} (spottrain_job_checkpoint_timestamp_seconds{{{_HERE}}})",
                    "checkpoint age",
                ),
            ),
            kind="table",
            width=24,
        ),
    ),
)
TIME = Row(
    "Time and money",
    (
        Panel(
            "Workers' time in an hour, by what came of it",
            "As far as that has been decided in the hour: docs/money.md.",
            (Query(f"sum by (outcome) (increase({_TIME}[1h]))", "{{outcome}}"),),
            "s",
            stacked=True,
        ),
        Panel(
            "Goodput",
            "Share of the workers' time that was useful, over the last hour, by capacity of their nodes.",
            (Query(_useful("by (capacity) "), "{{capacity}}"), Query(_useful(), "all")),
            "percentunit",
        ),
        Panel(
            "Work lost in an hour",
            "Workers' time that came after the last checkpoint of a life.",
            (Query(f"sum(increase({_outcome('lost')}[1h]))", "lost"),),
            "s",
        ),
        Panel(
            "Spent in an hour",
            "In the currency of the prices; of jobs that have some.",
            (Query(f"sum by (capacity) (increase({_SPENT}[1h]))", "{{capacity}}"),),
            "none",
            stacked=True,
        ),
        Panel(
            "Saved in an hour",
            "What the useful part would have cost on demand, without what was spent. Below 0 while time is "
            "paid for whose work is not in a checkpoint yet.",
            (Query(f"sum(increase({_INSTEAD}[1h])) - sum(increase({_SPENT}[1h]))", "saved"),),
            "none",
            signed=True,
        ),
        Panel(
            "Fallback and deadlines",
            "Workers on on-demand nodes because spot had no room; jobs that can't make their completeBy.",
            (
                Query(f"sum(spottrain_job_fallback_workers{{{_HERE}}})", "workers that fell back"),
                Query(
                    f"count(spottrain_job_deadline_slack_seconds{{{_HERE}}} < 0) or vector(0)",
                    "jobs that will be late",
                ),
            ),
        ),
    ),
)
BOARD = Board(
    "spottrain-fleet",
    "spottrain: fleet",
    "Reclaims and what they cost, over all jobs.",
    (Variable("namespace", "spottrain_job_workers_desired", several=True),),
    (NOW, RECLAIMS, AGAIN, WORKERS, TIME),
)
