"""How other programs mark a node that is about to be taken away, and which of their marks are heeded.

A mark is a taint, label, annotation or condition of the Node, written `KIND:KEY` or `KIND:KEY=VALUE`. Sources
of the built-in ones: each handler's public documentation and code. A site adds its own, and takes one away by
writing it with a minus before it.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
import email.utils
import enum
import re


class Kind(enum.StrEnum):
    """Where on a Node the mark is."""

    TAINT = "taint"
    LABEL = "label"
    ANNOTATION = "annotation"
    CONDITION = "condition"


@dataclasses.dataclass(frozen=True)
class Mark:
    """One mark. No `value` means any; of a condition it is the reason, or how its message begins."""

    kind: Kind
    key: str
    value: str | None = None

    def __str__(self) -> str:
        """As `parse` takes it."""
        return f"{self.kind}:{self.key}" + ("" if self.value is None else f"={self.value}")

    def on(self, node: "Signs") -> bool:
        """The node carries it."""
        if self.kind is Kind.CONDITION:
            reason, message = node.conditions.get(self.key, (None, ""))
            wanted = self.value is None or reason == self.value or message.startswith(self.value)
            return reason is not None and wanted
        values: dict[Kind, cabc.Mapping[str, str]] = {
            Kind.TAINT: node.taints,
            Kind.LABEL: node.labels,
            Kind.ANNOTATION: node.annotations,
        }
        found = values[self.kind].get(self.key)
        return found is not None and self.value in {None, found}


@dataclasses.dataclass(frozen=True)
class Signs:
    """What a Node carries. `conditions`: reason and message by type, of those that are True."""

    taints: cabc.Mapping[str, str]
    labels: cabc.Mapping[str, str]
    annotations: cabc.Mapping[str, str]
    conditions: cabc.Mapping[str, tuple[str, str]]


BUILT_IN = (
    Mark(Kind.TAINT, "aws-node-termination-handler/spot-itn"),
    Mark(Kind.TAINT, "aws-node-termination-handler/asg-lifecycle-termination"),
    Mark(Kind.TAINT, "aws-node-termination-handler/scheduled-maintenance"),
    Mark(Kind.TAINT, "cloud.google.com/impending-node-termination"),
    Mark(Kind.TAINT, "karpenter.sh/disrupted"),
    Mark(Kind.TAINT, "karpenter.sh/disruption", "disrupting"),  # Karpenter before 1.0
    Mark(Kind.TAINT, "remediator.kubernetes.azure.com/unschedulable"),  # AKS node auto-drain
    Mark(Kind.TAINT, "node.coreweave.cloud/evict"),
    Mark(Kind.TAINT, "node.kubernetes.io/out-of-service"),
    Mark(Kind.TAINT, "node.cloudprovider.kubernetes.io/shutdown"),  # any cloud: its instance is shut down
    Mark(Kind.TAINT, "ToBeDeletedByClusterAutoscaler"),
    Mark(Kind.LABEL, "qos.coreweave.cloud/pending-preemption", "true"),
    Mark(Kind.CONDITION, "PreemptionScheduled"),  # AKS node-problem-detector
    Mark(Kind.CONDITION, "VMEventScheduled", "Preempt Scheduled"),  # the same, older: reboots and freezes too
)
"""Without `aws-node-termination-handler/rebalance-recommendation`: it often comes to nothing."""

_WRITTEN = re.compile(r"(taint|label|annotation|condition):([^=\s]+)(?:=(.+))?")
_AT = re.compile(r"Scheduled: (\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT)")


def parse(text: str) -> Mark:
    """A mark as it is written.

    Raises:
        ValueError: with a sentence that says how to write it.

    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        forms = "taint:KEY, label:KEY=VALUE, annotation:KEY or condition:TYPE=REASON"
        raise ValueError(f'"{text}" marks no node; write {forms}')
    return Mark(Kind(found[1]), found[2], found[3])


def heeded(changes: cabc.Iterable[str]) -> tuple[Mark, ...]:
    """The built-in marks with these added, or taken away where a minus stands before one.

    Raises:
        ValueError: one can't be read, or one is taken away that isn't there.

    """
    marks = list(BUILT_IN)
    for text in changes:
        mark = parse(text.removeprefix("-"))
        if not text.startswith("-"):
            marks.append(mark)
        elif mark in marks:
            marks.remove(mark)
        else:
            raise ValueError(f'"{mark}" is not built in, so it cannot be taken away')
    return tuple(marks)


def first(marks: cabc.Iterable[Mark], node: Signs) -> tuple[str, dt.datetime | None]:
    """The key of the first mark that the node carries, and its deadline where the mark tells one."""
    found = next((mark for mark in marks if mark.on(node)), None)
    if found is None:
        return "", None
    message = node.conditions.get(found.key, ("", ""))[1] if found.kind is Kind.CONDITION else ""
    return found.key, _deadline(message)


def _deadline(message: str) -> dt.datetime | None:
    """Azure's: `Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. …`."""
    found = _AT.search(message)
    if found is None:
        return None
    try:
        return email.utils.parsedate_to_datetime(found[1])
    except ValueError:
        return None
