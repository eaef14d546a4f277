"""Each statement holds for a good ledger, and is seen not to for one in which it doesn't."""

from dataclasses import replace

import pytest

from chaos import checks, judge, modes
from chaos.facts import JobFacts, Told, Window, indexes
from chaos.ledger import Life, Line
from tests.unit.chaos import stories
from tests.unit.chaos.stories import FIRST, SECOND, good, with_lines, without


def wrong(job: JobFacts) -> dict[str, str]:
    """The first sentence for each statement that doesn't hold."""
    found: dict[str, str] = {}
    for name, text in judge.judge(job).wrong:
        found.setdefault(name, text)
    return found


def test_a_gang_that_loses_an_attempt_and_repeats_what_was_not_saved_is_as_it_must_be() -> None:
    assert wrong(good()) == {}
    assert judge.judge(good()).repeated == 4  # steps 4 and 5 of both workers


def test_a_job_that_has_not_ended_is_said_with_the_operators_words() -> None:
    job = replace(good(), told=(Told(1, "Pending", message="no node"),))
    assert wrong(job)["complete"] == "the job is Pending: no node"
    assert wrong(replace(job, told=()))["complete"] == "the job is not known to the operator"


def test_a_state_that_is_not_that_of_its_step_is_torn() -> None:
    torn = stories.line(120.35, "restored", 2, 0, step=3, digest=checks.digest(4))
    job = with_lines(without(good(), "restored", attempt=2, index=0), torn)
    assert "with a state that is not that of this step" in wrong(job)["states restored are whole"]
    said = stories.line(120.36, "torn", 2, 1, step=3, text="the state is that before step 5")
    assert wrong(with_lines(good(), said)) == {
        "states restored are whole": "worker 1 of attempt 2 restored step 3: the state is that before step 5"
    }


@pytest.mark.parametrize(
    ("lives", "found"),
    [
        ((Life(FIRST, 0, 2), Life(SECOND, 4, 9)), "0..2, 4..9"),
        ((Life(FIRST, 0, 4), Life(SECOND, 4, 9)), "0..4, 4..9"),
        ((), "none"),
    ],
)
def test_a_result_that_misses_a_step_or_counts_one_twice_is_found(
    lives: tuple[Life, ...], found: str
) -> None:
    job = with_lines(without(good(), "finished", index=1), stories.finished(128, 2, 1, *lives))
    statement = "each step counts once in the result"
    assert wrong(job)[statement] == (
        f"worker 1 of attempt 2 finished with a state of steps {found}, not 0..9"
    )


def test_a_result_may_count_only_what_was_done() -> None:
    job = without(good(), "done", attempt=1, index=1, step=2)
    assert wrong(job) == {
        "each step counts once in the result": (
            "worker 1 of attempt 2 counts step 2 as done by aaaa, which never did it"
        )
    }


def test_an_acknowledged_save_that_the_next_attempt_did_not_take_is_lost_work() -> None:
    job = with_lines(good(), stories.saved(106.5, 1, 5))
    assert wrong(job) == {
        "no committed work lost": "attempt 2 (claim 2) went on from step 3, but step 5 was committed by then"
    }


def test_a_fresh_start_over_a_save_is_lost_work() -> None:
    job = good()
    claims = {"": {1: job.claims[""][1], 2: stories.record(2, 2, 120.2)}}
    assert "went on from step -1, but step 3" in wrong(replace(job, claims=claims))["no committed work lost"]


def test_what_an_attempt_went_on_from_and_did_not_add_to_counts_for_the_next() -> None:
    """Claim 2 saves nothing: claim 3 owes it step 3 all the same."""
    job = good()
    claims = {"": {**job.claims[""], 3: stories.record(3, 2, 140.0, stories.parent(1))}}
    assert (
        "claim 3) went on from step 1, but step 9"
        in wrong(replace(job, claims=claims))["no committed work lost"]
    )
    job = without(job, "committed", attempt=2)
    assert (
        "claim 3) went on from step 1, but step 3"
        in wrong(replace(job, claims=claims))["no committed work lost"]
    )


def test_a_save_that_was_acknowledged_while_the_next_claim_was_made_is_nobodys_loss() -> None:
    """A writer that could not be reached; the claim was already looking."""
    assert wrong(with_lines(good(), stories.saved(120.25, 1, 5))) == {}


