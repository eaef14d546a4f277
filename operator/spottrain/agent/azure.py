"""Azure Scheduled Events.

Format: "Scheduled Events for Linux VMs" in the Azure documentation, API version 2020-07-01. The first call
turns the service on and may take two minutes. Events of a whole placement group are shown to each of its
machines, so those of others are left out. An event is never acknowledged: that would let the machine go at
once, and with it the others that the event names.
"""

import collections.abc as cabc
import re
from typing import Any

from spottrain.agent import moments, notice, wire

URL = "http://169.254.169.254"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
HEADERS = {"Metadata": "true"}
FIRST_TIMEOUT = 150.0
STARTED_WITHIN = 10.0
"""Seconds from the start of an event that came without a time: Azure often takes less."""
CAUSES = {
    "Preempt": "Preempted",
    "Terminate": "Terminated",
    "Redeploy": "Redeployed",
    "Reboot": "Rebooted",
}
"""What ends the machine's processes."""
FREEZE = "Freeze"
"""A pause of some seconds, after which they go on."""
_SCALE_SET = re.compile(r"/virtualMachineScaleSets/([^/]+)/virtualMachines/([^/]+)$", re.IGNORECASE)
_MACHINE = re.compile(r"/virtualMachines/([^/]+)$", re.IGNORECASE)


def machine_name(provider_id: str) -> str:
    """The name that events have for the machine of a Node with this `spec.providerID`; empty if none."""
    member = _SCALE_SET.search(provider_id)
    if member is not None:
        return f"{member[1]}_{member[2]}"
    single = _MACHINE.search(provider_id)
    return single[1] if single else ""


def read(answer: wire.Answer, machine: str) -> tuple[notice.Notice, ...]:
    """`{"DocumentIncarnation": 1, "Events": [...]}`: the events that are the machine's.

    Raises:
        wire.AnswerError: it is no such answer.

    """
    if answer.status != 200:
        raise answer.refused()
    events = answer.document().get("Events")
    if not isinstance(events, list):
        raise wire.AnswerError("unreadable", f"no list of Events: {answer.text()[:100]!r}")
    return tuple(_notice(one) for one in events if _concerns(one, machine))


def _concerns(event: Any, machine: str) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("EventType"), str):
        raise wire.AnswerError("unreadable", f"no event: {str(event)[:100]!r}")
    resources = event.get("Resources")
    names = [str(one).lower() for one in resources] if isinstance(resources, list) else []
    return machine.lower() in names


def _notice(event: cabc.Mapping[str, Any]) -> notice.Notice:
    """An event of a type that nobody knows yet is taken for the end of the machine too."""
    source, kind = "azure-scheduled-events", event["EventType"]
    name, moment = str(event.get("EventId") or kind), event.get("NotBefore")
    if kind == FREEZE:
        return notice.Notice(notice.Kind.HINT, source, "Frozen", name)
    return notice.Notice(
        notice.Kind.END,
        source,
        CAUSES.get(kind, "Other"),
        name,
        moments.rfc1123(moment) if moment else None,
        within=STARTED_WITHIN,
    )


class ScheduledEvents:
    """See notice.Source. `machine`: the name that events have for this one; empty: the cloud is asked."""

    name = "azure-scheduled-events"
    causes = (*CAUSES.values(), "Other", "Frozen")
    pause = 1.0
    needed = True

    def __init__(self, service: wire.Service, machine: str) -> None:
        self._service = service
        self._machine = machine
        self._timeout = FIRST_TIMEOUT

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        answer = self._service.ask(EVENTS, HEADERS, timeout=self._timeout)
        found = read(answer, self._machine or self._ask_name())
        self._timeout = wire.TIMEOUT
        return found

    def _ask_name(self) -> str:
        answer = self._service.ask(NAME, HEADERS)
        if answer.status != 200 or not answer.text():
            raise answer.refused("the machine's name is not known, so its events aren't either")
        self._machine = answer.text()
        return self._machine


def sources(url: str, provider_id: str) -> tuple[notice.Source, ...]:
    """The one that there is."""
    return (ScheduledEvents(wire.Service(url or URL), machine_name(provider_id)),)
