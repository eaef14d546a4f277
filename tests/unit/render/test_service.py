"""The Service behind the workers' names."""

import dataclasses

from spottrain.api import spec
from spottrain.render import identity, service

JOB = identity.Identity("ns", "tr", "u1")
WISHES = spec.Spec(workers=3, template={}, checkpoint=spec.Checkpoint("s3://b/p"))


def test_only_worker_0_is_behind_the_service() -> None:
    """All workers' addresses would be written anew each time one of them changes."""
    selector = service.render(JOB, WISHES)["spec"]["selector"]
    assert selector == {"spottrain.dev/job": "tr", "spottrain.dev/index": "0"}


def test_all_workers_are_when_the_job_wants_names_for_them() -> None:
    wishes = dataclasses.replace(WISHES, worker_hostnames=True)
    assert service.render(JOB, wishes)["spec"]["selector"] == {"spottrain.dev/job": "tr"}


def test_workers_meet_before_they_are_ready() -> None:
    wanted = service.render(JOB, WISHES)["spec"]
    assert (wanted["clusterIP"], wanted["publishNotReadyAddresses"]) == ("None", True)
