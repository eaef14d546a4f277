"""Google Compute Engine: `preempted` and `maintenance-event`, by requests that hang until they change.

Formats: "Query VM metadata" and "Preemptible VM instances" in the Compute Engine documentation. A key that is
hidden (404 from a cluster's own metadata proxy) is not a quiet one: it makes the agent blind.
"""

from spottrain.agent import notice, wire

URL = "http://169.254.169.254"
INSTANCE = "/computeMetadata/v1/instance/"
FLAVOR = {"Metadata-Flavor": "Google"}
HANG = 30
"""Seconds after which a request that hangs is answered though nothing has changed: a sign of life."""
PATIENCE = HANG + 10.0
MAINTENANCE_WINDOW = 60.0
"""Seconds. A machine with GPUs is told an hour ahead, any other a minute; nobody says which this is."""
ADVICE = "does a metadata proxy of the cluster hide it? The agent needs the host's network"


def read_preempted(answer: wire.Answer, window: float) -> tuple[notice.Notice, ...]:
    """`TRUE` or `FALSE`; `window` is how many seconds pods then get.

    Raises:
        wire.AnswerError: as the other reader does, when it is no such answer.

    """
    said = _value(answer)
    if said == "FALSE":
        return ()
    if said != "TRUE":
        raise wire.AnswerError("unreadable", f"neither TRUE nor FALSE: {said[:100]!r}")
    return (notice.Notice(notice.Kind.END, "gcp-preempted", "Preempted", "preempted", within=window),)


def read_maintenance(answer: wire.Answer) -> tuple[notice.Notice, ...]:
    """`NONE`, or what becomes of the machine: it moves to another host while it runs, or it ends."""
    said = _value(answer)
    if not said:
        raise wire.AnswerError("unreadable", "an empty maintenance-event")
    source = "gcp-maintenance-event"
    if said == "MIGRATE_ON_HOST_MAINTENANCE":
        return (notice.Notice(notice.Kind.HINT, source, "HostMigration", said),)
    if said != "TERMINATE_ON_HOST_MAINTENANCE":
        return ()
    return (notice.Notice(notice.Kind.END, source, "HostMaintenance", said, within=MAINTENANCE_WINDOW),)


def _value(answer: wire.Answer) -> str:
    if answer.status != 200:
        raise answer.refused(ADVICE)
    if answer.headers.get("metadata-flavor") != "Google":
        raise wire.AnswerError("unreadable", f"not Google's metadata service: {answer.text()[:100]!r}")
    return answer.text()


class Key:
    """One key. The first request, and the one after a fault, asks for what is; the next ones hang."""

    def __init__(self, service: wire.Service, key: str) -> None:
        self._service = service
        self._path = INSTANCE + key
        self._etag = ""

    @property
    def pause(self) -> float:
        """A breath before a request that hangs, and a second before one that is answered at once."""
        return 0.1 if self._etag else 1.0

    def get(self) -> wire.Answer:
        """The value, when it has changed or `HANG` seconds have passed."""
        etag, self._etag = self._etag, ""
        query = f"?wait_for_change=true&timeout_sec={HANG}&last_etag={etag}" if etag else ""
        answer = self._service.ask(self._path + query, FLAVOR, timeout=PATIENCE if etag else wire.TIMEOUT)
        if answer.status == 200:
            self._etag = answer.headers.get("etag", "")
        return answer


class Preempted:
    """See notice.Source."""

    name = "gcp-preempted"
    causes = ("Preempted",)
    needed = True

    def __init__(self, service: wire.Service, window: float) -> None:
        self._key = Key(service, "preempted")
        self._window = window

    @property
    def pause(self) -> float:
        """See notice.Source."""
        return self._key.pause

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        return read_preempted(self._key.get(), self._window)


class Maintenance:
    """See notice.Source."""

    name = "gcp-maintenance-event"
    causes = ("HostMaintenance", "HostMigration")
    needed = False

    def __init__(self, service: wire.Service) -> None:
        self._key = Key(service, "maintenance-event")

    @property
    def pause(self) -> float:
        """See notice.Source."""
        return self._key.pause

    def look(self) -> tuple[notice.Notice, ...]:
        """See notice.Source."""
        return read_maintenance(self._key.get())


def sources(url: str, window: float) -> tuple[notice.Source, ...]:
    """Both."""
    service = wire.Service(url or URL)
    return Preempted(service, window), Maintenance(service)
