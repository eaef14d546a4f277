"""The report page: whole, well-formed, by itself, and readable without eyes or colours."""

import datetime as dt
import xml.etree.ElementTree as ET
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spottrain.cli import history, report
from spottrain.cli.markup import Markup, joined, tag
from tests.unit.cli import real

EVENT = {
    "metadata": {"resourceVersion": "7"},
    "lastTimestamp": "2026-11-29T20:59:33Z",
    "reason": "Reclaimed",
    "message": "worker 1: digits-1-1: EvictionByEvictionAPI",
    "involvedObject": {"name": "digits"},
    "type": "Warning",
}
HOSTILE = "\x1b[31m<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def tree(one: history.History, **more: Any) -> ET.Element:
    """The page as a tree. That it is one is the test of its form: each element closed, nothing unescaped."""
    text = report.page(
        one, more.get("nodes", {}), more.get("events", [EVENT]), real.NOW, more.get("missing", ())
    )
    doctype, _, rest = text.partition("\n")
    assert doctype == "<!DOCTYPE html>"
    return ET.fromstring(rest)


def words(element: ET.Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def section(page: ET.Element, name: str) -> ET.Element:
    (found,) = [one for one in page.iter("section") if one.get("aria-labelledby") == name]
    return found


def test_it_tells_attempts_lost_work_checkpoints_nodes_and_events():
    page = tree(real.told())

    rows = [[words(cell) for cell in row] for row in section(page, "attempts").iter("tr")]
    assert rows[2] == [
        *("2", "2026-11-29T20:59:33Z", "4s", "21s", "64..126", "22"),
        "Reclaimed (NodeLost): node spot-3 is silent",
    ]
    assert rows[1][4:6] == ["unknown", "unknown"]
    assert "22 steps were done again, after 1 of 2 interruptions." in words(section(page, "lost-work"))
    assert "3 105 299" in words(section(page, "checkpoints"))
    assert "ended attempt 2 (Reclaimed)" in words(section(page, "nodes"))
    assert "EvictionByEvictionAPI" in words(section(page, "events"))


def test_the_log_of_who_failed_stands_at_its_attempt_alone():
    page = tree(real.given_up())

    rows = [words(row) for row in section(page, "attempts").iter("tr")]
    assert [row.endswith("Traceback KeyError: 'lr'") for row in rows] == [False, False, True, False]
    assert "Traceback" not in words(section(page, "conditions"))


def test_it_needs_nothing_from_elsewhere_and_runs_nothing():
    page = tree(real.told())

    assert not {element.tag for element in page.iter()} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "base",
    }
    names = {name for element in page.iter() for name in element.keys()}  # noqa: SIM118 - an element isn't a dict
    assert not {name for name in names if name.startswith("on") or name in {"src", "href", "srcset"}}
    (style,) = page.iter("style")
    assert "http" not in (style.text or "")
    assert "@import" not in (style.text or "")
    (policy,) = [one for one in page.iter("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.get("content") == "default-src 'none'; style-src 'unsafe-inline'"


def test_it_can_be_read_without_eyes():
    page = tree(real.told(cost={"saved": "3.20"}))

    assert page.get("lang") == "en"
    assert [len(list(page.iter(name))) for name in ("h1", "header", "main", "footer", "title")][:4] == [
        1,
        1,
        1,
        1,
    ]
    ids = [one.get("id") for one in page.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    for one in page.iter():
        for reference in (one.get("aria-labelledby") or "").split():
            assert reference in ids
    (picture,) = page.iter("svg")
    assert picture.get("role") == "img"
    described = words(next(one for one in picture.iter("desc")))
    assert described.startswith("Attempt 1 waited 2s and ran 20s, then: Reclaimed.")
    for table in page.iter("table"):
        assert table.find("caption") is not None
        for head in table.iter("th"):
            assert head.get("scope") in {"col", "row"}


def test_the_picture_has_a_bar_for_waiting_one_for_running_and_one_for_lost_work():
    (picture,) = tree(real.told()).iter("svg")

    kinds = [bar.get("class") for bar in picture.iter("rect")]
    assert kinds == ["wait", "ran", "wait", "ran", "lost", "wait", "ran"]
    ran, lost = ([float(bar.get("width", 0)) for bar in picture.iter("rect")][place] for place in (3, 4))
    assert abs(lost / ran - 22 / 63) < 0.01


def test_what_programs_and_machines_are_called_is_never_markup():
    attempts = real.digits()[0]["status"]["attempts"]
    attempts[1] |= {"detail": f"{HOSTILE}\n{HOSTILE}", "node": HOSTILE, "reason": HOSTILE, "cause": HOSTILE}
    event = {**EVENT, "message": HOSTILE, "reason": HOSTILE}

    page = tree(real.told(attempts=attempts, phase=HOSTILE), events=[event], missing=[HOSTILE])

    assert not list(page.iter("script"))
    assert not list(page.iter("img"))
    assert words(section(page, "events")).count("<script>alert(1)</script>") == 2


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"])))
def test_any_text_stays_text(text: str):
    element = ET.fromstring(tag("p", text, title=text))

    assert (element.text or "", element.get("title")) == (text, text)


def test_markup_is_kept_and_text_is_not_taken_for_it():
    assert joined(Markup("<b>x</b>"), "<b>") == "<b>x</b>&lt;b&gt;"


def test_money_is_a_section_only_where_the_status_has_a_ledger():
    assert "money" not in {one.get("aria-labelledby") for one in tree(real.told()).iter("section")}
    assert "Saved 3.20" in words(section(tree(real.told(cost={"saved": "3.20"})), "money"))


def test_a_job_that_has_not_begun_has_a_page_too():
    job, _ = real.digits()
    del job["status"]

    assert "None was started yet." in words(section(tree(history.tell(job)), "attempts"))


def test_what_could_not_be_read_is_said():
    assert "nodes can't be read" in words(tree(real.told(), missing=["nodes can't be read: no"]))


def test_a_week_has_few_lines_on_its_scale():
    attempts = [{"number": 1, "id": "a", "cause": "Initial", "startTime": "2026-11-22T20:59:11Z"}]
    long = real.told(attempts=attempts, phase="Running", completionTime=None)

    (picture,) = tree(long).iter("svg")

    assert real.NOW - long.lives[0].start > dt.timedelta(days=7)
    assert 3 <= len([one for one in picture.iter("line") if one.get("class") == "tick"]) <= 7


def test_nodes_are_told_by_what_they_are_bought_as():
    job, pods, events, nodes = real.plane()

    page = tree(history.tell(job, pods), nodes=nodes, events=events)

    rows = [[words(cell) for cell in row] for row in section(page, "nodes").iter("tr")]
    assert rows[1][:3] == ["i-plugin-1", "spot", "zone-a"]
    assert rows[3] == ["i-plugin-od", "on-demand", "zone-a", "", "tr-0-3 running"]
    assert "ended attempt 2 (Failed)" in rows[2][4]
