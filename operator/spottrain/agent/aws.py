"""Amazon EC2: the interruption notice and the rebalance recommendation, by IMDSv2.

Formats: "Spot Instance interruption notices" and "EC2 instance rebalance recommendations" in the EC2 User
Guide. 404 means that nothing is pending. A request is never sent without a token (IMDSv1): where tokens are
refused the agent is blind and says so.
"""

import dataclasses
import datetime as dt
import re

from spottrain.agent import clock as clocks
from spottrain.agent import moments, notice, wire

URL = "http://169.254.169.254"
ACTION = "/latest/meta-data/spot/instance-action"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"
TOKEN = "/latest/api/token"  # noqa: S105 - a path
HEADER = "X-aws-ec2-metadata-token"
TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
TTL = 21600
"""Seconds that a token is asked for: the longest that there is."""
CAUSES = {"terminate": "SpotTermination", "stop": "SpotStop", "hibernate": "SpotHibernation"}
HINT_LIFE = dt.timedelta(minutes=30)
"""How long a recommendation is heeded; it may never be followed by a notice, and is never taken back."""
ADVICE = "is IMDS on for this instance, and its hop limit 2 or the agent on the host's network?"

_TOKEN = re.compile(r"[!-~]+")
"""Fit for a header: a page that some proxy sends in place of it isn't."""


def read_action(answer: wire.Answer) -> tuple[notice.Notice, ...]:
    """`{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`.

    Raises:
        wire.AnswerError: as the other readers do, when it is no such answer.

    """
    if answer.status == 404:
        return ()
    if answer.status != 200:
        raise answer.refused(ADVICE)
    said = answer.document()
    action = said.get("action")
    if not isinstance(action, str) or action not in CAUSES:
        raise wire.AnswerError("unreadable", f"unknown action {action!r}")
    deadline = moments.rfc3339(said.get("time"))
    return (notice.Notice(notice.Kind.END, "aws-instance-action", CAUSES[action], action, deadline),)


def read_rebalance(answer: wire.Answer) -> tuple[notice.Notice, ...]:
    """`{"noticeTime": "2020-10-26T15:55:55Z"}`: when it was said, not when anything ends."""
    if answer.status == 404:
        return ()
    if answer.status != 200:
        raise answer.refused(ADVICE)
    text = answer.document().get("noticeTime")
    over = moments.rfc3339(text, later=HINT_LIFE)
    return (notice.Notice(notice.Kind.HINT, "aws-rebalance", "Rebalance", str(text), over),)


class Session:
    """IMDSv2: a token that is renewed before it runs out, and at once when it is refused."""

    def __init__(self, service: wire.Service, clock: clocks.Clock) -> None:
        self._service = service
        self._clock = clock
        self._token = ""
        self._renew = 0.0

    def get(self, path: str) -> wire.Answer:
        """The answer with a valid token, or 401 if a new one was refused too."""
        if not self._token or self._clock.monotonic() >= self._renew:
            self._take_token()
        answer = self._service.ask(path, {HEADER: self._token})
        if answer.status == 401:
            self._take_token()
            answer = self._service.ask(path, {HEADER: self._token})
        return answer

    def _take_token(self) -> None:
        self._token = ""
        answer = self._service.ask(TOKEN, {TTL_HEADER: str(TTL)}, method="PUT")
        token = answer.text()
        if answer.status != 200:
            raise answer.refused(f"no IMDSv2 token: {ADVICE}")
        if not _TOKEN.fullmatch(token):
            raise wire.AnswerError("unreadable", f"no IMDSv2 token: {token[:100]!r}")
        told = answer.headers.get(TTL_HEADER.lower(), "")
        seconds = float(told) if told.isdigit() else float(TTL)
        self._renew = self._clock.monotonic() + seconds - min(15.0, seconds / 4)
        self._token = token


@dataclasses.dataclass(frozen=True)
class Interruption:
    """See notice.Source."""

    session: Session
    name: str = "aws-instance-action"
    causes: tuple[str, ...] = tuple(CAUSES.values())
    pause: float = 1.0
    needed: bool = True

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        return read_action(self.session.get(ACTION))


@dataclasses.dataclass(frozen=True)
class Rebalance:
    """See notice.Source."""

    session: Session
    name: str = "aws-rebalance"
    causes: tuple[str, ...] = ("Rebalance",)
    pause: float = 5.0
    needed: bool = False

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        return read_rebalance(self.session.get(REBALANCE))


def sources(url: str, clock: clocks.Clock) -> tuple[notice.Source, ...]:
    """Both; each is asked by a thread of its own, so each has a token of its own."""
    service = wire.Service(url or URL)
    return Interruption(Session(service, clock)), Rebalance(Session(service, clock))
