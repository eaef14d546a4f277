"""The headless Service that gives worker 0, or each worker, the name `<pod>.<job>`."""

from typing import Any

from spottrain.api import names, spec
from spottrain.render import identity


def render(job: identity.Identity, wishes: spec.Spec) -> dict[str, Any]:
    """Static selector; not-ready addresses are published, since workers meet before they are ready.

    The control plane writes all addresses anew whenever one of the pods behind it changes: decision 8.
    """
    selector = {names.LABEL_JOB: job.name}
    if not wishes.worker_hostnames:
        selector[names.LABEL_INDEX] = "0"
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
            "selector": selector,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "rendezvous", "port": names.RENDEZVOUS_PORT, "protocol": "TCP"}],
        },
    }
