"""docs/metrics.md."""

from collections.abc import Iterable, Iterator

from manifests.monitoring import alerts, declared, recorded
from manifests.monitoring.rules import RUNBOOKS

LABELS = {
    "namespace": "namespace of the job",
    "job": "name of the job",
    "cause": "why: of reclaims a word of [losses.md](losses.md), of attempts `Initial`, `Reclaimed`, "
    "`Failed`, `Undetermined`, `Replaced`, `Unplaced`, `SpecChanged`, `Resumed` or `Moved`, of an agent's "
    "notices the cloud's kind of notice ([agent.md](agent.md))",
    "capacity": "what the node was bought as: `spot`, `on-demand` or `unknown`",
    "provider": "cloud of the node, by its `spec.providerID`: `aws`, `gcp`, `azure`, …, `other`",
    "zone": "the node's `topology.kubernetes.io/zone`",
    "instance_type": "the node's `node.kubernetes.io/instance-type`",
    "result": "`ok`, `conflict` (made again with the newer object) or `error` (made again, ever later)",
    "method": "HTTP method",
    "resource": "kind, and subresource",
    "code": "HTTP status; `none` without an answer",
    "watch": "kind of object that is watched, with its namespace where the operator serves a few",
    "source": "where a cloud gives notice, as [agent.md](agent.md) names it",
    "kind": "`none` (no answer), `unreadable`, or a class of HTTP status",
    "outcome": "of jobs `Complete` or `Failed`, of saves `committed` or `failed`, of workers' time `useful`, "
    "`lost`, `restoring` or `waiting` ([money.md](money.md))",
}
"""What each label means. None has the name of a node or pod, a UID or another word without bounds."""
WITH_TEAMS = {
    "team": "with the chart's `teamLabel` alone, of the metrics of cost: who pays, the value of that label "
    "of the job ([money.md](money.md#metrics))",
}

_HEAD = """\
# Metrics

Made from the declarations by `make manifests`; not to be edited.

Three kinds of process show metrics, in Prometheus' text format on `/metrics`. With the Prometheus operator,
these values of the chart (`….enabled=true`) make it read them:

| process | where | value |
|---|---|---|
| the operator | port 8080 of its pod, and of the Service `…-metrics` | `podMonitor` or `serviceMonitor` |
| the agent on each spot node | port 29581 of the node (`agent.port`) | `agentMonitor` |
| a program with the library, on worker 0 of a gang | its port named `spottrain` (29580) | `workerMonitor` |

Without it, set `honor_labels: true` for the operator's pods: their series have the labels `namespace` and
`job` of the job that they speak of. Take the label `job` of a program's series from its pod's label
`spottrain.dev/job`. `podAnnotations` puts `prometheus.io/scrape` and its like on the operator's pod.

Asked for OpenMetrics, as Prometheus does, the operator adds exemplars with the labels `job` and `attempt` to
`spottrain_reclaims_total` and `spottrain_reclaim_to_running_seconds`: they lead from a point on a board to
the attempt that `kubectl spottrain describe` tells of. Prometheus keeps them with
`--enable-feature=exemplar-storage`.

Series of a job vanish with the job. All processes also show `process_resident_memory_bytes`,
`process_cpu_seconds_total` and the other `process_*` of Prometheus' client; programs don't, whose registry is
their own.
"""
_TITLES = {"operator": "The operator", "agent": "The agent", "program": "A program, one life of it"}


def render() -> str:
    """The page."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    for process, title in _TITLES.items():
        rows = (
            (one.title, one.kind, one.labels, one.text)
            for one in declared.everything()
            if one.process == process
        )
        yield f"## {title}\n"
        yield _table(rows)
    yield "## Recorded by the rules\n"
    yield "By `manifests/rules.yaml`, which is in the chart too (`rules.enabled=true`).\n"
    yield _table((one.name, "gauge", one.labels, one.text) for one in recorded.RECORDED)
    yield "## Labels\n"
    yield "| label | |\n|---|---|\n" + "".join(
        f"| `{name}` | {text} |\n" for name, text in (LABELS | WITH_TEAMS).items()
    )
    yield "## Alerts\n"
    yield "| alert | fires when, for how long | |\n|---|---|---|"
    for one in alerts.ALERTS:
        link = f"[{one.name}]({RUNBOOKS.removeprefix('docs/')}#{one.name.lower()})"
        weight = "critical" if one.critical else "warning"
        yield f"| {link} | `{_cell(one.expression)}`, {one.lasting} | {weight} |"
    yield ""


def _table(rows: Iterable[tuple[str, str, tuple[str, ...], str]]) -> str:
    lines = ["| metric | type | labels | |", "|---|---|---|---|"]
    for name, kind, labels, text in rows:
        named = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {named} | {_cell(text)} |")
    return "\n".join((*lines, ""))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
