"""The alerts. Each has a section of its name in docs/runbooks.md."""

import dataclasses

from manifests.monitoring.recorded import RECLAIMS, SPOT_WORKERS, USUAL_RATE, counted

JOB = "by (namespace, job)"
_NAMED = "{{ $labels.namespace }}/{{ $labels.job }}"


@dataclasses.dataclass(frozen=True)
class Alert:
    """One alert: it fires when the expression has held for that long. `critical`: someone should get up."""

    name: str
    expression: str
    lasting: str
    summary: str
    description: str
    critical: bool = False


ALERTS = (
    Alert(
        "SpottrainReclaimRateChanged",
        f"{RECLAIMS.name} >= 5"
        f" and {RECLAIMS.name} > 3 * {USUAL_RATE.name} * avg_over_time({SPOT_WORKERS.name}[1h])"
        # Without a day of past there is nothing to compare with.
        f" and {SPOT_WORKERS.name} offset 1d",
        "5m",
        "Spot workers are reclaimed at over three times the usual rate",
        '{{ $value | printf "%.0f" }} spot workers were reclaimed in the last hour, over three times what '
        "this fleet is used to for its size.",
    ),
    Alert(
        "SpottrainFloorUnmet",
        f"max {JOB} (spottrain_job_floor_shortfall) > 0",
        "10m",
        f"{_NAMED} runs without its floor",
        f"{_NAMED} lacks {{{{ $value }}}} of the workers that it wants on on-demand nodes.",
    ),
    Alert(
        "SpottrainDeadlineAtRisk",
        f"-min {JOB} (spottrain_job_deadline_slack_seconds) > 0",
        "5m",
        f"{_NAMED} will miss its deadline",
        f"{_NAMED} lacks {{{{ $value | humanizeDuration }}}} until its completeBy, even if all goes well "
        "from now on.",
    ),
    Alert(
        "SpottrainJobFailed",
        # An operator may count it in its first pass, at once with the series.
        counted('spottrain_jobs_ended_total{outcome="Failed"}', "15m", "namespace", announced=True) + " > 0",
        "0m",
        "A job in {{ $labels.namespace }} has failed",
        'Given up in {{ $labels.namespace }} in the last 15 minutes: {{ $value | printf "%.0f" }}. '
        "A job that has failed makes no more attempts.",
    ),
    Alert(
        "SpottrainWorkersMissing",
        f"max {JOB} (spottrain_job_workers_desired) - sum {JOB} (spottrain_job_workers_running) > 0",
        "30m",
        f"{_NAMED} waits for workers",
        f"{_NAMED} has {{{{ $value }}}} workers fewer than it asks for.",
    ),
    Alert(
        "SpottrainJobNotProgressing",
        f"max {JOB} (max_over_time(spottrain_run_step[30m]))"
        f" <= max {JOB} (max_over_time(spottrain_run_step[6h] offset 30m))"
        f" or max {JOB} (spottrain_run_steps_total) == 0"
        f" and max {JOB} (spottrain_run_steps_total offset 30m) == 0",
        "5m",
        f"{_NAMED} makes no progress",
        f"{_NAMED} has workers, and for half an hour came to no step that it hadn't done before.",
    ),
    Alert(
        "SpottrainCheckpointTooOld",
        f"max {JOB} (spottrain_run_unsaved_seconds)"
        f" > 3 * max {JOB} (spottrain_run_save_interval_seconds) + 300",
        "5m",
        f"{_NAMED} trains without saving",
        f"{_NAMED} would lose {{{{ $value | humanizeDuration }}}} of training if a node died now: over three "
        "times what it wants to have between two saves.",
    ),
    Alert(
        "SpottrainSaveDoesNotFit",
        f"max {JOB} (spottrain_run_stop_seconds) > max {JOB} (spottrain_run_grace_seconds) - 1",
        "10m",
        f"{_NAMED} can't save when it is told to stop",
        f"{_NAMED} needs {{{{ $value | humanizeDuration }}}} from SIGTERM to a committed checkpoint, longer "
        "than its grace: each reclaim costs what came since the last save.",
    ),
    Alert(
        "SpottrainAgentBlind",
        "sum by (source) (spottrain_agent_blind) > 0",
        "2m",
        "Notices of {{ $labels.source }} may be missed",
        "{{ $value }} agents get no answer from {{ $labels.source }}: "
        "their nodes can be taken away unannounced.",
    ),
    Alert(
        "SpottrainNodesUnheard",
        "max(spottrain_spot_nodes_unheard) > 0",
        "10m",
        "Spot nodes have no agent that would hear a notice",
        "{{ $value }} spot nodes have no agent that hears: their workers get no time to save.",
    ),
    Alert(
        "SpottrainOperatorDeaf",
        "max by (watch) (spottrain_watch_silence_seconds) > 180",
        "1m",
        "The operator hears nothing of {{ $labels.watch }}",
        "For {{ $value | humanizeDuration }} the operator has heard nothing of {{ $labels.watch }} from the "
        "API server: lost workers are not replaced.",
        critical=True,
    ),
    Alert(
        "SpottrainOperatorAbsent",
        "absent(spottrain_queue_length)",
        "5m",
        "No operator is there",
        "Prometheus finds no operator: lost workers are not replaced.",
        critical=True,
    ),
    Alert(
        "SpottrainPassesFail",
        'sum(rate(spottrain_reconciles_total{result="error"}[10m]))'
        " / sum(rate(spottrain_reconciles_total[10m])) > 0.1",
        "15m",
        "The operator fails in what it does",
        "{{ $value | humanizePercentage }} of the operator's passes over jobs end in an error.",
    ),
)
