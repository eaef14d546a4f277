"""`report`: the life of a job as one page that stands by itself: no script, nothing to fetch. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spottrain.api import duration
from spottrain.cli import history, picture, story, words
from spottrain.cli.history import History, Life
from spottrain.cli.markup import Content, Markup, joined, tag

Object = Mapping[str, Any]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #57606a; --line: #d0d7de;
  --ran: #1a66c2; --wait: #8a6100; --bad: #b3261e; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #9da7b1;
  --line: #3d444d; --ran: #58a6ff; --wait: #d9a520; --bad: #ff8177; --good: #4cc266; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1.5rem; }
h1 { line-height: 1.2; margin: 0; } h2 { margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
.phase { font-size: 1rem; border: 1px solid currentColor; border-radius: 1em; padding: .1em .7em;
  vertical-align: middle; margin-left: .5em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.5rem; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--faint); padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } th, td.n, td.t { white-space: nowrap; }
td.n, th.n { text-align: right; } pre { white-space: pre-wrap; margin: .3rem 0; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } svg text { fill: var(--ink); }
svg .scale { fill: var(--faint); text-anchor: middle; } svg .number { text-anchor: end; font-weight: 600; }
.tick { stroke: var(--line); } rect.ran { fill: var(--ran); }
rect.wait { fill: url(#wait); stroke: var(--wait); } rect.lost { fill: url(#lost); stroke: var(--bad); }
.hatch-wait { stroke: var(--wait); }
.hatch-lost { stroke: var(--paper); stroke-width: 1.5; }
svg .Failed, .bad { fill: var(--bad); color: var(--bad); }
svg .Complete, .good { fill: var(--good); color: var(--good); }
svg .Reclaimed, svg .Undetermined, .wait { fill: var(--wait); color: var(--wait); }
.key { color: var(--faint); } footer { margin-top: 2rem; color: var(--faint); font-size: .9rem; }
@media print { :root { --ink: #000; --paper: #fff; --faint: #444; --line: #999; --ran: #1a66c2;
  --wait: #8a6100; --bad: #b3261e; --good: #1a7f37; } body { max-width: none; padding: 0; font-size: 11pt; }
  h2 { break-after: avoid; } tr, svg { break-inside: avoid; } thead { display: table-header-group; }
  rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .wide { overflow: visible; } }
"""
_META = Markup(
    """<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />"""
)
"""The last: whatever a program wrote into a message, nothing on the page runs or is fetched."""


