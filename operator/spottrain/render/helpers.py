"""The containers that keep checkpoints for a program that doesn't use the library.

An init container waits for `go` and brings the newest checkpoint into `spec.checkpoint.directory`; a native
sidecar stores what the program writes there, and its kubelet tells it to stop when the program has ended. In
a gang all workers get the checkpoint, and worker 0 is watched. Both have the credentials and volumes of the
program's container, and run as the same user, since they read and write the same files.
"""

import collections.abc as cabc
from typing import Any

from spottrain.api import names, spec
from spottrain.plan import actions, grace
from spottrain.render import environment

Object = dict[str, Any]

VOLUME = "spottrain-checkpoints"
COMMAND = ("/app/bin/python3", "-I", "-m", "spottrain.sidecar")
"""By its path and isolated: the program's PATH and PYTHONPATH are for another image."""
_FOREIGN = ("PATH", "PYTHON", "LD_", "NVIDIA_")
_SAME_USER = ("runAsUser", "runAsGroup", "runAsNonRoot", "seLinuxOptions", "seccompProfile")
_OWN_PART = {"cpu": "1", "memory": "1Gi"}
_LEAST_PART = {"cpu": "100m", "memory": "256Mi"}


def add(pod: Object, main: str, wishes: spec.Spec, overlay: actions.Overlay, image: str) -> Object:
    """The pod with them, after the template's own init containers; `main`: the program's container."""
    directory = wishes.checkpoint.directory
    trainer = next(one for one in pod["containers"] if one["name"] == main)
    if not any(_is_at(mount, directory) for mount in trainer.get("volumeMounts") or ()):
        mount = {"name": VOLUME, "mountPath": directory}
        trainer = {**trainer, "volumeMounts": [*(trainer.get("volumeMounts") or ()), mount]}
        pod = {**pod, "volumes": [*pod["volumes"], {"name": VOLUME, "emptyDir": {}}]}
    common = _like(trainer, pod, image)
    helpers = [_restore(common, trainer)]
    if wishes.independent or overlay.index == 0:
        helpers.append(_watch(common, trainer, wishes, overlay))
    containers = [trainer if one["name"] == main else one for one in pod["containers"]]
    return {
        **pod,
        "containers": containers,
        "initContainers": [*(pod.get("initContainers") or ()), *helpers],
    }


def _is_at(mount: cabc.Mapping[str, Any], directory: str) -> bool:
    return bool(mount["mountPath"].rstrip("/") == directory)


def _restore(common: Object, trainer: Object) -> Object:
    """It has the program's share of the machine, which nobody uses yet."""
    resources = trainer.get("resources") or {}
    share = {
        part: {key: one for key, one in (resources.get(part) or {}).items() if key in _OWN_PART}
        for part in ("requests", "limits")
    }
    return {
        **common,
        "name": names.CONTAINER_RESTORE,
        "command": [*COMMAND, "restore"],
        "resources": {part: amounts for part, amounts in share.items() if amounts},
    }


def _watch(common: Object, trainer: Object, wishes: spec.Spec, overlay: actions.Overlay) -> Object:
    """It is told how long its own part of the grace is, and answers in place of the program."""
    told = {"SPOTTRAIN_GRACE_SECONDS": str(grace.shares(overlay.grace)[1])}
    if environment.speaks(wishes, overlay):
        told["SPOTTRAIN_PROGRESS_PORT"] = str(names.PROGRESS_PORT)
    limits = (trainer.get("resources") or {}).get("limits") or {}
    # A pod is Guaranteed, with cores of its own, only while all its containers have both limits.
    guaranteed = limits.keys() >= _OWN_PART.keys()
    part = {"requests": _OWN_PART, "limits": _OWN_PART} if guaranteed else {"requests": _LEAST_PART}
    return {
        **common,
        "name": names.CONTAINER_WATCH,
        "command": [*COMMAND, "watch"],
        "restartPolicy": "Always",
        "env": [
            *(one for one in common["env"] if one["name"] not in told),
            *({"name": name, "value": value} for name, value in told.items()),
        ],
        "resources": part,
    }


def _like(trainer: Object, pod: Object, image: str) -> Object:
    """What both have of the program's container."""
    env = [one for one in trainer.get("env") or () if not one["name"].startswith(_FOREIGN)]
    mounts = [
        {key: value for key, value in one.items() if key != "mountPropagation"}
        for one in trainer.get("volumeMounts") or ()
    ]
    return {
        "image": image,
        "env": env,
        **({"envFrom": trainer["envFrom"]} if trainer.get("envFrom") else {}),
        "volumeMounts": mounts,
        "securityContext": _security(trainer.get("securityContext") or {}, pod.get("securityContext") or {}),
    }


def _security(container: Object, pod: Object) -> Object:
    """The program's user. Where only its image names one that is most often root, and root can do for any."""
    same = {key: container[key] for key in _SAME_USER if key in container}
    known = {**pod, **container}
    capabilities: Object = {"drop": ["ALL"]}
    if known.get("runAsUser") is None and not known.get("runAsNonRoot"):
        same |= {"runAsUser": 0}
        # To read the files of whatever user it is, and to link to them.
        capabilities["add"] = ["DAC_OVERRIDE", "FOWNER"]
    return {**same, "allowPrivilegeEscalation": False, "capabilities": capabilities}
