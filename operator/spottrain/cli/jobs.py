"""Jobs, and what belongs to them, as the cluster has them."""

import difflib
from dataclasses import dataclass
from typing import Any, Protocol

from spottrain import errors
from spottrain.api import names

Object = dict[str, Any]
RESOURCE = f"{names.PLURAL}.{names.GROUP}"


class Cluster(Protocol):
    """What is needed of it; see kubectl.Kubectl."""

    def get(self, *what: str) -> Object: ...  # noqa: D102

    def find(self, *what: str) -> Object | None: ...  # noqa: D102


@dataclass(frozen=True)
class Gathered:
    """A job with what is still there of it; `nodes` by name, as far as one may read them."""

    job: Object
    pods: list[Object]
    events: list[Object]
    nodes: dict[str, Object]
    missing: tuple[str, ...] = ()
    """What could not be read, and why."""


def every(cluster: Cluster, scope: tuple[str, ...], selector: str = "") -> list[Object]:
    """All jobs there; `scope`: kubectl's flags for the namespace."""
    chosen = (f"--selector={selector}",) if selector else ()
    return list(cluster.get(RESOURCE, *scope, *chosen)["items"])


def one(cluster: Cluster, name: str, scope: tuple[str, ...]) -> Object:
    """The job of that name. Raises ClusterError with names that are near."""
    found = cluster.find(RESOURCE, name, *scope)
    if found is None:
        raise errors.ClusterError(_none_such(name, [_name(other) for other in every(cluster, scope)], scope))
    return found


def _none_such(name: str, there: list[str], scope: tuple[str, ...]) -> str:
    where = f"namespace {scope[0].partition('=')[2]}" if scope else "the current namespace"
    if not there:
        return f"there is no job {name}, nor any other, in {where}: name another one with -n, or list -A"
    near = difflib.get_close_matches(name, there) or sorted(there)[:5]
    return f"there is no job {name} in {where}: is it {' or '.join(near)}? `list -A` shows all namespaces"


def gather(cluster: Cluster, name: str, scope: tuple[str, ...]) -> Gathered:
    """The job and all that tells of it; only the job itself must be readable."""
    job = one(cluster, name, scope)
    missing: list[str] = []

    def items(*what: str) -> list[Object]:
        try:
            found = cluster.find(*what) or {"items": []}
        except errors.ClusterError as error:
            missing.append(f"{what[0]} can't be read: {error}")
            return []
        return list(found["items"]) if "items" in found else [found]  # one name: the object itself

    pods = items(*pods_of(job))
    events = items(*events_of(job))
    wanted = sorted({pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")})
    nodes = items("nodes", *wanted) if wanted else []
    return Gathered(job, pods, events, {_name(node): node for node in nodes}, tuple(missing))


def pods_of(job: Object) -> tuple[str, ...]:
    """What to ask for to get its pods."""
    return ("pods", _namespace(job), f"--selector={names.LABEL_JOB}={_name(job)}")


def events_of(job: Object) -> tuple[str, ...]:
    """What to ask for to get its Events, and none of a namesake's."""
    return ("events", _namespace(job), f"--field-selector=involvedObject.uid={job['metadata']['uid']}")


def _namespace(job: Object) -> str:
    return f"--namespace={job['metadata']['namespace']}"


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
