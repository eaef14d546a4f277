"""Metadata services as the clouds publish them, one small server each; any of them can be told to fail.

`python -m lab.fakes CLOUD HOST PORT [SINCE DEADLINE]` serves one of them, which tells from SINCE on (Unix
seconds) that the machine is taken at DEADLINE.
"""

import collections
import datetime as dt
import email.utils
import json
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab import clock


@dataclass(frozen=True)
class Reply:
    """An answer; status 0 closes the connection without one."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What was asked; `headers` have lower-case names."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


RESET = Reply(0)


class Fake:
    """`faults` are answered first, one a request for what is watched. Changes are told by `changed`."""

    provider = ""
    cause = ""
    names_deadline = True
    watched = ""
    """What the paths of requests for notices contain."""

    def __init__(self) -> None:
        self.faults: collections.deque[Reply] = collections.deque()
        self.changed = threading.Condition()
        self.asked: list[Request] = []
        self.ended = False
        self.url = ""

    def answer(self, request: Request) -> Reply:
        """To a request: a fault that is due, or what the cloud would answer."""
        with self.changed:
            self.asked.append(request)
            if self.faults and self.watched in request.path:
                return self.faults.popleft()
        return self.respond(request)

    def respond(self, request: Request) -> Reply:
        """What the cloud would answer."""
        raise NotImplementedError

    def quiet(self) -> None:
        """Nothing is pending."""
        raise NotImplementedError

    def give_notice(self, deadline: dt.datetime) -> None:
        """The machine is taken at that moment."""
        raise NotImplementedError


class Imds(Fake):
    """IMDSv2 with tokens of `ttl` seconds; `action`, `rebalance` are documents, or None for 404.

    `told_ttl` is what it says of its tokens, where that is not the truth. `hop_limit`: a token's answer gets
    that many hops far, and whoever asks here is two away.
    """

    provider, cause, watched = "aws", "SpotTermination", "instance-action"

    def __init__(
        self, *, ttl: float = 21600, told_ttl: int = 0, refuses_tokens: bool = False, hop_limit: int = 2
    ) -> None:
        super().__init__()
        self.action: dict[str, str] | None = None
        self.rebalance: dict[str, str] | None = None
        self.without_token = 0
        self.tokens = 0
        self.unauthorized = 0
        self._ttl = ttl
        self._told = told_ttl or int(ttl)
        self._refuses = refuses_tokens
        self._hop_limit = hop_limit
        self._expires: dict[str, float] = {}

    def respond(self, request: Request) -> Reply:
        """See Fake."""
        if request.path == "/latest/api/token":
            return self._token(request)
        token = request.headers.get("x-aws-ec2-metadata-token", "")
        self.without_token += not token
        if clock.now() >= self._expires.get(token, 0.0):
            self.unauthorized += 1
            return Reply(401, "Unauthorized")
        documents = {
            "/latest/meta-data/spot/instance-action": self.action,
            "/latest/meta-data/events/recommendations/rebalance": self.rebalance,
        }
        found = documents.get(request.path)
        return Reply(200, json.dumps(found)) if found else Reply(404, "<html>404 - Not Found</html>")

    def _token(self, request: Request) -> Reply:
        if request.method != "PUT" or "x-aws-ec2-metadata-token-ttl-seconds" not in request.headers:
            return Reply(400)
        if self._refuses:
            return Reply(403)
        if self._hop_limit < 2:
            with self.changed:
                self.changed.wait_for(lambda: self.ended, timeout=60)
            return RESET
        self.tokens += 1
        name = f"t{self.tokens}"
        self._expires[name] = clock.now() + self._ttl
        return Reply(200, name, {"X-aws-ec2-metadata-token-ttl-seconds": str(self._told)})

    def quiet(self) -> None:
        """See Fake."""
        self.action = None

    def give_notice(self, deadline: dt.datetime) -> None:
        """See Fake."""
        self.action = {"action": "terminate", "time": f"{deadline:%Y-%m-%dT%H:%M:%SZ}"}


class Google(Fake):
    """`values` by key; a request with wait_for_change hangs until that changes. A None is hidden: 404."""

    provider, cause, names_deadline, watched = "gcp", "Preempted", False, "preempted"

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str | None] = {"preempted": "FALSE", "maintenance-event": "NONE", "id": "123"}
        self.cuts = 0

    def respond(self, request: Request) -> Reply:
        """See Fake."""
        if request.headers.get("metadata-flavor") != "Google":
            return Reply(403)
        key = request.path.removeprefix("/computeMetadata/v1/instance/")
        with self.changed:
            if request.query.get("wait_for_change") == "true":
                cuts = self.cuts
                last = request.query.get("last_etag") or self.etag(key)
                self.changed.wait_for(
                    lambda: self.etag(key) != last or self.cuts > cuts or self.ended,
                    timeout=float(request.query.get("timeout_sec", 3600)),
                )
                if self.cuts > cuts or self.ended:
                    return RESET
            value = self.values[key]
            google = {"Metadata-Flavor": "Google", "ETag": self.etag(key)}
            return Reply(404, headers=google) if value is None else Reply(200, value, google)

    def etag(self, key: str) -> str:
        """Of a value: another one has another."""
        return f"{hash((key, self.values[key])) & 0xFFFFFFFF:016x}"

    def set(self, key: str, value: str | None) -> None:
        """Change a value, and answer the requests that wait for that."""
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def cut(self) -> None:
        """Close every connection that hangs."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def quiet(self) -> None:
        """See Fake."""
        self.set("preempted", "FALSE")

    def give_notice(self, deadline: dt.datetime) -> None:  # noqa: ARG002 - this cloud names none
        """See Fake."""
        self.set("preempted", "TRUE")


