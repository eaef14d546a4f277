"""A job of ten thousand shards that each end at once, beside the stock Job controller's."""

import secrets
from collections.abc import Callable
from typing import Any

from bench import systems
from lab import clock, kwok
from lab.cluster import Lab

Object = dict[str, Any]
PARALLELISM = 100
PATIENCE = 1800.0
STOCK_SECONDS = 120.0
"""How long the stock controller is watched: at its default limits all of it would take half an hour."""


def template() -> Object:
    """As in the other benchmarks, and kwok ends each pod well as soon as it runs."""
    pod = systems.template()
    return {"metadata": {"annotations": dict(kwok.COMPLETES)}, **pod}


def ours(namespace: str, shards: int) -> tuple[str, Object]:
    """An Independent job, and the collection it goes into."""
    spec = {"mode": "Independent", "workers": shards, "parallelism": PARALLELISM, "template": template()}
    document = {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": "shards"},
        "spec": spec,
    }
    return f"/apis/spottrain.dev/v1alpha1/namespaces/{namespace}/spottrainingjobs", document


def stock(namespace: str, shards: int) -> tuple[str, Object]:
    """An Indexed Job of the stock controller with a budget for each index, and its collection."""
    spec = {
        "completions": shards,
        "parallelism": PARALLELISM,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 3,
        "template": template(),
    }
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "shards"}, "spec": spec}
    return f"/apis/batch/v1/namespaces/{namespace}/jobs", document


def rate(lab: Lab, make: Callable[[str, int], tuple[str, Object]], shards: int, seconds: float) -> float:
    """Shards that ended well per second: until all have, or for so many seconds."""
    namespace = f"shards-{secrets.token_hex(2)}"
    lab.kubectl("create", "namespace", namespace)
    lab.wait_namespace(namespace)
    collection, document = make(namespace, shards)
    began = clock.now()
    lab.api.call("POST", collection, document).expect("the job of shards")
    # Both write the batch/v1 Job's status, in which counts are the same field.
    job = f"/apis/batch/v1/namespaces/{namespace}/jobs/shards"

    def succeeded() -> int:
        answer = lab.api.get(job)
        return int((answer.body.get("status") or {}).get("succeeded") or 0) if answer.ok else 0

    clock.poll(lambda: succeeded() == shards, seconds=seconds, every=0.5)
    done, took = succeeded(), clock.now() - began
    lab.api.call("DELETE", f"{collection}/shards", {"propagationPolicy": "Background"}).expect("deleting it")
    lab.kubectl("delete", "namespace", namespace, "--timeout=900s")
    return done / took
