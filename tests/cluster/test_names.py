"""Objects of the job's name that are not the job's: a namesake's that is about to go, and strangers'."""

from lab.api import Api
from tests.cluster import play


def test_a_job_applied_again_at_once_gets_a_service_of_its_own(job: play.Job, api: Api) -> None:
    """Garbage collection may take the namesake's Service after the new Job is there."""
    service = f"/api/v1/namespaces/{job.namespace}/services/tr"
    with play.machines(api, {"name": "again-1", "labels": play.SPOT}):
        for _ in range(4):
            job.applied(play.manifest(workers=2))
            job.wait_running(1)
            found = api.call("GET", service, None).expect("the Service")
            resource = job.get()
            assert found["metadata"]["ownerReferences"][0]["uid"] == resource["metadata"]["uid"]
            path = f"/apis/spottrain.dev/v1alpha1/namespaces/{job.namespace}/spottrainingjobs/tr"
            api.call("DELETE", path, None).expect("deleting the job")


def test_a_strangers_job_is_a_conflict_until_it_is_gone(job: play.Job, api: Api) -> None:
    """It doesn't carry our label, so that no watch of ours tells of its end."""
    jobs = f"/apis/batch/v1/namespaces/{job.namespace}/jobs"
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    stranger = {"metadata": {"name": "tr"}, "spec": {"suspend": True, "template": {"spec": pod}}}
    with play.machines(api, {"name": "stranger-1", "labels": play.SPOT}):
        api.call("POST", jobs, stranger).expect("the stranger's Job")
        job.applied(play.manifest(workers=1))
        job.wait("the conflict", lambda: job.condition("Accepted").get("reason") == "NameConflict")
        api.call("DELETE", f"{jobs}/tr", {"propagationPolicy": "Background"}).expect("deleting it")
        job.wait_running(1, seconds=70)
        assert job.condition("Accepted")["status"] == "True"
