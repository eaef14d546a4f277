"""The life of a job, from what the API server really returned."""

import copy

import pytest

from spottrain.cli import history
from tests.unit.cli import real


def test_each_attempt_has_how_it_ended_and_what_its_workers_said_of_their_steps():
    first, second, third = real.told().lives

    assert [first.outcome, second.outcome, third.outcome] == ["Reclaimed", "Reclaimed", "Complete"]
    assert first.ending == "Reclaimed (Evicted) on spot-2: digits-1-1: EvictionByEvictionAPI"
    assert second.ending == "Reclaimed (NodeLost): node spot-3 is silent"
    assert third.ending == "Complete: all 3 workers of attempt 3 finished"
    assert (first.steps, second.steps, third.steps) == ("", "64..126", "105..299")
    assert (second.saved, second.onward, second.lost) == (104, 105, 22)


def test_what_nobody_is_left_to_tell_is_unknown():
    first, _, third = real.told().lives

    assert (first.workers, first.step, first.lost, first.onward) == ((), None, None, 64)
    assert (third.lost, third.onward) == (None, None)


def test_what_workers_told_the_operator_is_known_when_their_pods_are_gone():
    attempts = real.digits()[0]["status"]["attempts"]
    for attempt, (first, last) in zip(attempts, ((0, 69), (64, 126), (105, 299)), strict=True):
        attempt |= {"resumeStep": first, "lastStep": last}

    lives = history.tell(real.job(attempts=attempts)).lives

    assert [life.steps for life in lives] == ["0..69", "64..126", "105..299"]
    assert [life.lost for life in lives] == [6, 22, None]


def test_a_new_attempt_that_has_told_nothing_has_not_done_the_steps_of_the_one_before():
    job, _ = real.digits()
    job["status"] |= {"phase": "Restarting", "progress": {"step": 126}}

    assert history.tell(job).lives[-1].steps == ""


def test_an_attempt_waits_for_its_workers_and_then_runs():
    assert [life.seconds(real.NOW) for life in real.told().lives] == [(2, 20), (4, 21), (12, 39)]


def test_useful_is_the_time_in_which_all_ran_and_wall_all_of_it():
    one = real.told()

    assert (one.useful(real.NOW), one.wall(real.NOW)) == (80, 98)


def test_a_job_that_runs_counts_until_now():
    running = real.told(phase="Running", completionTime=None)

    assert running.wall(real.NOW) == 698
    assert running.lives[-1].ending == ""
    assert running.lives[-1].seconds(real.NOW) == (12, 639)


def test_a_job_that_the_operator_has_not_seen_yet_has_a_history_too():
    job, _ = real.digits()
    del job["status"]

    one = history.tell(job)

    assert (one.status.phase, one.lives, one.whole) == ("Pending", (), True)


def test_a_namesakes_pod_is_none_of_the_attempts():
    job, pods = real.digits()
    pods = copy.deepcopy(pods)
    pods[0]["metadata"]["annotations"]["spottrain.dev/attempt-id"] = "another"

    assert len(history.tell(job, pods).lives[1].workers) == 1


@pytest.mark.parametrize(
    "message", ["", "killed", "[1]", '{"spottrain": 2}', '{"spottrain": 1, "step": "many"}']
)
def test_any_last_word_of_a_program_is_taken(message: str):
    job, pods = real.digits()
    pods = copy.deepcopy(pods)
    for pod in pods:
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = message

    assert [life.step for life in history.tell(job, pods).lives] == [None, None, None]


def test_a_worker_that_was_stopped_before_it_restored_says_nothing_of_steps():
    job, pods = real.digits()
    pods = copy.deepcopy(pods)
    for pod in pods:
        if pod["metadata"]["labels"]["spottrain.dev/attempt"] == "3":
            word = '{"spottrain": 1, "state": "preempted", "step": null, "resumedFrom": null}'
            pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = word

    lives = history.tell(job, pods).lives

    assert (lives[1].step, lives[1].onward, lives[1].lost) == (126, None, None)


def test_a_suspended_job_does_not_go_on():
    said = {
        "type": "Suspended",
        "status": "True",
        "reason": "SuspendedBySpec",
        "message": "spec.suspend is set",
        "lastTransitionTime": "2026-11-29T21:05:00Z",
    }

    lives = real.told(phase="Suspended", completionTime=None, conditions=[said]).lives

    assert lives[-1].ending == "Suspended: spec.suspend is set"


def test_attempts_that_are_no_longer_known_make_it_less_than_whole():
    attempts = real.digits()[0]["status"]["attempts"]

    assert not real.told(attempts=attempts[1:]).whole
    assert real.told(attempts=attempts[1:], cost={"usefulHours": 1}).whole


def test_with_a_ledger_useful_is_the_time_of_all_workers_whose_work_is_kept():
    one = real.told(cost={"usefulHours": 1.5, "ledger": {"accounts": []}})

    assert (one.useful(real.NOW), one.cost) == (1800, {"usefulHours": 1.5})


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Pending"}, "pending"),
        (
            {"containerStatuses": [{"name": "train", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "waiting (ImagePullBackOff)",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "train", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
                ]
            },
            "exited 137 (OOMKilled)",
        ),
        (
            {
                "phase": "Running",
                "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
                ],
            },
            "running, EvictionByEvictionAPI",
        ),
    ],
    ids=["pending", "waiting", "killed", "evicted"],
)
def test_a_pods_state_is_in_the_words_of_its_deciding_container(status: real.Object, words: str):
    job, pods = real.digits()
    pod = {**pods[0], "status": status}

    assert history.tell(job, [pod]).pods[0].state == words
