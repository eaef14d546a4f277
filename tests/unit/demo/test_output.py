"""The table and the summary."""

import dataclasses
import json

from demo import table
from demo.facts import Attempt, Run
from demo.summary import summary
from tests.unit.demo import stories

TABLE = """\
attempt  started because  steps     rank 0            rank 1         rank 2
-------  ---------------  --------  ----------------  -------------  -------------
1        Initial          0..70     od-1 (on-demand)  spot-1 (spot)  spot-2 (spot)
2        Reclaimed        71..135   od-1 (on-demand)  spot-1 (spot)  spot-2 (spot)
3        Reclaimed        109..299  od-1 (on-demand)  spot-1 (spot)  spot-2 (spot)

loss    node    rank  at step  resumed at  steps lost  of an interval's  s to running  s to first step
------  ------  ----  -------  ----------  ----------  ----------------  ------------  ---------------
notice  spot-1  1     70       71          0           50                13.0          23.0
kill    spot-2  2     135      109         27          50                20.0          30.0

run              final loss
---------------  ----------
digits           0.1445
digits-unbroken  0.1445
equal to the last bit"""


def test_the_table_tells_all_of_a_run_as_it_should_be() -> None:
    assert table.report(stories.as_it_should_be(), stories.unbroken()) == TABLE


def test_the_table_of_a_run_that_broke_off_shows_what_is_unknown() -> None:
    told = stories.as_it_should_be()
    text = table.report(
        dataclasses.replace(told, attempts=(told.attempts[0], Attempt(2, ())), phase="Failed"),
        stories.unbroken(),
    )
    assert "2                         never trained  -" in text
    assert "notice  spot-1  1     70       ?           ?" in text
    assert text.endswith("NOT equal")


def test_the_summary_has_what_programs_ask_for() -> None:
    found = summary(stories.as_it_should_be(), stories.unbroken())
    asked = (
        "attempts",
        "lost_steps",
        "equal_final_loss",
        "seconds_to_first_step",
        "completed",
        "shortcomings",
    )
    assert {name: found[name] for name in asked} == {
        "attempts": 3,
        "lost_steps": [0, 27],
        "equal_final_loss": True,
        "seconds_to_first_step": [23.0, 30.0],
        "completed": True,
        "shortcomings": [],
    }
    assert found["losses"][1] == {
        "kind": "kill",
        "attempt": 2,
        "node": "spot-2",
        "rank": 2,
        "step_at_loss": 134,
        "last_step": 135,
        "resumed_at": 109,
        "lost_steps": 27,
        "interval_steps": 50,
        "seconds_to_running": 20.0,
        "seconds_to_first_step": 30.0,
    }


def test_the_summary_of_nothing_is_json_with_nulls() -> None:
    nothing = Run("digits", 3, 5.0)
    found = json.loads(json.dumps(summary(nothing, nothing)))
    assert (found["equal_final_loss"], found["final_loss"], found["attempts"]) == (False, None, 0)


def test_losses_are_not_equal_when_one_run_did_not_end() -> None:
    stopped = dataclasses.replace(stories.unbroken(), phase="Running")
    assert summary(stories.as_it_should_be(), stopped)["equal_final_loss"] is False
