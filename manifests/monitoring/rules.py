"""Recording rules and alerts as Prometheus reads them."""

from typing import Any

import yaml

from manifests.monitoring import alerts, promql, recorded

RUNBOOKS = "docs/runbooks.md"
_HEAD = "# Made from manifests/monitoring by `make manifests`; not to be edited.\n"


def render() -> str:
    """A rules file: `rule_files:` of prometheus.yml names it, and the chart makes a PrometheusRule of it."""
    groups = [
        {
            "name": "spottrain.recorded",
            "interval": "1m",
            "rules": [_recording(one) for one in recorded.RECORDED],
        },
        {"name": "spottrain.alerts", "rules": [_alert(one) for one in alerts.ALERTS]},
    ]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=10_000)


def _recording(one: recorded.Recorded) -> dict[str, Any]:
    return {"record": one.name, "expr": promql.checked(one.expression)}


def _alert(one: alerts.Alert) -> dict[str, Any]:
    return {
        "alert": one.name,
        "expr": promql.checked(one.expression),
        "for": one.lasting,
        "labels": {"severity": "critical" if one.critical else "warning"},
        "annotations": {
            "summary": one.summary,
            "description": one.description,
            "runbook_url": f"{RUNBOOKS}#{one.name.lower()}",
        },
    }
