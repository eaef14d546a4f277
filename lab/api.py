"""The few calls to the API server that the lab makes itself: a start of kubectl costs 0.1 s each time."""

import http.client
import json
import ssl
import urllib.parse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.pki import Pair


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return self.status < 300

    def expect(self, what: str) -> Any:
        """The body; raises LabError with the server's message when the call was refused."""
        if not self.ok:
            reason = self.body.get("message") if isinstance(self.body, dict) else self.body
            raise LabError(f"{what} was refused: {self.status} {reason}")
        return self.body


@dataclass(frozen=True)
class Api:
    """The API server at `url`, as the user of the certificate `user`."""

    url: str
    ca: Path
    user: Pair

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Trusts the lab and shows who we are."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.user.cert, self.user.key)
        return context

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
        """One request; an unreachable server answers with status 599."""
        host = urllib.parse.urlsplit(self.url).netloc
        connection = http.client.HTTPSConnection(host, context=self.tls, timeout=10)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, body=data, headers={"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError as error:
            return Answer(599, f"{self.url} does not answer: {error}")
        finally:
            connection.close()
        is_json = "json" in (answer.headers.get("Content-Type") or "")
        return Answer(answer.status, json.loads(text) if is_json else text)

    def get(self, path: str) -> Answer:
        """Read."""
        return self.call("GET", path)

    def apply(self, path: str, document: dict[str, Any]) -> Any:
        """Create the object or make it as the document says; returns it."""
        query = "?fieldManager=lab&force=true"
        done = self.call("PATCH", path + query, document, "application/apply-patch+yaml")
        return done.expect(f"{document['kind']} {document['metadata']['name']}")

    def merge(self, path: str, change: dict[str, Any]) -> Answer:
        """Change some fields."""
        return self.call("PATCH", path, change, "application/merge-patch+json")