def test_following_a_save_past_the_fork_is_found() -> None:
    """Claim 3 takes what attempt 1 wrote after claim 2 had gone on from step 3."""
    job = good()
    claims = {"": {**job.claims[""], 3: stories.record(3, 2, 140.0, stories.parent(5))}}
    found = wrong(replace(job, claims=claims))["no stale writer followed"]
    assert found == "attempt 2 (claim 3) went on from 0000000005-aaaa-0, which is off the line of claim 2"
    missing = {"": {1: job.claims[""][1], 3: stories.record(3, 2, 140.0, stories.parent(3))}}
    assert (
        wrong(replace(job, claims=missing))["no stale writer followed"] == "claim 3 is there, claim 2 is not"
    )


def test_going_back_to_an_older_save_of_the_same_line_is_no_stale_writer() -> None:
    job = good()
    claims = {"": {**job.claims[""], 3: stories.record(3, 2, 140.0, stories.parent(2))}}
    assert "no stale writer followed" not in wrong(replace(job, claims=claims))


def test_a_step_done_twice_by_one_attempt_is_found() -> None:
    twice = stories.line(122.5, "done", 2, 0, step=5)
    assert wrong(with_lines(good(), twice)) == {
        "no step twice in one attempt": "worker 0 of attempt 2 did step 5 twice"
    }


def test_a_step_at_or_before_the_one_restored_is_found() -> None:
    again = stories.line(120.9, "done", 2, 0, step=3)
    assert wrong(with_lines(good(), again)) == {
        "no step twice in one attempt": "worker 0 of attempt 2 did step 3, having restored step 3"
    }


def test_two_processes_of_one_worker_of_one_attempt_are_found() -> None:
    other = stories.line(122.5, "restored", 2, 0, step=3, digest=checks.digest(3))
    found = wrong(with_lines(good(), other))["no step twice in one attempt"]
    assert found == "worker 0 of attempt 2 restored twice: two processes were the same worker"


def test_counts_that_go_down_are_found() -> None:
    job = good()
    told = (*job.told[:-1], stories.status(129, 1, reclaims=1), *job.told[-1:])
    assert wrong(replace(job, told=told))["counts only go up"] == "status.attempt went from 2 to 1"
    told = (*job.told[:-1], stories.status(129, 2), *job.told[-1:])
    assert wrong(replace(job, told=told)) == {"counts only go up": "status.reclaims went from 1 to 0"}


def test_one_number_for_two_attempts_is_found() -> None:
    other = replace(good().lines[-1], event="started", attempt_id="cccc", at=119.0)
    assert wrong(with_lines(good(), other)) == {
        "each number is one attempt": "attempt 2 is both bbbb and cccc"
    }


def test_claims_out_of_order_are_found() -> None:
    job = good()
    claims = {
        "": {**job.claims[""], 3: replace(stories.record(3, 1, 121.0), parent=stories.parent(9, 2, SECOND))}
    }
    assert wrong(replace(job, claims=claims))["claims follow the attempts"] == (
        "claims were made by attempts 1, 2, 1, in this order"
    )


def test_a_charged_failure_is_found_though_it_was_taken_back() -> None:
    job = good()
    told = (*job.told[:2], stories.status(115, 2, reclaims=1, failures=1), *job.told[2:])
    assert wrong(replace(job, told=told))["no failure charged"].startswith("1 failures were charged")


def test_a_worker_that_starts_after_the_end_is_found() -> None:
    late = stories.line(133, "started", 2, 1)
    assert wrong(with_lines(good(), late)) == {
        "a complete job stays so": "worker 1 of attempt 2 was started 3.0 s after the job was complete"
    }


def test_a_complete_job_that_becomes_something_else_is_found() -> None:
    job = good()
    told = (
        *job.told,
        stories.status(131, 2, "Restarting", reclaims=1),
        stories.status(132, 2, "Complete", reclaims=1),
    )
    assert wrong(replace(job, told=told)) == {
        "a complete job stays so": "the job was complete, and then Restarting"
    }


def test_a_job_that_was_deleted_need_not_be_complete_and_starts_nothing_any_more() -> None:
    job = replace(good(), told=good().told[:-1], cancelled_at=115)
    assert wrong(job) == {}
    job = replace(job, cancelled_at=99)
    assert wrong(job) == {
        "a deleted job starts nothing": "worker 0 of attempt 2 was started 21.0 s after the job was deleted"
    }


# Gang


def test_a_gang_is_complete_only_when_every_member_of_the_attempt_finished() -> None:
    job = without(good(), "finished", index=1)
    assert wrong(job) == {
        "all finish in one attempt": "the job is complete, and workers [1] of attempt 2 never finished"
    }


def straggler() -> Line:
    return stories.line(122, "done", 1, 1, step=6, node="spot-1")


def test_a_worker_that_works_on_beside_the_next_attempt_is_found() -> None:
    assert wrong(with_lines(good(), straggler())) == {
        "one attempt at a time": (
            "worker 1 of attempt 1 on spot-1 did step 6 1.7 s after a later attempt had begun"
        )
    }


