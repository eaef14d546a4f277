"""One worker: the live Job's template, and on top of it what is known only when the pod is made."""

import collections.abc as cabc
import copy
import dataclasses
from typing import Any

from spottrain.api import allowed, clouds, names, spec
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from spottrain.render import environment, helpers, identity, scheduling, shells

PODINFO_VOLUME = "spottrain-podinfo"

KEEP_AUTOSCALERS_OFF = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Against moves for cost alone; only on the pod do they have an effect."""


@dataclasses.dataclass(frozen=True)
class Mold:
    """What all workers of a job are made of: whose they are, the wishes, and the live Job."""

    job: identity.Identity
    wishes: spec.Spec
    job_uid: str
    template: cabc.Mapping[str, Any]
    settings: snap.Settings


def render(mold: Mold, overlay: actions.Overlay) -> dict[str, Any]:
    """The pod, named `<job>-<index>-<attempt>`, with its host name the same."""
    template = copy.deepcopy(dict(mold.template))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(mold, overlay, template),
        "spec": _spec(mold, overlay, template["spec"]),
    }


def _metadata(mold: Mold, overlay: actions.Overlay, template: dict[str, Any]) -> dict[str, Any]:
    job, given = mold.job.name, template.get("metadata") or {}
    annotations = {
        names.ANNOTATION_MAIN: template["spec"]["containers"][0]["name"],
        **_theirs(given.get("annotations") or {}),
        **KEEP_AUTOSCALERS_OFF,
        names.COMPLETION_INDEX: str(overlay.index),
        names.ANNOTATION_ATTEMPT_ID: overlay.attempt_id,
    }
    if overlay.go:
        annotations[names.ANNOTATION_GO] = overlay.attempt_id
    if mold.wishes.spot.pools and overlay.ask is not clouds.Ask.ON_DEMAND:
        annotations[names.ANNOTATION_POOLS] = allowed.digest(mold.wishes.spot.pools)
    return {
        "name": names.pod_name(job, overlay.index, overlay.attempt),
        "namespace": mold.job.namespace,
        "labels": {**(given.get("labels") or {}), **_labels(mold, overlay)},
        "annotations": annotations,
        "ownerReferences": [identity.owner("batch/v1", "Job", job, mold.job_uid)],
    }


def _theirs(annotations: cabc.Mapping[str, str]) -> dict[str, str]:
    """Those of the template without what only the operator says of a pod, and would read as its own words."""
    return {key: value for key, value in annotations.items() if not key.startswith(f"{names.GROUP}/")}


def _labels(mold: Mold, overlay: actions.Overlay) -> dict[str, str]:
    return {
        names.LABEL_JOB: mold.job.name,
        names.LABEL_INDEX: str(overlay.index),
        names.LABEL_ATTEMPT: str(overlay.attempt),
        names.LABEL_CAPACITY: str(overlay.ask),
        names.JOB_NAME_LABEL: mold.job.name,
        names.CONTROLLER_UID_LABEL: mold.job_uid,
        names.COMPLETION_INDEX: str(overlay.index),
    }


def _spec(mold: Mold, overlay: actions.Overlay, given: dict[str, Any]) -> dict[str, Any]:
    job, settings = mold.job.name, mold.settings
    pod = {
        **given,
        "restartPolicy": "Never",
        "hostname": names.pod_name(job, overlay.index, overlay.attempt),
        **({} if mold.wishes.independent else {"subdomain": job}),
        "terminationGracePeriodSeconds": overlay.grace,
        "tolerations": scheduling.tolerations(
            given.get("tolerations") or [],
            gpu=scheduling.asks_for_gpus(given),
            node_loss=settings.node_loss,
        ),
        "affinity": scheduling.affinity(given.get("affinity") or {}, overlay, settings, mold.wishes.spot),
        "volumes": [*(given.get("volumes") or ()), _podinfo_volume()],
    }
    entries = environment.render(mold.job, mold.wishes, overlay)
    if mold.wishes.checkpoint.directory:
        pod = helpers.add(pod, _main(mold, given), mold.wishes, overlay, settings.helper_image)
    for part in ("initContainers", "containers"):
        if part in pod:
            pod[part] = [_container(one, entries) for one in pod[part]]
    pod["containers"] = [{**one, **shells.stop_hook(one, given)} for one in pod["containers"]]
    if environment.tells_progress(mold.wishes, overlay):
        pod["containers"][0] = _with_port(pod["containers"][0], on_host=bool(given.get("hostNetwork")))
    if scheduling.home(overlay, mold.wishes.spot):
        return pod
    others = {names.LABEL_JOB: job}
    if not mold.wishes.independent:  # whose indexes have attempts of their own
        others[names.LABEL_ATTEMPT] = str(overlay.attempt)
    return scheduling.spread(pod, mold.wishes.spot.spread, others)


def _main(mold: Mold, given: dict[str, Any]) -> str:
    """The container that decides, by name: the annotated one, else the first."""
    annotated = (mold.template.get("metadata") or {}).get("annotations") or {}
    found = [str(one["name"]) for one in given["containers"]]
    return next((name for name in found if name == annotated.get(names.ANNOTATION_MAIN)), found[0])


def _container(given: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Ours come first and may be referred to; a name that the template sets itself is left to it."""
    own = given.get("env") or []
    taken = {one["name"] for one in own}
    ours = [*entries, *environment.processes(given)]
    mount = {"name": PODINFO_VOLUME, "mountPath": names.PODINFO_DIRECTORY, "readOnly": True}
    return {
        **given,
        "env": [*(one for one in ours if one["name"] not in taken), *own],
        "volumeMounts": [*(given.get("volumeMounts") or ()), mount],
    }


def _with_port(container: dict[str, Any], *, on_host: bool) -> dict[str, Any]:
    """Its port for metrics declared, so that Prometheus finds it, unless the template declares one like it.

    On the host's network it would be a hostPort too, and keep two workers off one node.
    """
    own = container.get("ports") or []
    ours = {"name": names.PROGRESS_PORT_NAME, "containerPort": names.PROGRESS_PORT}
    clash = any(port.get(key) == value for port in own for key, value in ours.items())
    return container if on_host or clash else {**container, "ports": [*own, ours]}


def _podinfo_volume() -> dict[str, Any]:
    """The pod's annotations as a file: a patch of one is there 0.2 s later, a fast channel to the worker."""
    item = {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}
    return {"name": PODINFO_VOLUME, "downwardAPI": {"items": [item]}}
