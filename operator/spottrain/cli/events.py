"""`events`: what the operator told of a job, and what it goes on to tell."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

from spottrain.api import duration
from spottrain.cli import story
from spottrain.cli.paint import Line

Object = Mapping[str, Any]


class Cluster(Protocol):
    """What is needed of it; see kubectl.Kubectl."""

    def run(self, *arguments: str) -> str: ...  # noqa: D102

    def stream(self, *arguments: str) -> Iterator[str]: ...  # noqa: D102


def line(event: Object) -> Line:
    """When, and what."""
    when = duration.format_time(story.moment(event))
    return Line(f"{when}  {event.get('type', 'Normal'):7}  {story.said(event)}", story.tone_of(event))


def watch(job: Object, cluster: Cluster, tell: Callable[[Object], None]) -> None:
    """Those that there are, oldest first, and each new one as it comes; ends by an exception alone."""
    told: set[str] = set()

    def once(event: Object) -> None:
        version = f"{event['metadata']['uid']} {event['metadata']['resourceVersion']}"
        if version not in told:
            told.add(version)
            tell(event)

    while True:
        # The server ends a watch after a while, and forgets what it has sent: all are listed again.
        found = json.loads(cluster.run("get", "--raw", _path(job)))
        for event in story.in_order(found["items"]):
            once(event)
        since = found["metadata"]["resourceVersion"]
        for text in cluster.stream("get", "--raw", _path(job, watch="1", resourceVersion=since)):
            change = json.loads(text)
            if change["type"] in {"ADDED", "MODIFIED"}:
                once(change["object"])


def _path(job: Object, **more: str) -> str:
    query = {"fieldSelector": f"involvedObject.uid={job['metadata']['uid']}", **more}
    return f"/api/v1/namespaces/{job['metadata']['namespace']}/events?{urlencode(query)}"
