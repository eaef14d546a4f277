"""Names and labels of all metrics, and that the documentation and the rules use no other ones.

https://prometheus.io/docs/practices/naming/
"""

import re

import pytest

from manifests.monitoring import declared, promql, recorded, reference
from spottrain.agent import metrics as agent
from spottrain.metrics import registry

UNITS = ("seconds", "bytes", "ratio")
WRONG_UNITS = re.compile(r"_(ms|millis|milliseconds|minutes|hours|days|mib|gib|kb|mb|percent)(_|$)")
FOR = declared.everything()


@pytest.mark.parametrize("metric", FOR, ids=lambda one: one.name)
def test_a_metrics_name_follows_the_conventions(metric: declared.Declared):
    assert re.fullmatch(r"spottrain_[a-z]+(_[a-z]+)*", metric.name)
    assert not WRONG_UNITS.search(metric.name)
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket"))
    if metric.kind in {"histogram", "summary"}:
        assert metric.name.endswith(UNITS)
    assert metric.text, "HELP"
    assert not metric.text.endswith(".")


def test_no_two_metrics_have_one_name():
    names = [name for one in FOR for name in one.samples]
    assert len(names) == len(set(names))


def test_labels_are_those_that_the_documentation_explains():
    """Which is where a label without bounds, such as a node's name, would be found out."""
    assert {label for one in FOR for label in one.labels} == reference.LABELS.keys()


def test_nothing_that_a_process_shows_is_missing():
    shown = {
        family.name
        for page in (registry.Metrics(), agent.Metrics(()))
        for family in page.registry.collect()
        if not family.name.startswith("process_")
    }
    assert shown == {one.name for one in FOR if one.process != "program"}


def test_what_is_recorded_has_the_labels_that_it_says():
    for one in recorded.RECORDED:
        assert promql.checked(one.expression)
        level, name, operation = one.name.split(":")
        assert (level, name.startswith("spottrain_"), bool(operation)) == ("fleet", True, True)
        assert one.labels == (), "of the whole fleet"


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("sum(spottrain_reclaim_total)", "no metric is called spottrain_reclaim_total"),
        ("sum(spottrain_reclaims)", "no metric is called spottrain_reclaims"),
        ("sum by (zones) (spottrain_reclaims_total)", "no metric here has the label zones"),
        ('spottrain_reclaims_total{reason="x"}', "no metric here has the label reason"),
        (
            "rate(spottrain_reclaim_to_running_seconds[1h])",
            "no metric is called spottrain_reclaim_to_running_seconds",
        ),
        (
            "fleet:spottrain_reclaims:increase2h > 5",
            "no metric is called fleet:spottrain_reclaims:increase2h",
        ),
    ],
)
def test_a_word_that_nobody_declares_is_refused(expression: str, sentence: str):
    with pytest.raises(promql.UnknownWordError, match=sentence):
        promql.checked(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'sum by (le, provider) (rate(spottrain_notice_window_seconds_bucket{provider!="zone, x"}[5m]))',
        "rate(process_cpu_seconds_total[5m]) and on (instance) spottrain_queue_length",
        "time() - max by (namespace, job) (spottrain_job_checkpoint_timestamp_seconds)",
    ],
)
def test_declared_words_pass(expression: str):
    assert promql.checked(expression) == expression
