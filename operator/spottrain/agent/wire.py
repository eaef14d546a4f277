"""GET and PUT on plain HTTP, as metadata services want them: no proxy, no redirect, a limit on the answer."""

import collections.abc as cabc
import contextlib
import dataclasses
import http.client
import json
import urllib.parse
from typing import Any

LONGEST = 1 << 20
"""Bytes of an answer; the longest real one is a few KiB."""
TIMEOUT = 5.0
FAULTS = ("none", "unreadable", "2xx", "3xx", "4xx", "5xx")
"""Kinds of faults: no answer, nonsense, or a status that isn't expected."""


class AnswerError(Exception):
    """There was no answer or none that could be understood; `kind` is one of FAULTS."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back. Names of headers are in lower case."""

    status: int
    headers: cabc.Mapping[str, str]
    body: bytes

    def text(self) -> str:
        """The body without white space around it."""
        return self.body.decode("utf-8", errors="replace").strip()

    def document(self) -> dict[str, Any]:
        """The JSON object in it.

        Raises:
            AnswerError: it is something else.

        """
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise AnswerError("unreadable", f"not JSON: {self.text()[:100]!r}") from error
        if not isinstance(found, dict):
            raise AnswerError("unreadable", f"no JSON object: {self.text()[:100]!r}")
        return found

    def refused(self, advice: str = "") -> AnswerError:
        """This status is none that the service gives for what was asked."""
        words = f"answered {self.status} {self.text()[:100]!r}"
        return AnswerError(f"{self.status // 100}xx", f"{words}; {advice}" if advice else words)


class Service:
    """One metadata service at `url` (http://HOST[:PORT]). A connection per request: there are few."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._host = urllib.parse.urlsplit(url).netloc

    def ask(
        self,
        path: str,
        headers: cabc.Mapping[str, str],
        *,
        method: str = "GET",
        timeout: float = TIMEOUT,
    ) -> Answer:
        """The answer, whatever its status; `timeout` is how long it may take to begin.

        Raises:
            AnswerError: no whole answer came.

        """
        connection = http.client.HTTPConnection(self._host, timeout=TIMEOUT)
        with contextlib.closing(connection):
            try:
                connection.connect()
                connection.sock.settimeout(timeout)
                connection.request(method, path, headers=dict(headers))
                response = connection.getresponse()
                body = response.read(LONGEST)
            except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: unfit as a header
                raise AnswerError("none", f"{self.url}{path}: {error!r}") from error
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, body)
