"""Each alert, by promtool: it fires, it doesn't where it shouldn't, it ends. Times are minutes."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from manifests.monitoring import alerts, fleet, promql
from manifests.monitoring.rules import RUNBOOKS
from tests.monitoring import prom

RULES = Path(__file__).parents[2] / "manifests/rules.yaml"
JOB = 'namespace="ml", job="llm"'
LABELS = {"namespace": "ml", "job": "llm"}
POOL = 'cause="Notice", capacity="spot", provider="aws", zone="a", instance_type="p5"'
DAY = "0+0x1499"
FAILED = 'spottrain_jobs_ended_total{namespace="ml", outcome="Failed", pod="spottrain-0"}'


@dataclasses.dataclass(frozen=True)
class Story:
    """Series as they come, once a minute; when nothing fires; when what fires, with which words."""

    alert: str
    series: Mapping[str, str]
    quiet: tuple[int, ...] = ()
    fires: int | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    summary: str = ""
    description: str = ""


STORIES = {
    "reclaims at a new rate": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x2000",
            f"spottrain_reclaims_total{{{POOL}}}": f"{DAY} 1 2 3 4 5 6 6+0x300",
        },
        quiet=(1499, 1505, 1580),
        fires=1515,
        summary="Spot workers are reclaimed at over three times the usual rate",
        description="6 spot workers were reclaimed in the last hour, over three times what this fleet is "
        "used to for its size.",
    ),
    "the first reclaims ever, six at once": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x2000",
            f"spottrain_reclaims_total{{{POOL}}}": "_x1500 6+0x300",
        },
        quiet=(1499, 1580),
        fires=1515,
        summary="Spot workers are reclaimed at over three times the usual rate",
        description="6 spot workers were reclaimed in the last hour, over three times what this fleet is "
        "used to for its size.",
    ),
    "a fleet that is used to as many": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x2000",
            f"spottrain_reclaims_total{{{POOL}}}": "0+0.1x2000",
        },
        quiet=(600, 1515, 1900),
    ),
    "a fleet that has grown tenfold": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x1499 100+0x400",
            f"spottrain_reclaims_total{{{POOL}}}": "0+0.02x1499 30+0.2x400",
        },
        quiet=(1560, 1620, 1800),
    ),
    "a drill of the whole fleet": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x2000",
            f"spottrain_reclaims_total{{{POOL.replace('Notice', 'Drill')}}}": f"{DAY} 9+0x300",
        },
        quiet=(1515,),
    ),
    "a new install has no past": Story(
        "SpottrainReclaimRateChanged",
        {
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "10+0x300",
            f"spottrain_reclaims_total{{{POOL}}}": "0+0x100 9+0x100",
        },
        quiet=(110, 120),
    ),
    "a floor that isn't met": Story(
        "SpottrainFloorUnmet",
        {f"spottrain_job_floor_shortfall{{{JOB}}}": "0+0x4 2+0x20 0+0x10"},
        quiet=(4, 14, 27),
        fires=16,
        labels=LABELS,
        summary="ml/llm runs without its floor",
        description="ml/llm lacks 2 of the workers that it wants on on-demand nodes.",
    ),
    "a deadline that can't be met": Story(
        "SpottrainDeadlineAtRisk",
        {f"spottrain_job_deadline_slack_seconds{{{JOB}}}": "600+0x4 -1800+0x9 600+0x10"},
        quiet=(4, 9, 16),
        fires=11,
        labels=LABELS,
        summary="ml/llm will miss its deadline",
        description="ml/llm lacks 30m 0s until its completeBy, even if all goes well from now on.",
    ),
    "a job that fails": Story(
        "SpottrainJobFailed",
        {FAILED: "0+0x9 1+0x40", FAILED.replace("Failed", "Complete"): "0+1x50"},
        quiet=(9, 26),
        fires=11,
        labels={"namespace": "ml"},
        summary="A job in ml has failed",
        description="Given up in ml in the last 15 minutes: 1. A job that has failed makes no more attempts.",
    ),
    "a job that fails while no operator is there": Story(
        "SpottrainJobFailed",
        {
            'spottrain_queue_length{pod="spottrain-0"}': "0+0x90 stale",
            FAILED: "4+0x90 stale",
            FAILED.replace("-0", "-1"): "_x100 1+0x40",
        },
        quiet=(0, 20, 95, 117),
        fires=102,
        labels={"namespace": "ml"},
        summary="A job in ml has failed",
        description="Given up in ml in the last 15 minutes: 1. A job that has failed makes no more attempts.",
    ),
    "jobs that failed long ago, and scrapes that were missed": Story(
        "SpottrainJobFailed",
        {
            'spottrain_queue_length{pod="spottrain-0"}': "0+0x40 stale 0+0x9 _x20 0+0x40",
            FAILED: "4+0x40 stale 4+0x9 _x20 4+0x40",
        },
        quiet=(0, 5, 20, 41, *range(50, 110)),
    ),
    "workers that don't come": Story(
        "SpottrainWorkersMissing",
        {
            f"spottrain_job_workers_desired{{{JOB}}}": "4+0x100",
            f'spottrain_job_workers_running{{{JOB}, capacity="on-demand"}}': "1+0x100",
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "3+0x9 0+0x49 3+0x40",
        },
        quiet=(9, 39, 61),
        fires=41,
        labels=LABELS,
        summary="ml/llm waits for workers",
        description="ml/llm has 3 workers fewer than it asks for.",
    ),
    "a suspended job": Story(
        "SpottrainWorkersMissing",
        {
            f"spottrain_job_workers_desired{{{JOB}}}": "0+0x100",
            f'spottrain_job_workers_running{{{JOB}, capacity="spot"}}': "0+0x100",
        },
        quiet=(60,),
    ),
    "a program that hangs": Story(
        "SpottrainJobNotProgressing",
        {f'spottrain_run_step{{{JOB}, pod="llm-0-1"}}': "0+1x60 60+0x60 61+1x60"},
        quiet=(30, 90, 130),
        fires=97,
        labels=LABELS,
        summary="ml/llm makes no progress",
        description="ml/llm has workers, and for half an hour came to no step that it hadn't done before.",
    ),
    "a job that is taken back again and again": Story(
        "SpottrainJobNotProgressing",
        {
            f'spottrain_run_step{{{JOB}, pod="llm-0-1"}}': "0+1x60 stale",
            f'spottrain_run_step{{{JOB}, pod="llm-0-2"}}': "_x61 40+1x18 stale",
            f'spottrain_run_step{{{JOB}, pod="llm-0-3"}}': "_x81 40+1x18 stale",
            f'spottrain_run_step{{{JOB}, pod="llm-0-4"}}': "_x101 40+1x80",
        },
        quiet=(60, 90, 130),
        fires=97,
        labels=LABELS,
        summary="ml/llm makes no progress",
        description="ml/llm has workers, and for half an hour came to no step that it hadn't done before.",
    ),
    "a program that never comes to its first step": Story(
        "SpottrainJobNotProgressing",
        {f'spottrain_run_steps_total{{{JOB}, pod="llm-0-1"}}': "0+0x50 1+1x30"},
        quiet=(29, 52),
        fires=36,
        labels=LABELS,
        summary="ml/llm makes no progress",
        description="ml/llm has workers, and for half an hour came to no step that it hadn't done before.",
    ),
    "a job that is done": Story(
        "SpottrainJobNotProgressing",
        {
            f'spottrain_run_step{{{JOB}, pod="llm-0-1"}}': "0+1x60 stale",
            f'spottrain_run_steps_total{{{JOB}, pod="llm-0-1"}}': "0+1x60 stale",
        },
        quiet=(61, 80, 90, 97, 120),
    ),
    "a program that saves no more": Story(
        "SpottrainCheckpointTooOld",
        {
            f'spottrain_run_unsaved_seconds{{{JOB}, pod="llm-0-1"}}': "0+60x20 0+0x10",
            f'spottrain_run_save_interval_seconds{{{JOB}, pod="llm-0-1"}}': "60+0x31",
        },
        quiet=(8, 13, 22),
        fires=15,
        labels=LABELS,
        summary="ml/llm trains without saving",
        description="ml/llm would lose 15m 0s of training if a node died now: over three times what it wants "
        "to have between two saves.",
    ),
    "a program that is told to save once an hour": Story(
        "SpottrainCheckpointTooOld",
        {
            f'spottrain_run_unsaved_seconds{{{JOB}, pod="llm-0-1"}}': "0+60x60 0+60x60",
            f'spottrain_run_save_interval_seconds{{{JOB}, pod="llm-0-1"}}': "3600+0x120",
        },
        quiet=(59, 119),
    ),
    "a save that takes too long": Story(
        "SpottrainSaveDoesNotFit",
        {
            f'spottrain_run_stop_seconds{{{JOB}, pod="llm-0-1"}}': "20+0x9 95+0x19 20+0x10",
            f'spottrain_run_grace_seconds{{{JOB}, pod="llm-0-1"}}': "25+0x40",
        },
        quiet=(9, 19, 31),
        fires=21,
        labels=LABELS,
        summary="ml/llm can't save when it is told to stop",
        description="ml/llm needs 1m 35s from SIGTERM to a committed checkpoint, longer than its grace: each "
        "reclaim costs what came since the last save.",
    ),
    "agents without an answer": Story(
        "SpottrainAgentBlind",
        {
            'spottrain_agent_blind{source="aws-spot", node="n1"}': "0+0x4 1+0x9 0+0x10",
            'spottrain_agent_blind{source="aws-spot", node="n2"}': "0+0x4 1+0x9 0+0x10",
            'spottrain_agent_blind{source="drill", node="n1"}': "0+0x25",
        },
        quiet=(4, 6, 16),
        fires=8,
        labels={"source": "aws-spot"},
        summary="Notices of aws-spot may be missed",
        description="2 agents get no answer from aws-spot: their nodes can be taken away unannounced.",
    ),
    "spot nodes without an agent": Story(
        "SpottrainNodesUnheard",
        {'spottrain_spot_nodes_unheard{pod="spottrain-0"}': "0+0x4 3+0x15 0+0x10"},
        quiet=(4, 14, 21),
        fires=16,
        summary="Spot nodes have no agent that would hear a notice",
        description="3 spot nodes have no agent that hears: their workers get no time to save.",
    ),
    "a watch that is silent": Story(
        "SpottrainOperatorDeaf",
        {
            'spottrain_watch_silence_seconds{watch="pods"}': "30+0x4 60+60x6 5+0x10",
            'spottrain_watch_silence_seconds{watch="nodes"}': "30+0x25",
        },
        quiet=(4, 8, 13),
        fires=10,
        labels={"watch": "pods"},
        summary="The operator hears nothing of pods",
        description="For 6m 0s the operator has heard nothing of pods from the API server: lost workers are "
        "not replaced.",
    ),
    "no operator": Story(
        "SpottrainOperatorAbsent",
        {"spottrain_queue_length": "0+0x4 stale _x10 0+0x10"},
        quiet=(4, 9, 17),
        fires=11,
        summary="No operator is there",
        description="Prometheus finds no operator: lost workers are not replaced.",
    ),
    "passes that fail": Story(
        "SpottrainPassesFail",
        {
            'spottrain_reconciles_total{result="ok"}': "0+60x100",
            'spottrain_reconciles_total{result="error"}': "0+0x9 0+60x30 1800+0x60",
        },
        quiet=(9, 20, 60),
        fires=35,
        summary="The operator fails in what it does",
        description="50% of the operator's passes over jobs end in an error.",
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_an_alert_fires_when_it_should_and_then_alone(story: Story, tmp_path: Path) -> None:
    checks: list[dict[str, Any]] = [
        {"eval_time": f"{at}m", "alertname": story.alert, "exp_alerts": []} for at in story.quiet
    ]
    if story.fires is not None:
        alert = next(one for one in alerts.ALERTS if one.name == story.alert)
        expected = {
            "exp_labels": {"severity": "critical" if alert.critical else "warning", **story.labels},
            "exp_annotations": {
                "summary": story.summary,
                "description": story.description,
                "runbook_url": f"{RUNBOOKS}#{story.alert.lower()}",
            },
        }
        checks.append({"eval_time": f"{story.fires}m", "alertname": story.alert, "exp_alerts": [expected]})
    series = [{"series": name, "values": values} for name, values in story.series.items()]
    prom.try_rules(RULES, {"input_series": series, "alert_rule_test": checks}, tmp_path)


def test_of_each_alert_it_is_tried_that_it_begins_and_that_it_ends() -> None:
    for alert in alerts.ALERTS:
        tried = [one for one in STORIES.values() if one.alert == alert.name and one.fires is not None]
        assert tried, alert.name
        for story in tried:
            assert story.fires is not None
            assert min(story.quiet) < story.fires < max(story.quiet), alert.name


def test_the_rules_are_what_promtool_calls_sound() -> None:
    prom.promtool("check", "rules", RULES)


def test_d3_the_first_reclaim_is_seen_on_the_boards(tmp_path: Path) -> None:
    """Its series comes into being with the value 1, which `increase()` alone takes for nothing new.

    An operator that has ended since has counted it all the same.
    """
    panels = [
        panel for panel in fleet.BOARD.panels for query in panel.queries if _counts_reclaims(query.expression)
    ]
    assert len(panels) == 4
    checks = [
        {
            "expr": f"sum({_filled(panel.queries[0].expression)})",
            "eval_time": at,
            "exp_samples": [{"value": 1}],
        }
        for panel in panels
        for at in ("2m", "10m")
    ]
    series = [{"series": f'spottrain_reclaims_total{{namespace="ml", {POOL}}}', "values": "_ _ 1 1 1 stale"}]
    prom.try_rules(RULES, {"input_series": series, "promql_expr_test": checks}, tmp_path)


def _counts_reclaims(expression: str) -> bool:
    return "spottrain_reclaims_total" in promql.metrics(expression)


def _filled(expression: str) -> str:
    return expression.replace("$__range", "1h").replace("$namespace", ".*")