def event(kind: str, deadline: dt.datetime | None, *, id: str = "e1", machine: str = "vm0") -> dict[str, Any]:  # noqa: A002
    """As Scheduled Events lists it; no deadline: it has started."""
    return {
        "EventId": id,
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": [machine],
        "EventStatus": "Scheduled" if deadline else "Started",
        "NotBefore": email.utils.format_datetime(deadline, usegmt=True) if deadline else "",
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }


class Azure(Fake):
    """Scheduled Events for the machine `vm0`; the first answer waits for `awake`."""

    provider, cause, watched = "azure", "Preempted", "scheduledevents"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []
        self.incarnation = 1
        self.awake = threading.Event()
        self.awake.set()

    def respond(self, request: Request) -> Reply:
        """See Fake."""
        if request.headers.get("metadata") != "true":
            return Reply(400, '{"error": "Bad request. Required metadata header not specified"}')
        if request.path == "/metadata/instance/compute/name":
            return Reply(200, "vm0")
        if request.method != "GET" or request.query.get("api-version") != "2020-07-01":
            return Reply(400, '{"error": "Bad request"}')
        self.awake.wait(60)
        return Reply(200, json.dumps({"DocumentIncarnation": self.incarnation, "Events": self.events}))

    def set(self, *events: dict[str, Any]) -> None:
        """These are the events, and no others."""
        self.incarnation += 1
        self.events = list(events)

    def quiet(self) -> None:
        """See Fake."""
        self.set()

    def give_notice(self, deadline: dt.datetime) -> None:
        """See Fake."""
        self.set(event("Preempt", deadline))


class Alibaba(Fake):
    """The time of release, or 404."""

    provider, cause, watched = "alibaba", "Released", "termination-time"

    def __init__(self) -> None:
        super().__init__()
        self.time = ""

    def respond(self, request: Request) -> Reply:
        """See Fake."""
        if request.path == "/latest/meta-data/instance/spot/termination-time" and self.time:
            return Reply(200, self.time)
        return Reply(200, "i-bp1") if request.path == "/latest/meta-data/instance-id" else Reply(404)

    def quiet(self) -> None:
        """See Fake."""
        self.time = ""

    def give_notice(self, deadline: dt.datetime) -> None:
        """See Fake."""
        self.time = f"{deadline:%Y-%m-%dT%H:%M:%SZ}"


FAKES: Mapping[str, type[Fake]] = {one.provider: one for one in (Imds, Google, Azure, Alibaba)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without looking the host's name up, which takes seconds where no name server answers."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


@contextmanager
def running(fake: Fake, host: str = "127.0.0.1", port: int = 0) -> Iterator[None]:
    """Serve it while the block lasts; its `url` is set."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            pairs = dict(urllib.parse.parse_qsl(query))
            reply = fake.answer(Request(self.command, path, pairs, headers))
            self.close_connection = True
            if not reply.status:
                return
            body = reply.body.encode()
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return  # the asker has lost patience

        do_GET = do_PUT = do_POST = _do

        def log_message(self, *_: object) -> None:
            pass

    server = _Server((host, port), Handler)
    fake.url = f"http://{host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        with fake.changed:
            fake.ended = True
            fake.changed.notify_all()
        server.shutdown()
        thread.join()
        server.server_close()


def main(cloud: str, host: str, port: str, since: str = "", deadline: str = "") -> None:
    """Serve until the process is ended."""
    fake, never = FAKES[cloud](), threading.Event()
    with running(fake, host, int(port)):
        if since:
            never.wait(float(since) - clock.wall())
            fake.give_notice(dt.datetime.fromtimestamp(float(deadline), dt.UTC))
        never.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
