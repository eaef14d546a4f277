"""What is left of jobs that are over or deleted: objects in the cluster, processes on the machines."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from demo.manifests import NAMESPACE
from lab.api import Api
from lab.cluster import Lab
from lab.errors import LabError
from lab.pod_processes import PodProcess
from spottrain.api import names

_IN: Final = f"namespaces/{NAMESPACE}"
OWNED: Final = {
    "SpotTrainingJob": f"/apis/{names.API_VERSION}/{_IN}/{names.PLURAL}",
    "Job": f"/apis/batch/v1/{_IN}/jobs",
    "Pod": f"/api/v1/{_IN}/pods",
    "Service": f"/api/v1/{_IN}/services",
}
"""Nothing else in the namespace makes any of these."""


@dataclass(frozen=True)
class Objects:
    """The objects in the jobs' namespace by kind, and the UIDs of all pods of the cluster."""

    by_kind: Mapping[str, tuple[Mapping[str, Any], ...]]
    all_pods: frozenset[str]


def look(api: Api) -> Objects:
    """As they are now; LabError when the API server doesn't say."""
    by_kind = {kind: tuple(api.get(path).expect(path)["items"]) for kind, path in OWNED.items()}
    pods = api.get("/api/v1/pods").expect("pods")["items"]
    return Objects(by_kind, frozenset(one["metadata"]["uid"] for one in pods))


def when_complete(objects: Objects, deleted: Iterable[str]) -> Iterator[str]:
    """All jobs are over, and these were deleted: no worker runs, and of those deleted there is nothing."""
    gone = set(deleted)
    for pod in objects.by_kind["Pod"]:
        phase = pod["status"].get("phase")
        if phase not in {"Succeeded", "Failed"}:
            yield f"pod {pod['metadata']['name']} of a job that is over is {phase}"
    for kind, items in objects.by_kind.items():
        for item in items:
            name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
            if name in gone or labels.get(names.LABEL_JOB) in gone:
                yield f"{kind} {name} of a deleted job is still there"
    for job in objects.by_kind["Job"]:
        ended = {one["type"] for one in job["status"].get("conditions", ()) if one["status"] == "True"}
        if not ended & {"Complete", "Failed"} and job["metadata"]["name"] not in gone:
            yield f"Job {job['metadata']['name']} is not over, and its SpotTrainingJob is"


def when_deleted(objects: Objects) -> Iterator[str]:
    """All jobs were deleted: nothing of them is left."""
    for kind, items in objects.by_kind.items():
        for item in items:
            yield f"{kind} {item['metadata']['name']} is still there"


def strays(objects: Objects, processes: Iterable[PodProcess]) -> Iterator[str]:
    """No process belongs to a pod that is not there any more."""
    for one in processes:
        if one.pod not in objects.all_pods:
            yield f"process {one.pid} ({one.command[:80]}) of pod {one.pod}, which is gone, still runs"


def now_when_complete(lab: Lab, deleted: Iterable[str]) -> list[str]:
    """What is left now; the reason when nobody can say."""
    return _now(lab, lambda objects: when_complete(objects, deleted))


def now_when_deleted(lab: Lab) -> list[str]:
    """What is left now; the reason when nobody can say."""
    return _now(lab, when_deleted)


def _now(lab: Lab, objections: Callable[[Objects], Iterator[str]]) -> list[str]:
    try:
        processes = lab.pod_processes()
        objects = look(lab.api)
    except LabError as error:
        return [str(error)]
    return [*objections(objects), *strays(objects, processes)]
