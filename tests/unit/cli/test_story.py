"""`list` and `describe`: lines for people and values for programs."""

import datetime as dt
import json
from pathlib import Path

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
    assert "     its pods are gone: stopped ones are removed, others stay for two attempts" in text


def test_a_failed_workers_log_is_shown_once_and_at_its_own_attempt():
    text = [line.text for line in story.lines(real.given_up(), {}, [], real.NOW)]

    start = text.index("     ended: Failed (Error) on spot-3: digits-1-2 exited 1 (Error)")
    assert text[start + 1 : start + 4] == [
        "       end of the log of digits-1-2:",
        "       Traceback",
        "       KeyError: 'lr'",
    ]
    assert f"  Failed  True     {real.SAID} (TooManyFailures)" in text
    assert [line.strip() for line in text].count("KeyError: 'lr'") == 1


def test_an_attempt_that_the_end_came_before_had_no_pods_and_none_are_gone():
    text = [line.text for line in story.lines(real.given_up(), {}, [], real.NOW)]

    start = text.index("  3  2026-11-29T20:59:58Z  waited 51s, and never had all workers")
    assert text[start + 1 : start + 3] == [
        f"     ended: Failed: {real.SAID} (before this attempt had pods)",
        "",
    ]


def test_an_attempt_that_waits_for_its_pods_says_so():
    waiting = real.given_up(
        phase="Restarting", conditions=[], completionTime=None, nextRetryTime="2026-11-29T21:11:00Z"
    )

    text = [line.text for line in story.lines(waiting, {}, [], real.NOW)]

    start = text.index("  3  2026-11-29T20:59:58Z  has waited 10m51s for its workers")
    assert text[start + 1 : start + 3] == ["     it has no pods yet", ""]


def test_an_independent_jobs_log_is_indented_below_its_condition():
    job = real.job(conditions=[real.GIVEN_UP], attempts=[], phase="Failed")
    job["spec"] |= {"mode": "Independent"}

    text = [line.text for line in story.lines(history.tell(job), {}, [], real.NOW)]

    start = text.index(f"  Failed  True     {real.SAID} (TooManyFailures)")
    assert text[start + 1 : start + 4] == [
        "    end of the log of digits-1-2:",
        "    Traceback",
        "    KeyError: 'lr'",
    ]


def test_progress_is_of_the_moment_at_which_it_was_told():
    told = {"step": 149, "total": 300, "time": "2026-11-29T21:10:09Z"}
    running = real.told(phase="Running", completionTime=None, progress=told)

    assert dict(story.facts(running, real.NOW))["Step"] == "149/300 (50%) (as of 40s ago)"
    assert dict(story.facts(real.told(progress=told), real.NOW))["Step"] == "149/300 (50%)"


def test_a_status_that_nobody_keeps_any_more_says_so():
    line = {"attempt": 3, "capacity": "spot", "workers": "0-2", "since": 0}
    cost = {"time": "2026-11-29T20:55:49Z", "ledger": {"accounts": [], "open": [line]}}
    left = real.told(phase="Running", completionTime=None, cost=cost)

    def said(one: history.History) -> list[paint.Line]:
        return [each for each in story.lines(one, {}, [], real.NOW) if "last wrote" in each.text]

    assert said(left) == [
        paint.Line(
            "  the operator last wrote this 15m ago, and does so every 12m while there are workers: is it "
            "running, and does it watch this namespace?",
            "bad",
        )
    ]
    assert said(real.told(cost=cost)) == [], "the job is over"
    cost["time"] = "2026-11-29T20:55:50Z"
    assert said(real.told(phase="Running", completionTime=None, cost=cost)) == []


def test_one_worker_is_no_workers():
    job = real.job()
    job["spec"] |= {"workers": 1, "spot": {}}

    assert dict(story.facts(history.tell(job), real.NOW))["Mode"] == "Gang, 1 worker"


def test_hours_of_a_small_job_have_three_digits():
    assert story.money({"usefulHours": 0.0213, "spotHours": 26.6667}) == [
        ("Useful", "0.0213 worker-hours"),
        ("Spot", "26.67 worker-hours"),
    ]


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


def test_the_output_in_the_docs_is_this_ones():
    docs = (Path(__file__).parents[3] / "docs/plugin.md").read_text()

    text = "\n".join(line.text for line in story.lines(real.told(), {}, [], real.NOW))

    assert f"describe digits -n spottrain-demo\n{text}\n```" in docs


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
    def event(second: int, version: str) -> real.Object:
        when = dt.datetime(2026, 11, 29, 21, 0, second, tzinfo=dt.UTC).isoformat()
        return {"metadata": {"resourceVersion": version}, "lastTimestamp": when}

    found = story.in_order([event(5, "100"), event(1, "30"), event(5, "99")])

    assert [one["metadata"]["resourceVersion"] for one in found] == ["30", "99", "100"]


def test_a_job_that_runs_is_told_with_its_machines_and_events():
    job, pods, events, nodes = real.plane()

    text = [line.text for line in story.lines(history.tell(job, pods), nodes, events, real.PLANE_NOW)]

    start = text.index("Attempts")
    assert text[start + 1 : start + 9] == [
        "  1  2026-11-30T12:12:48Z  all ran after 2s, for 1s",
        "     ended: Reclaimed (Evicted) on i-plugin-2: tr-1-1: EvictionByEvictionAPI",
        "     worker 1: tr-1-1 on i-plugin-2 (spot, zone-a): exited 143, EvictionByEvictionAPI",
        "  2  2026-11-30T12:12:51Z  all ran after 1s, for 0s",
        "     ended: Failed (Error) on i-plugin-2: tr-2-2 exited 1 (Error)",
        "     worker 2: tr-2-2 on i-plugin-2 (spot, zone-a): exited 1",
        "  3  2026-11-30T12:12:52Z  all ran after 2s, for 19s",
        "     goes on",
    ]
    assert text[text.index("Events") + 1 :] == [
        "     25s ago  AttemptStarted: attempt 1 starts (Initial)",
        "     22s ago  Reclaimed: worker 1: tr-1-1: EvictionByEvictionAPI; attempt 2 starts",
        "     21s ago  AttemptStarted: attempt 3 starts (Undetermined: tr-2-2 exited 1 (Error))",
        "     20s ago  WorkerFailed: failure 1 of 3 allowed: tr-2-2 exited 1 (Error)",
    ]
