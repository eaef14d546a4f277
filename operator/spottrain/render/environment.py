"""The environment of a worker: our contract, and torchrun's, so that it needs no arguments."""

import collections.abc as cabc
from typing import Any

from spottrain.api import names, spec
from spottrain.plan import actions
from spottrain.plan import grace as shares
from spottrain.render import identity


def render(job: identity.Identity, wishes: spec.Spec, overlay: actions.Overlay) -> list[dict[str, Any]]:
    """Entries for every container. All values are text; the rendezvous is unique per attempt.

    What is empty is left out, and what says no more than the default of the library or of torchrun, which
    leaves it to the program: the API server keeps an account of each entry, on each write of the pod.
    """
    checkpoint = wishes.checkpoint
    grace = shares.shares(overlay.grace)[0] if checkpoint.directory else overlay.grace
    values = {
        "SPOTTRAIN_JOB": job.name,
        "SPOTTRAIN_NAMESPACE": job.namespace,
        "SPOTTRAIN_JOB_UID": job.uid,
        "SPOTTRAIN_INDEX": overlay.index,
        "SPOTTRAIN_WORKERS": wishes.workers,
        "SPOTTRAIN_ATTEMPT": overlay.attempt,
        "SPOTTRAIN_ATTEMPT_ID": overlay.attempt_id,
        "SPOTTRAIN_MODE": wishes.mode if wishes.independent else "",
        "SPOTTRAIN_CHECKPOINT_URI": _uri(wishes, overlay.index),
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": checkpoint.endpoint,
        "SPOTTRAIN_CHECKPOINT_REGION": checkpoint.region,
        "SPOTTRAIN_CHECKPOINT_KEEP": _unless(checkpoint.keep, spec.Checkpoint.keep),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": "" if checkpoint.interval is None else f"{checkpoint.interval:g}",
        "SPOTTRAIN_RESTORE": checkpoint.restore,
        "SPOTTRAIN_RESTORE_STEP": "" if checkpoint.step is None else checkpoint.step,
        "SPOTTRAIN_ON_BROKEN": _unless(checkpoint.on_broken, spec.Checkpoint.on_broken),
        "SPOTTRAIN_CHECKPOINT_DIRECTORY": checkpoint.directory,
        "SPOTTRAIN_GRACE_SECONDS": grace,
        "SPOTTRAIN_GO_FILE": names.PODINFO_FILE,
        "JOB_COMPLETION_INDEX": overlay.index,
        "SPOTTRAIN_PROGRESS_PORT": names.PROGRESS_PORT if tells_progress(wishes, overlay) else "",
        **(ALONE if wishes.independent else _rendezvous(job, wishes, overlay)),
        # How long torchrun leaves its workers after SIGTERM; its default wastes longer windows,
        # and leaves a sidecar nothing of shorter ones.
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": grace if checkpoint.directory or grace > TORCHRUN_SHUTDOWN else "",
    }
    return [{"name": name, "value": str(value)} for name, value in values.items() if value != ""]


TORCHRUN_SHUTDOWN = 30
"""Seconds that torchrun leaves its workers after SIGTERM unless it is told (torch/distributed/elastic)."""
ALONE = {"PET_STANDALONE": 1}
"""Each pod is a world of its own: torchrun meets nobody, on a free port (two may share a host's network)."""


def _rendezvous(job: identity.Identity, wishes: spec.Spec, overlay: actions.Overlay) -> dict[str, str | int]:
    """Where torchrun's agents meet: at the first worker of the attempt."""
    first = names.pod_name(job.name, 0, overlay.attempt)
    return {
        "PET_NNODES": wishes.workers,
        "PET_NODE_RANK": overlay.index,
        "PET_MASTER_ADDR": f"{first}.{job.name}",
        "PET_MASTER_PORT": names.RENDEZVOUS_PORT,
        "PET_RDZV_ID": overlay.attempt_id,
    }


def tells_progress(wishes: spec.Spec, overlay: actions.Overlay) -> bool:
    """The program itself does; beside one that doesn't use the library its sidecar answers."""
    return speaks(wishes, overlay) and not wishes.checkpoint.directory


def speaks(wishes: spec.Spec, overlay: actions.Overlay) -> bool:
    """Worker 0 does, for its gang."""
    return not wishes.independent and overlay.index == 0


def _unless(value: int | str, default: int | str) -> int | str:
    """Nothing where the library would take the same."""
    return "" if value == default else value


def _uri(wishes: spec.Spec, index: int) -> str:
    """The place of this worker's checkpoints: of the whole gang's, or of the index's own."""
    uri = wishes.checkpoint.uri
    return f"{uri.rstrip('/')}/{index}" if uri and wishes.independent else uri


def processes(container: cabc.Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many processes torchrun starts in it: one for each GPU asked for; its own default is one."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    gpus = sum(int(asked[name]) for name in names.GPU_RESOURCES if str(asked.get(name, "")).isdecimal())
    return [{"name": "PET_NPROC_PER_NODE", "value": str(gpus)}] if gpus > 1 else []