def test_a_worker_on_a_node_that_was_cut_off_may_work_on() -> None:
    job = with_lines(good(), straggler())
    assert wrong(replace(job, cut=(Window("spot-1", 110, 125),))) == {}
    assert set(wrong(replace(job, cut=(Window("spot-2", 110, 125),)))) == {"one attempt at a time"}
    assert set(wrong(replace(job, cut=(Window("spot-1", 100, 105),)))) == {"one attempt at a time"}


# Independent


def shards() -> JobFacts:
    """Index 0 takes two attempts, index 1 one."""
    lines = [
        *stories.begun(100, 1, 0, -1),
        *stories.worked(101, 1, 0, range(6)),
        stories.saved(104.5, 1, 3),
        *stories.begun(120, 2, 0, 3),
        *stories.worked(121, 2, 0, range(4, 10)),
        stories.saved(127, 2, 9),
        stories.finished(128, 2, 0, Life(FIRST, 0, 3), Life(SECOND, 4, 9)),
        *stories.begun(100, 1, 1, -1),
        *stories.worked(101, 1, 1, range(10)),
        replace(stories.saved(112, 1, 9), index=1),
        stories.finished(113, 1, 1, Life(FIRST, 0, 9)),
    ]
    return JobFacts(
        name="shards-1",
        mode="Independent",
        workers=2,
        steps=stories.STEPS,
        lines=tuple(sorted(lines, key=lambda one: one.at)),
        claims={
            "0": {1: stories.record(1, 1, 100.2), 2: stories.record(2, 2, 120.2, stories.parent(3))},
            "1": {1: stories.record(1, 1, 100.2)},
        },
        told=(
            Told(100, "Running"),
            Told(114, "Running", completed=frozenset({1})),
            Told(130, "Complete", completed=frozenset({0, 1})),
        ),
    )


def test_shards_of_which_one_is_done_in_two_lives_are_as_they_must_be() -> None:
    assert wrong(shards()) == {}


def test_each_index_has_a_lineage_of_its_own() -> None:
    """What index 1 saved is nothing that index 0 could have lost."""
    job = with_lines(shards(), replace(stories.saved(119, 1, 8), index=1))
    assert wrong(job) == {}
    assert set(wrong(with_lines(shards(), stories.saved(119, 1, 5)))) == {"no committed work lost"}


def test_an_index_that_never_finished_is_found() -> None:
    job = without(shards(), "finished", index=1)
    assert wrong(job) == {"all indexes finish": "the job is complete, and indexes [1] never finished"}


def test_an_index_recorded_as_finished_that_starts_again_is_found() -> None:
    late = stories.line(115, "started", 2, 1)
    assert wrong(with_lines(shards(), late)) == {
        "a finished index never runs again": "index 1 was started again after it was recorded as finished"
    }


def test_an_index_that_ended_unseen_may_start_again_and_must_find_its_work_done() -> None:
    job = with_lines(shards(), stories.line(113.5, "started", 2, 1))
    assert wrong(job) == {}
    job = with_lines(job, stories.line(113.8, "done", 2, 1, step=9))
    assert wrong(job) == {"a finished index never runs again": "index 1 did step 9 after it had finished"}


def test_an_index_that_works_on_beside_its_own_next_attempt_is_found() -> None:
    """Index 1 may work while index 0 is begun again; index 0 itself may not."""
    late = stories.line(122, "done", 1, 0, step=6, node="spot-1")
    found = wrong(with_lines(shards(), late))["one attempt at a time"]
    assert found == ("worker 0 of attempt 1 on spot-1 did step 6 1.7 s after a later attempt had begun")
    assert wrong(replace(with_lines(shards(), late), cut=(Window("spot-1", 110, 125),))) == {}


def test_indexes_count_their_attempts_by_themselves() -> None:
    job = shards()
    lines = tuple(replace(line, attempt_id=f"{line.attempt_id}{line.index}") for line in job.lines)
    assert "each number is one attempt" not in wrong(replace(job, lines=lines))
    other = replace(stories.line(99, "started", 2, 0), attempt_id="cccc")
    found = wrong(with_lines(job, other))
    assert found == {"each number is one attempt": "index 0: attempt 2 is both cccc and bbbb"}


def test_completed_indexes_are_read_as_kubernetes_writes_them() -> None:
    assert indexes("0,3-5") == {0, 3, 4, 5}
    assert indexes("") == frozenset()


def test_every_mode_has_the_common_statements_and_its_own() -> None:
    for mode, own in modes.MODES.items():
        assert modes.of(mode) == (*checks.COMMON, *own)
