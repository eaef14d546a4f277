"""`list` and `describe`: lines for people and values for programs."""

import datetime as dt
import json

from spottrain.cli import history, listing, paint, story, words
from tests.unit.cli import real


def test_the_list_has_the_columns_that_people_know():
    head, row = listing.lines([real.told()], real.NOW)

    assert head.text.split() == [
        *("NAME", "PHASE", "WALL", "USEFUL", "RECLAIMS", "FAILURES"),
        *("PROGRESS", "WORKERS", "SPOT/OD", "CHECKPOINT"),
    ]
    assert row.text.split() == ["digits", "Complete", "1m38s", "1m20s", "2", "0", "299", "0/3", "0/0", "-"]
    assert row.tone == "good"


def test_progress_age_and_savings_are_shown_where_they_are_known():
    known = real.told(
        progress={"step": 149, "total": 300},
        checkpoint={"step": 140, "time": "2026-11-29T21:10:05Z"},
        cost={"saved": "12.40"},
    )

    head, row = listing.lines([known], real.NOW, everywhere=True)

    assert head.text.split()[0] == "NAMESPACE"
    assert head.text.split()[-1] == "SAVED"
    assert row.text.split()[7:9] == ["149/300", "(50%)"]
    assert row.text.split()[-2:] == ["44s", "12.40"]


def test_useful_time_of_which_a_part_is_forgotten_is_at_least_that():
    attempts = real.digits()[0]["status"]["attempts"]

    assert listing.useful(real.told(attempts=attempts[1:]), real.NOW) == "1m+"


def test_an_independent_jobs_progress_is_its_finished_indexes():
    job = real.job(completedIndexes="0-9", workers={"succeeded": 10, "indexes": 40}, attempts=[])
    job["spec"] |= {"mode": "Independent", "workers": 40}

    assert listing.progress(history.tell(job)) == "10/40"


def test_the_story_tells_each_attempt_with_its_cause_steps_and_nodes():
    nodes = {
        "od-1": {
            "metadata": {
                "labels": {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "zone-a"}
            },
            "spec": {},
        }
    }
    text = [line.text for line in story.lines(real.told(), nodes, [], real.NOW)]

    start = text.index("  2  2026-11-29T20:59:33Z  all ran after 4s, for 21s")
    assert text[start + 1 : start + 5] == [
        "     ended: Reclaimed (NodeLost): node spot-3 is silent",
        "     steps 64..126, saved step 104, the next one went on at step 105, 22 steps were done again",
        "     worker 0: digits-0-2 on od-1 (on-demand, zone-a): exited 1",
        "     worker 1: digits-1-2 on spot-1: exited 1",
    ]
    assert "     its pods are gone: only those of the last two attempts stay" in text


def test_a_failed_workers_log_is_shown_below_its_cause():
    attempts = real.digits()[0]["status"]["attempts"]
    attempts[1] |= {
        "cause": "Failed",
        "reason": "Error",
        "detail": "digits-1-1 exited 1\nTraceback\nKeyError",
    }

    lines = list(story.lines(real.told(attempts=attempts), {}, [], real.NOW))

    place = [line.text for line in lines].index("     ended: Failed (Error) on spot-2: digits-1-1 exited 1")
    assert lines[place].tone == "bad"
    assert [line.text for line in lines[place + 1 : place + 3]] == ["       Traceback", "       KeyError"]


def test_a_job_that_nobody_has_seen_says_what_to_look_for():
    job, _ = real.digits()
    del job["status"]

    text = [line.text for line in story.lines(history.tell(job), {}, [], real.NOW)]

    assert "  the operator has not seen it yet: is it running, and does it watch this namespace?" in text


def test_the_ledger_is_told_when_it_is_there():
    cost = {"onDemandHours": 10.5, "usefulHours": 9, "lostHours": 0, "cost": "11.55"}

    found = dict(story.facts(real.told(cost=cost), real.NOW))

    assert (found["On demand"], found["Useful"]) == ("10.5 worker-hours", "9 worker-hours")
    assert (found["Cost"], "Lost" in found) == ("11.55", False)


def test_a_story_for_programs_is_json():
    value = json.loads(words.as_json(story.plain(real.told(), {}, [], real.NOW)))

    assert [one["lostSteps"] for one in value["attempts"]] == [None, 22, None]
    assert value["attempts"][0]["start"] == "2026-11-29T20:59:11Z"


def test_colours_are_for_terminals_and_for_those_who_want_them():
    class Stream:
        def __init__(self, *, terminal: bool) -> None:
            self.isatty = lambda: terminal

    assert paint.colourful(Stream(terminal=True), {})  # type: ignore[arg-type]
    assert not paint.colourful(Stream(terminal=False), {})  # type: ignore[arg-type]
    assert not paint.colourful(Stream(terminal=True), {"NO_COLOR": "1"})  # type: ignore[arg-type]
    assert not paint.colourful(Stream(terminal=True), {"TERM": "dumb"})  # type: ignore[arg-type]
    assert paint.painted(paint.Line("x", "bad"), colours=True) == "\x1b[31mx\x1b[0m"
    assert paint.painted(paint.Line("x", "bad"), colours=False) == "x"


def test_what_a_program_wrote_does_not_steer_the_terminal():
    assert paint.painted(paint.Line("\x1b[2Jgone\ta\x07"), colours=True) == "\ufffd[2Jgone\ta\ufffd"


def test_spans_have_two_units():
    spans = {0.2: "0s", 28.4: "28s", 250: "4m10s", 3600: "1h", 11520: "3h12m", 442800: "5d3h"}

    assert {seconds: words.span(seconds) for seconds in spans} == spans


def test_events_are_in_the_order_in_which_they_came():
    def event(second: int, **more: str) -> real.Object:
        when = dt.datetime(2026, 11, 29, 21, 0, second, tzinfo=dt.UTC).isoformat()
        return {"metadata": {}, "lastTimestamp": when, "reason": f"R{second}", **more}

    found = story.in_order([event(5), event(1), event(3)])

    assert [one["reason"] for one in found] == ["R1", "R3", "R5"]
