"""Every metric that spottrain's processes show, read from where each is declared."""

import dataclasses
import functools

import prometheus_client as prometheus
from prometheus_client import metrics as kinds
from prometheus_client import parser

from spottrain.agent import metrics as agent
from spottrain.metrics import registry
from spottrain.train import metrics as program

SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}


@dataclasses.dataclass(frozen=True)
class Declared:
    """One metric. `name` is without a counter's `_total`."""

    process: str
    """Who shows it: operator, agent or program."""
    name: str
    kind: str
    text: str
    labels: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name that people look for."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its series."""
        return tuple(self.name + suffix for suffix in SUFFIXES[self.kind])


@functools.cache
def everything() -> tuple[Declared, ...]:
    """All of them: the operator's, the agent's, a program's."""
    return (
        *_of_client("operator", registry.Metrics()),
        *_of_client("agent", agent.Metrics(())),
        *_of_page(program.render(_full_reading())),
    )


def _of_client(process: str, metrics: registry.Metrics | agent.Metrics) -> list[Declared]:
    found = []
    # Nothing public tells what is registered, or the labels of a metric that has no series yet.
    for one in metrics.registry._collector_to_names:  # noqa: SLF001
        if isinstance(one, kinds.MetricWrapperBase):
            (family,) = one.describe()
            labels = tuple(one._labelnames)  # noqa: SLF001
            found.append(Declared(process, family.name, family.type, family.documentation, labels))
    return found


def _full_reading() -> program.Reading:
    """One in which everything is known, so that nothing is left out of the page."""
    known = {field.name: 1 for field in dataclasses.fields(program.Reading) if field.name != "tally"}
    return program.Reading(program.Tally(), **known)


def _of_page(page: bytes) -> list[Declared]:
    return [
        Declared("program", family.name, family.type, family.documentation, _labels(family))
        for family in parser.text_string_to_metric_families(page.decode())
    ]


def _labels(family: prometheus.Metric) -> tuple[str, ...]:
    return tuple(sorted({label for sample in family.samples for label in sample.labels}))
