"""The cache of SpotTrainingJobs, filled by events, lists and our own writes in any order."""

from typing import Any

from spottrain.controller import reconciler

KEY = ("t", "tr")


def job(version: int, uid: str = "u1", name: str = "tr") -> dict[str, Any]:
    return {"metadata": {"namespace": "t", "name": name, "uid": uid, "resourceVersion": str(version)}}


def test_a_late_state_of_a_namesake_does_not_replace_the_job() -> None:
    """A list that was answered before the job was deleted and applied again."""
    jobs = reconciler.Jobs()
    jobs.put(job(20, uid="u2"))
    assert jobs.put(job(10, uid="u1")) is False
    assert jobs.get(KEY) == job(20, uid="u2")


def test_what_is_gone_is_not_brought_back_by_a_late_answer() -> None:
    jobs = reconciler.Jobs()
    jobs.put(job(10))
    jobs.remove(KEY, "u1")
    assert jobs.put(job(11)) is False
    assert jobs.get(KEY) is None


def test_a_job_that_was_made_while_a_list_was_under_way_stays() -> None:
    jobs = reconciler.Jobs()
    jobs.put(job(30))
    assert jobs.replace([], 29) == {KEY}
    assert jobs.get(KEY) == job(30)


def test_a_job_that_a_list_no_longer_has_is_gone_and_looked_at_once_more() -> None:
    jobs = reconciler.Jobs()
    jobs.put(job(10))
    other = job(15, uid="u2", name="other")
    assert jobs.replace([other], 20) == {KEY, ("t", "other")}
    assert jobs.get(KEY) is None
    assert jobs.get(("t", "other")) == other
