"""Caches of pods and nodes that snapshots are taken from."""

from typing import Any

from spottrain.kube import observe

KEY = ("t", "tr")


def pod(attempt: int, index: int = 0, uid: str = "") -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"tr-{index}-{attempt}",
            "namespace": "t",
            "uid": uid or f"p-{index}-{attempt}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "spottrain.dev/job": "tr",
                "spottrain.dev/index": str(index),
                "spottrain.dev/attempt": str(attempt),
            },
            "ownerReferences": [{"controller": True, "uid": "j1"}],
        },
        "spec": {"nodeName": "n1"},
    }


def test_a_pod_that_went_is_remembered_as_it_was_last_seen() -> None:
    pods = observe.Pods()
    assert pods.put(pod(1), gone=False) == KEY
    pods.put(pod(1), gone=True)
    assert pods.present(KEY, "j1") == ()
    assert [one.name for one in pods.departed(KEY, "j1")] == ["tr-0-1"]


def test_pods_of_another_owner_are_not_the_jobs() -> None:
    """A deleted and re-applied job of the same name has another Job."""
    pods = observe.Pods()
    pods.put(pod(1), gone=False)
    assert pods.present(KEY, "j2") == ()


def test_departed_pods_are_kept_for_two_attempts_only() -> None:
    pods = observe.Pods()
    for attempt in range(1, 30):
        for index in range(3):
            pods.put(pod(attempt, index), gone=True)
    assert {one.attempt for one in pods.departed(KEY, "j1")} == {28, 29}


def test_jobs_are_found_by_the_nodes_of_their_pods() -> None:
    pods = observe.Pods()
    pods.put(pod(1), gone=False)
    assert pods.jobs_on("n1") == [KEY]
    assert pods.jobs_on("n2") == []
    assert pods.nodes_of(KEY) == {"n1"}
