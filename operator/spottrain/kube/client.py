"""Requests to the API server with plain dictionaries.

On the transport and the credentials of the official client (`kubernetes.aio`), without its typed models: they
refuse legal bodies (`cpu: 2`) and fail on one foreign object in a list. It has no async watch either.
"""

import asyncio
import collections.abc as cabc
import dataclasses
import json
import os
import pathlib
import urllib.request
from typing import Any, Self, TypeVar, cast

import aiohttp
import orjson
from kubernetes.aio import config
from kubernetes.aio.client import configuration, exceptions, rest

from spottrain.api import names
from spottrain.kube import errors, recovery

Object = dict[str, Any]
T = TypeVar("T")
Sent = cabc.Callable[[str, str, str], None]
"""Told of each request: its method (WATCH for one), the kind's plural and subresource, the answer's code."""

MERGE_PATCH = "application/merge-patch+json"
REQUEST_TIMEOUT = 30.0
CONNECTIONS = 64
READ_BUFFER = 2**21
"""Bytes; the package's own choice, since one watch event can be as large as etcd allows, 1.5 MiB."""


@dataclasses.dataclass(frozen=True)
class Resource:
    """A kind's place in the API: `prefix` is `/api/v1` or `/apis/<group>/<version>`."""

    prefix: str
    plural: str

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object or a subresource; no namespace means all of them."""
        parts = [self.prefix]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


PODS = Resource("/api/v1", "pods")
NODES = Resource("/api/v1", "nodes")
SERVICES = Resource("/api/v1", "services")
EVENTS = Resource("/api/v1", "events")
CONFIG_MAPS = Resource("/api/v1", "configmaps")
JOBS = Resource("/apis/batch/v1", "jobs")
SPOT_TRAINING_JOBS = Resource("/apis/spottrain.dev/v1alpha1", "spottrainingjobs")


class Client:
    """A connection pool to one API server."""

    def __init__(self, settings: configuration.Configuration) -> None:
        self.sent: Sent = lambda method, resource, code: None  # noqa: ARG005 - until somebody counts
        self.recovery = recovery.Recovery()
        settings.connection_pool_maxsize = CONNECTIONS
        self._settings = settings
        self._rest = rest.RESTClientObject(settings)
        self._rest.pool_manager = _lean(self._rest.pool_manager)

    @classmethod
    async def connect(cls) -> Self:
        """A client for the cluster we run in, or for the current kubeconfig."""
        settings = configuration.Configuration()
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_incluster_config(client_configuration=settings)
        else:
            await config.load_kube_config(client_configuration=settings)
        return cls(settings)

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: cabc.Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """The answer's object.

        Raises:
            errors.ApiError: the server answered with an error status.
            errors.UnreachableError: no answer within 30 s, or no connection.
            errors.UnreadableError: the answer is no JSON object.

        """
        text = await self._answer(method, path, body, query, content_type)
        return _object(text, f"{method} {path}") if text else {}

    async def text(self, path: str, query: cabc.Mapping[str, str]) -> str:
        """GET something that is no object, such as a log; raises as `request` does."""
        return await self._answer("GET", path, None, query, "application/json")

    async def _answer(
        self, method: str, path: str, body: Any, query: cabc.Mapping[str, str] | None, content_type: str
    ) -> str:
        response = await self._send(method, path, body, query, content_type, REQUEST_TIMEOUT)
        async with response:
            text = await _read(response)
        if response.status >= 400:
            raise errors.from_answer(response.status, text, response.headers.get("Retry-After"))
        return text

    async def watch(
        self, path: str, query: cabc.Mapping[str, str], silence: float
    ) -> cabc.AsyncIterator[Object]:
        """Watch events as they come, until the server ends the stream.

        Raises:
            errors.ApiError: the watch was refused, or an ERROR event came (410 as ExpiredError).
            errors.UnreachableError: the stream broke, or was silent for `silence` seconds.
            errors.UnreadableError: a line is no JSON object.

        """
        timeout = aiohttp.ClientTimeout(sock_connect=REQUEST_TIMEOUT, sock_read=silence)
        response = await self._send(
            "GET", path, None, {**query, "watch": "true"}, "application/json", timeout
        )
        async with response:
            if response.status >= 400:
                raise errors.from_answer(response.status, await _read(response))
            async for line in _lines(response):
                event = _object(line, f"WATCH {path}")
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise errors.from_answer(status.get("code", 500), json.dumps(status))
                yield event

    async def _send(  # noqa: PLR0913, PLR0917 - one request has these parts
        self,
        method: str,
        path: str,
        body: Any,
        query: cabc.Mapping[str, str] | None,
        content_type: str,
        timeout: Any,  # noqa: ASYNC109 - passed on to aiohttp
    ) -> aiohttp.ClientResponse:
        verb = "WATCH" if query and "watch" in query else method
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        for setting in (await self._settings.auth_settings()).values():
            headers[setting["key"]] = setting["value"]
        try:
            response = await self._rest.request(
                method,
                self._settings.host + path,
                query_params=list((query or {}).items()),
                headers=headers,
                body=body,
                _preload_content=False,
                _request_timeout=timeout,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, exceptions.ApiException) as error:
            self.sent(verb, what(path), "none")
            if isinstance(error, TimeoutError):
                self.recovery.unanswered()
            raise errors.UnreachableError(f"{method} {path}: {error!r}") from error
        answer = cast("aiohttp.ClientResponse", response)
        self.sent(verb, what(path), str(answer.status))
        self.recovery.answered()
        return answer


def what(path: str) -> str:
    """The plural in a path, with the subresource if it names one: `pods`, `spottrainingjobs/status`."""
    parts = path.strip("/").split("/")
    rest_of_path = parts[2 if parts[0] == "api" else 3 :]
    if rest_of_path[:1] == ["namespaces"] and len(rest_of_path) > 2:
        rest_of_path = rest_of_path[2:]
    return "/".join([*rest_of_path[:1], *rest_of_path[2:3]])


def _lean(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """The same connections, under our name and without a look at ~/.netrc and proxy variables each time.

    The package asks for that look; it took a sixth of the operator's CPU while a gang was replaced. Proxies
    are still honoured if the environment names any when the process starts.
    """
    lean = aiohttp.ClientSession(
        connector=session.connector,
        trust_env=bool(urllib.request.getproxies()),
        headers={"User-Agent": names.FIELD_MANAGER},
        read_bufsize=READ_BUFFER,
    )
    session.detach()
    return lean


def _object(text: str | bytes, asked: str) -> Object:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _unreadable(text, asked) from error
    if not isinstance(found, dict):
        raise _unreadable(text, asked)
    return found


def _unreadable(text: str | bytes, asked: str) -> errors.UnreadableError:
    return errors.UnreadableError(asked, f"{text[:80]!r} is no JSON object")


async def _read(response: aiohttp.ClientResponse) -> str:
    try:
        # A log may hold anything, and may have been cut in the middle of a character.
        return await response.text(encoding="utf-8", errors="replace")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise errors.UnreachableError(f"the answer broke off: {error!r}") from error


async def _lines(response: aiohttp.ClientResponse) -> cabc.AsyncIterator[bytes]:
    """Whole lines of a stream; an object may be larger than any buffer."""
    rest_of_line = b""
    while True:
        try:
            chunk = await response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.UnreachableError(f"the watch broke off: {error!r}") from error
        if not chunk:
            return
        *lines, rest_of_line = (rest_of_line + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line


def own_namespace() -> str:
    """The namespace that this process runs in; `default` outside a cluster."""
    file = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    return file.read_text().strip() if file.exists() else "default"


async def in_parallel(work: cabc.Iterable[cabc.Coroutine[Any, Any, T]]) -> list[T]:
    """All their results, in order; the first error is raised after every one has ended."""
    results = await asyncio.gather(*work, return_exceptions=True)
    errors_first = [one for one in results if isinstance(one, BaseException)]
    if errors_first:
        raise errors_first[0]
    return [one for one in results if not isinstance(one, BaseException)]
