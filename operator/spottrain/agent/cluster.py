"""The API server, with the pod's own token: what the agent needs of it and no more.

The Kubernetes client package would take more memory than the whole agent may.

::

    ClusterError
    ├── ApiError          the server answered with an error status (`code`)
    └── UnreachableError  no answer
"""

import collections.abc as cabc
import contextlib
import dataclasses
import http.client
import json
import pathlib
import ssl
import urllib.parse
from typing import Any

from spottrain.agent import clock as clocks
from spottrain.agent import moments, wire

Object = dict[str, Any]
TIMEOUT = 3.0
"""Seconds. A notice may be for 30, and a request that is lost is better sent again."""
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
CREDENTIALS = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ClusterError(Exception):
    """Any of them."""


class ApiError(ClusterError):
    """An answer with an error status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class UnreachableError(ClusterError):
    """No answer came."""


@dataclasses.dataclass(frozen=True)
class Server:
    """Where it is, and the folder with `token` and `ca.crt`, which are read anew for each request."""

    url: str
    credentials: pathlib.Path = CREDENTIALS

    @classmethod
    def around(cls, environment: cabc.Mapping[str, str]) -> str:
        """The URL of the API server of the cluster that we run in; empty outside one."""
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
        if not host:
            return ""
        return f"https://{f'[{host}]' if ':' in host else host}:{port or 443}"


class Cluster:
    """Requests with plain dictionaries; each on a connection of its own, since there are hardly any."""

    def __init__(self, server: Server, clock: clocks.Clock) -> None:
        self._server = server
        self._clock = clock

    def request(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        """The answer's object.

        Raises:
            ApiError: the server answered with an error status.
            UnreachableError: no answer within some seconds, or no connection.

        """
        try:
            connection = self._connect()
            with contextlib.closing(connection):
                headers = {"Accept": "application/json", "Content-Type": content_type, **self._token()}
                text = None if body is None else json.dumps(body)
                connection.request(method, path, body=text, headers=headers)
                response = connection.getresponse()
                answer = json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnreachableError(f"{method} {self._server.url}{path}: {error!r}") from error
        if date := response.getheader("Date"):
            with contextlib.suppress(wire.AnswerError):
                self._clock.put_right(moments.rfc1123(date))
        if response.status >= 400:
            raise ApiError(response.status, f"{method} {path}: {answer.get('message')}")
        return dict(answer)

    def watch(self, path: str, seconds: int) -> cabc.Iterator[Object]:
        """Each state of what is watched, from the present one on, for so many seconds.

        Of what is deleted there is none. Raises as `request` does.
        """
        try:
            connection = self._connect()
            with contextlib.closing(connection):
                connection.connect()
                connection.sock.settimeout(seconds + TIMEOUT)
                query = urllib.parse.urlencode({"watch": "true", "timeoutSeconds": seconds})
                connection.request("GET", f"{path}&{query}", headers=self._token())
                response = connection.getresponse()
                if response.status >= 400:
                    raise ApiError(response.status, f"watch {path}")
                while line := response.readline():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise ApiError(int(event["object"]["code"]), f"watch {path}: {event['object']}")
                    if event["type"] != "DELETED":
                        yield dict(event["object"])
        except (OSError, http.client.HTTPException, ValueError, TypeError, LookupError) as error:
            raise UnreachableError(f"watch {self._server.url}{path}: {error!r}") from error

    def _connect(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self._server.url)
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT)
        authority = ssl.create_default_context(cafile=str(self._server.credentials / "ca.crt"))
        return http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT, context=authority)

    def _token(self) -> dict[str, str]:
        token = (self._server.credentials / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}
