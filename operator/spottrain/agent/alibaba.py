"""Alibaba Cloud ECS: the time of release of a preemptible instance.

Format: "Preemptible instances" in the ECS documentation. 404 means that nothing is pending.
"""

import dataclasses

from spottrain.agent import moments, notice, wire

URL = "http://100.100.100.200"
TIME = "/latest/meta-data/instance/spot/termination-time"


def read(answer: wire.Answer) -> tuple[notice.Notice, ...]:
    """`2015-01-05T18:02:00Z`.

    Raises:
        wire.AnswerError: it is no such answer.

    """
    if answer.status == 404:
        return ()
    if answer.status != 200:
        raise answer.refused("an instance that demands metadata tokens (http-tokens) is not supported")
    deadline = moments.rfc3339(answer.text())
    return (notice.Notice(notice.Kind.END, "alibaba-termination", "Released", "termination-time", deadline),)


@dataclasses.dataclass(frozen=True)
class Termination:
    """See notice.Source."""

    service: wire.Service
    name: str = "alibaba-termination"
    causes: tuple[str, ...] = ("Released",)
    pause: float = 1.0
    needed: bool = True

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        return read(self.service.ask(TIME, {}))


def sources(url: str) -> tuple[notice.Source, ...]:
    """The one that there is."""
    return (Termination(wire.Service(url or URL)),)