def page(
    one: History,
    nodes: Mapping[str, Object],
    events: Sequence[Object],
    now: dt.datetime,
    missing: Sequence[str] = (),
) -> str:
    """The whole page. `missing`: what could not be read, in sentences."""
    title = f"{one.namespace}/{one.name}"
    sections = [_summary(one, now), *_timeline(one, now), *_lost(one), *_checkpoints(one, now)]
    sections += [*_nodes(one, nodes), *_money(one), _conditions(one), _events(events)]
    head = tag(
        "head",
        _META,
        tag("title", f"{title}: {one.status.phase} - spottrain report"),
        tag("style", Markup(_STYLE)),
    )
    phase = tag("span", one.status.phase, class_=f"phase {story.phase_tone(one)}")
    body = tag(
        "body",
        tag("header", tag("h1", title, phase)),
        tag("main", *sections),
        tag("footer", *_footer(now, missing)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


_TIMES = frozenset({"Begun", "Since", "When"})


def _section(title: str, *content: Content) -> Markup:
    name = title.lower().replace(" ", "-")
    return tag("section", tag("h2", title, id=name), *content, aria_labelledby=name)


def _table(
    caption: str, heads: Iterable[str], rows: Iterable[Sequence[Content]], numbers: str = ""
) -> Markup:
    """The first cell of a row names it; `numbers`: heads whose cells are numbers, separated by commas."""
    heads = list(heads)
    classes = dict.fromkeys(_TIMES, "t") | dict.fromkeys(numbers.split(","), "n")
    kinds = [{"class_": classes[head]} if head in classes else {} for head in heads]
    top = [tag("th", head, scope="col", **kind) for head, kind in zip(heads, kinds, strict=True)]
    lines = [
        tag(
            "tr",
            tag("th", row[0], scope="row", **kinds[0]),
            *(tag("td", cell, **kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)),
        )
        for row in rows
    ]
    inside = (tag("caption", caption), tag("thead", tag("tr", *top)), tag("tbody", *lines))
    # A table that is wider than the page can be scrolled by keyboard too.
    return tag("div", tag("table", *inside), class_="wide", tabindex=0, role="region", aria_label=caption)


def _summary(one: History, now: dt.datetime) -> Markup:
    pairs = (joined(tag("dt", name), tag("dd", text)) for name, text in story.facts(one, now))
    return _section("Summary", tag("dl", *pairs))


def _timeline(one: History, now: dt.datetime) -> list[Markup]:
    if not one.lives:
        return [_section("Attempts", tag("p", "None was started yet."))]
    before = one.lives[0].number - 1
    left_out = f" Attempts 1 to {before} are too long ago: they are only counted." if before > 0 else ""
    key = f"Hatched: waiting for workers. Solid: all workers run. Crossed: work that was lost.{left_out}"
    rows = [_attempt(life, now) for life in one.lives]
    heads = ("Attempt", "Begun", "Waited", "Ran", "Steps", "Done again", "How it ended")
    table = _table("Each attempt, the oldest first", heads, rows, "Waited,Ran,Steps,Done again")
    return [_section("Attempts", picture.timeline(one, now), tag("p", key, class_="key"), table)]


def _attempt(life: Life, now: dt.datetime) -> list[Content]:
    ended = joined(story.how(life), tag("pre", life.log)) if life.log else story.how(life)
    took = map(words.span, life.seconds(now))
    return [
        life.number,
        duration.format_time(life.start),
        *took,
        life.steps or "unknown",
        _again(life),
        ended,
    ]


def _again(life: Life) -> str:
    if life.outcome in {"", "Complete"}:
        return ""
    return "unknown" if life.lost is None else str(life.lost)


def _lost(one: History) -> list[Markup]:
    broken = [life for life in one.lives if life.outcome not in {"", "Complete"}]
    if not broken or one.independent:
        return []
    known = [life.lost for life in broken if life.lost is not None]
    waits = sum((life.running or life.start).timestamp() - life.start.timestamp() for life in one.lives[1:])
    sentences = [
        f"{sum(known)} steps were done again, after {len(known)} of {len(broken)} interruptions.",
        f"Attempts after the first waited {words.span(waits)} for their workers.",
    ]
    if len(known) < len(broken):
        sentences.append("What the other interruptions cost is not known: no worker told it.")
    return [_section("Lost work", tag("p", " ".join(sentences)))]


def _checkpoints(one: History, now: dt.datetime) -> list[Markup]:
    uri = (one.spec.get("checkpoint") or {}).get("uri", "")
    if not uri:
        return []
    rows = [
        [life.number, life.first if life.first is not None else "unknown", _or_unknown(life.saved)]
        for life in one.lives
        if life.first is not None or life.saved is not None
    ]
    newest = dict(story.facts(one, now)).get("Checkpoint", "")
    said = tag(
        "p", f"Newest known: {newest}. " if newest else "", "All that are stored: ", _command(one, uri)
    )
    heads = ("Attempt", "Began at step", "Saved step")
    return [
        _section(
            "Checkpoints",
            said,
            _table("What attempts began with and saved last", heads, rows, "Began at step,Saved step")
            if rows
            else "",
        )
    ]


def _command(one: History, uri: str) -> Markup:
    return tag("code", f"spottrain checkpoints ls {uri}{'/INDEX' if one.independent else ''}")


def _or_unknown(value: int | None) -> Content:
    return "unknown" if value is None else value


def _nodes(one: History, nodes: Mapping[str, Object]) -> list[Markup]:
    used: dict[str, list[str]] = {}
    for worker in one.pods:
        if worker.node:
            used.setdefault(worker.node, []).append(f"{worker.pod} {worker.state}")
    for life in one.lives:
        if life.node:
            used.setdefault(life.node, []).append(f"ended attempt {life.number} ({life.outcome})")
    if not used:
        return []
    rows = []
    for name, what in sorted(used.items()):
        known = history.machine(name, nodes)
        rows.append([name, known.capacity or "gone or unknown", known.zone, known.type, "; ".join(what)])
    heads = ("Node", "Bought as", "Zone", "Type", "What was there")
    return [_section("Nodes", _table("Nodes of pods that are still there, and of losses", heads, rows))]


def _money(one: History) -> list[Markup]:
    pairs = [joined(tag("dt", name), tag("dd", text)) for name, text in story.money(one.cost)]
    return [_section("Money", tag("dl", *pairs))] if pairs else []


def _conditions(one: History) -> Markup:
    values = {True: "True", False: "False", None: "Unknown"}
    rows = [
        [
            each.type,
            values[each.status],
            each.reason,
            story.message(one, each),
            duration.format_time(each.since),
        ]
        for each in one.status.conditions
    ]
    heads = ("Condition", "Status", "Reason", "Message", "Since")
    return _section("Conditions", _table("What the operator says of it", heads, rows))


def _events(events: Sequence[Object]) -> Markup:
    if not events:
        return _section("Events", tag("p", "The cluster keeps none of them any more (an hour, by default)."))
    rows = [
        [duration.format_time(story.moment(event)), event["reason"], event.get("message", "")]
        for event in story.in_order(events)
    ]
    return _section("Events", _table("The oldest first", ("When", "Reason", "Message"), rows))


def _footer(now: dt.datetime, missing: Sequence[str]) -> Iterable[Markup]:
    yield tag("p", f"As of {duration.format_time(now)}, by kubectl spottrain. Steps are counted from 0.")
    yield from (tag("p", sentence) for sentence in missing)
