"""PromQL whose words are checked: a metric or label that nobody declares is an error when files are made."""

import functools
import re

from manifests.monitoring import declared, recorded

SCRAPED = frozenset({"instance", "job", "namespace", "node", "pod"})
"""Labels that Prometheus, or the chart's monitors, put beside those that a process shows."""
_OTHERS = frozenset({"le"})
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_GROUPING = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right) ?\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")


class UnknownWordError(Exception):
    """An expression names a metric or a label that nobody declares."""


@functools.cache
def known() -> dict[str, frozenset[str]]:
    """The labels of every series of ours, by its name."""
    series = {name: one.labels for one in declared.everything() for name in one.samples}
    series |= {one.name: one.labels for one in recorded.RECORDED}
    return {name: frozenset(labels) for name, labels in series.items()}


def metrics(expression: str) -> set[str]:
    """The names of ours in it."""
    return {name for name in _NAME.findall(expression) if "spottrain_" in name}


def checked(expression: str) -> str:
    """The same expression.

    Raises:
        UnknownWordError: a metric of ours or a label in it is not declared; the text names it.

    """
    named = metrics(expression)
    if unknown := named - known().keys():
        raise UnknownWordError(f"no metric is called {', '.join(sorted(unknown))}: {expression}")
    has = SCRAPED | _OTHERS | {label for name in named for label in known()[name]}
    if unknown := _labels(expression) - has:
        raise UnknownWordError(f"no metric here has the label {', '.join(sorted(unknown))}: {expression}")
    return expression


def _labels(expression: str) -> set[str]:
    bare = re.sub(r'"[^"]*"', '""', expression)
    grouped = {label.strip() for group in _GROUPING.findall(bare) for label in group.split(",")}
    matched = {label for group in _MATCHERS.findall(bare) for label in _NAME.findall(group)}
    return (grouped | matched) - {""}
