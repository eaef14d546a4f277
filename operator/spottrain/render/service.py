"""The headless Service that gives each worker the name `<pod>.<job>`."""

from typing import Any

from spottrain.api import names
from spottrain.render import identity


def render(job: identity.Identity) -> dict[str, Any]:
    """Static selector; not-ready addresses are published, since workers meet before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": {names.LABEL_JOB: job.name},
            "ownerReferences": [job.owner()],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {names.LABEL_JOB: job.name},
            "publishNotReadyAddresses": True,
            "ports": [{"name": "rendezvous", "port": names.RENDEZVOUS_PORT, "protocol": "TCP"}],
        },
    }
