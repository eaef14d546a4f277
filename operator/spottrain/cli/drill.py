"""`spottrain drill`: a notice on a node that is only rehearsed, from the agent's mark to its end.

Asked for by an annotation on the Node; the node's agent does the rest, as with a cloud's notice.
"""

import contextlib
import datetime as dt
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from spottrain import errors
from spottrain.api import clouds, duration, names
from spottrain.train.clock import Clock

Object = dict[str, Any]
SHORTEST, LONGEST = 5.0, 3600.0
SILENT_AFTER = dt.timedelta(minutes=15)
"""The agent renews its Node's condition every five minutes."""
TAKEN_UP_SECONDS = 30.0
WITHDRAWN_SECONDS = 30.0
POLL_SECONDS = 1.0
INSTALL = "install it with `helm upgrade … --reuse-values --set agent.enabled=true` (docs/agent.md)"


class Cluster(Protocol):
    """What is needed of it; see kubectl.Kubectl."""

    def get(self, *what: str) -> Object: ...  # noqa: D102

    def run(self, *arguments: str) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Wish:
    """`window`: seconds that the workers believe to have. `force`: on a node that isn't known as spot."""

    node: str
    window: float
    force: bool = False


def run(wish: Wish, cluster: Cluster, clock: Clock, tell: Callable[[str], None]) -> None:
    """A whole drill; returns when the node is as before. Raises ClusterError, with what to do."""
    if not SHORTEST <= wish.window <= LONGEST:
        raise errors.ClusterError(f"a window of {wish.window:g} s: choose one from 5s to 1h")
    problem = refusal(cluster.get("node", wish.node), _now(clock), force=wish.force)
    if problem:
        raise errors.ClusterError(problem)
    event = secrets.token_hex(6)
    workers = _workers(wish.node, cluster)  # now: once it has begun they may be gone
    asked = {"id": event, "window": wish.window, "asked": duration.format_time(_now(clock))}
    cluster.run("annotate", "node", wish.node, f"{names.ANNOTATION_DRILL}={json.dumps(asked)}")
    try:
        mark = _begun(wish, event, cluster, clock)
        tell(f"drill {event} has begun: for its workers {wish.node} is taken at {mark['deadline']}")
        tell(f"workers on it: {', '.join(workers)}" if workers else "no worker is on it: nobody has to stop")
        _see_the_end(wish, event, cluster, clock)
        tell(f"over: {wish.node} takes workers again")
    except BaseException:
        # Whatever goes wrong here, also an impatient Ctrl-C: nothing of it is left on the node.
        with contextlib.suppress(errors.ClusterError):
            cluster.run("annotate", "node", wish.node, f"{names.ANNOTATION_DRILL}-")
        raise


def _mark(wish: Wish, event: str, cluster: Cluster) -> Object | None:
    """The drill's on the Node."""
    said = _json(cluster.get("node", wish.node), names.ANNOTATION_RECLAIM)
    return said if said.get("event") == event else None


def _begun(wish: Wish, event: str, cluster: Cluster, clock: Clock) -> Object:
    mark: Object | None = _wait(lambda: _mark(wish, event, cluster), clock, TAKEN_UP_SECONDS)
    if mark is None:
        raise errors.ClusterError(
            f"the agent of {wish.node} has not begun the drill within {TAKEN_UP_SECONDS:.0f} s, so it is "
            "called off: is it as new as this command, and this machine's clock right? Its log says more"
        )
    return mark


def _see_the_end(wish: Wish, event: str, cluster: Cluster, clock: Clock) -> None:
    if not _wait(lambda: _mark(wish, event, cluster) is None, clock, wish.window + WITHDRAWN_SECONDS):
        raise errors.ClusterError(
            f"{wish.node} is still marked, {WITHDRAWN_SECONDS:.0f} s after the drill's end: is its agent "
            f"alive? `kubectl annotate node {wish.node} {names.ANNOTATION_RECLAIM}-` and "
            f"`kubectl taint node {wish.node} {names.TAINT_RECLAIM}-` take the mark away"
        )


def refusal(node: Object, now: dt.datetime, *, force: bool) -> str:
    """Why there can be no drill on that Node, in a sentence; empty if there can."""
    name = node["metadata"]["name"]
    if marked := _json(node, names.ANNOTATION_RECLAIM):
        return f"{name} is under notice already ({marked.get('cause', 'notice')}): choose another node"
    if names.ANNOTATION_DRILL in _annotations(node):
        return f"a drill on {name} has been asked for already: wait for its end"
    if problem := _agent_problem(node, now):
        return problem
    labels, provider_id = node["metadata"].get("labels") or {}, node["spec"].get("providerID") or ""
    bought = clouds.capacity(labels, provider_id)
    if bought is not clouds.Capacity.SPOT and not force:
        return (
            f"{name} carries no mark of a spot node ({bought}): --force if it is to be drilled all the same"
        )
    return ""


def _agent_problem(node: Object, now: dt.datetime) -> str:
    name, conditions = node["metadata"]["name"], (node.get("status") or {}).get("conditions") or ()
    found: Object = next((one for one in conditions if one["type"] == names.CONDITION_NOTICES), {})
    if not found:
        return f"{name} has no notice agent, and nobody else would begin the drill: {INSTALL}"
    heard = duration.optional_time(found.get("lastHeartbeatTime"))
    if heard is None or now - heard > SILENT_AFTER:
        since = duration.format_time(heard) if heard else "ever"
        return f"the agent of {name} has not been heard since {since}: `kubectl describe` of its pod says why"
    return ""


def _workers(node: str, cluster: Cluster) -> list[str]:
    query = (
        "pods",
        "--all-namespaces",
        f"--field-selector=spec.nodeName={node}",
        f"--selector={names.LABEL_JOB}",
    )
    found = [one["metadata"] for one in cluster.get(*query)["items"]]
    return sorted(f"{one['namespace']}/{one['name']}" for one in found)


def _wait(probe: Callable[[], Any], clock: Clock, seconds: float) -> Any:
    """What the probe says when it is true; what it says at last if that never comes."""
    deadline = clock.monotonic() + seconds
    while not (found := probe()) and clock.monotonic() < deadline:
        clock.sleep(POLL_SECONDS)
    return found


def _json(node: Object, annotation: str) -> Object:
    """What anybody may have written there; without a word if it can't be read."""
    text = _annotations(node).get(annotation)
    if text is None:
        return {}
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    return said if isinstance(said, dict) and said else {"cause": "notice"}


def _annotations(node: Object) -> Object:
    return node["metadata"].get("annotations") or {}


def _now(clock: Clock) -> dt.datetime:
    return dt.datetime.fromtimestamp(clock.unix(), dt.UTC)
