"""Values of the chart and Prometheus' rules in the pages, by helm and promtool."""

import json
from pathlib import Path

import pytest
import yaml

from manifests import render
from tests.docs import yamls
from tests.monitoring import prom

VALUES = yamls.example("agent: {enabled: true}\nreplicas: 2")
RULES = yamls.example("groups: [{name: mine, rules: [{record: a:b, expr: sum(spottrain_jobs)}]}]")
"""Here whether a page has one or not."""


@pytest.mark.parametrize("document", [VALUES, *yamls.every(yamls.Kind.VALUES)], ids=str)
def test_the_chart_takes_the_values(document: yamls.Document, tmp_path: Path):
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(document.content))
    assert render.documents(render.template(f"--values={file}"))


@pytest.mark.parametrize("document", [RULES, *yamls.every(yamls.Kind.RULES)], ids=str)
def test_prometheus_takes_the_rules(document: yamls.Document, tmp_path: Path):
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(document.content.get("spec", document.content)))
    assert "SUCCESS" in prom.promtool("check", "rules", file)
