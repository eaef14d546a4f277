"""Our batch/v1 Job: Indexed, managed by us, created suspended."""

import copy
import hashlib
import json
from typing import Any

from spottrain.api import names, spec
from spottrain.render import identity


def template_hash(wishes: spec.Spec) -> str:
    """Digest of what can't be changed in a started Job: an edit of it means a new Job."""
    directory = {"directory": wishes.checkpoint.directory} if wishes.checkpoint.directory else {}
    whole = {"workers": wishes.workers, "template": wishes.template, **directory}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def render(job: identity.Identity, wishes: spec.Spec, labels: dict[str, str]) -> dict[str, Any]:
    """The Job. Pods are made of its live template, so that a queue's changes to it count.

    The limits of failures are inert: kube-controller-manager leaves a managed Job alone. Without one for
    each index the API server takes no `failedIndexes`. `labels` are the resource's own (a queue's name among
    them).
    """
    template = copy.deepcopy(dict(wishes.template))
    metadata = template.setdefault("metadata", {})
    metadata.setdefault("labels", {})[names.LABEL_JOB] = job.name
    template["spec"]["restartPolicy"] = "Never"
    each = {"backoffLimitPerIndex": 2**31 - 1} if wishes.independent else {}
    queue = {key: labels[key] for key in (names.KUEUE_QUEUE_LABEL,) if key in labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": {names.LABEL_JOB: job.name, **queue},
            "annotations": {names.ANNOTATION_TEMPLATE_HASH: template_hash(wishes)},
            "ownerReferences": [job.owner()],
        },
        "spec": {
            "managedBy": names.MANAGED_BY,
            "completionMode": "Indexed",
            "completions": wishes.workers,
            "parallelism": wishes.at_once,
            "backoffLimit": 2**31 - 1,
            **each,
            "suspend": True,
            "template": template,
        },
    }
