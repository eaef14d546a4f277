"""`describe`: the story of a job in lines for people, and as a value for programs. Pure."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spottrain.api import conditions, duration, last_words
from spottrain.cli import history, listing, paint, words
from spottrain.cli.history import History, Life, Worker
from spottrain.cli.paint import Line

Object = Mapping[str, Any]
EVENTS_SHOWN = 15
WORKERS_SHOWN = 8
SILENT_AFTER = dt.timedelta(minutes=15)
"""While there are workers the operator writes the ledger every 10 to 12 minutes, if nothing else."""
_OUTCOMES = {"Complete": "good", "Failed": "bad", "Reclaimed": "wait", "Undetermined": "wait"}
FALSE_IS_BAD = frozenset(
    {"Accepted", "FloorMet", "GraceSufficient", "WindowHolds", "NoticesHeard", "CheckpointsStored"}
)
"""Conditions that ask for somebody when they are False."""


def lines(
    one: History, nodes: Mapping[str, Object], events: Sequence[Object], now: dt.datetime
) -> Iterator[Line]:
    """The whole story: head, conditions, attempts, events."""
    yield Line(f"{one.namespace}/{one.name}: {one.status.phase}", phase_tone(one))
    width = max(len(name) for name, _ in facts(one, now))
    for name, text in facts(one, now):
        yield Line(f"  {name:{width}}  {text}")
    if silence := _silence(one, now):
        yield Line(f"  {silence}", "bad")
    yield from _conditions(one)
    yield from _workers(one, nodes) if one.independent else _attempts(one, nodes, now)
    yield from _events(events, now)


def _silence(one: History, now: dt.datetime) -> str:
    """That nobody keeps the status up to date, where that shows."""
    book = one.status.cost
    at_work = not one.status.over and any(line.there for line in book.lines)
    if not at_work or book.time is None or now - book.time < SILENT_AFTER:
        return ""
    age = words.span((now - book.time).total_seconds())
    return (
        f"the operator last wrote this {age} ago, and does so every 12m while there are workers: "
        "is it running, and does it watch this namespace?"
    )


def phase_tone(one: History) -> str:
    """The tone of its phase."""
    return paint.of_phase(one.status.phase)


def facts(one: History, now: dt.datetime) -> list[tuple[str, str]]:
    """What it is and how far it is: a name and a text each."""
    status, spec = one.status, one.spec
    allowed = spec.get("maxFailures")
    found = [
        ("Mode", _mode(one)),
        ("Wall time", words.span(one.wall(now))),
        ("Useful time", "" if one.independent else listing.useful(one, now)),
        ("Finished" if one.independent else "Step", _progress(one, now)),
        ("Rate", f"{status.progress.per_second:g} steps a second" if status.progress.per_second else ""),
        ("Reclaims", str(status.reclaims)),
        ("Failures", str(status.failures) + (f" of at most {allowed}" if allowed is not None else "")),
        ("Workers", _running(one)),
        ("Checkpoint", _checkpoint(one, now)),
        ("Stored at", (spec.get("checkpoint") or {}).get("uri", "")),
        ("Failed indexes", status.shards.failed.text if status.shards else ""),
        ("Next attempt", duration.format_time(status.next_retry) if status.next_retry else ""),
        *money(one.cost),
    ]
    return [(name, text) for name, text in found if text]


def money(cost: Object) -> list[tuple[str, str]]:
    """What the ledger of the status says, if there is one."""
    hours = [key for key in cost if key.endswith("Hours") and cost[key]]
    found = [(_spelt(key.removesuffix("Hours")), words.worker_hours(cost[key])) for key in hours]
    return [*found, *((key.capitalize(), str(cost[key])) for key in ("cost", "saved") if key in cost)]


def _spelt(key: str) -> str:
    """`onDemand`: On demand."""
    return re.sub(r"([A-Z])", lambda found: f" {found[1].lower()}", key).capitalize()


def _mode(one: History) -> str:
    floor = (one.spec.get("spot") or {}).get("onDemandFloor", 0)
    count = one.spec.get("workers", 1)
    kind = ("index" if count == 1 else "indexes") if one.independent else words.plural(count, "worker")
    text = f"{one.mode}, {count} {kind}"
    return f"{text}, at least {floor} of them on demand" if floor else text


def _progress(one: History, now: dt.datetime) -> str:
    """As of when it was told: the status may be most of a minute behind."""
    known, told = listing.progress(one), one.status.progress.time
    if one.independent or one.status.over or one.status.step is None or told is None:
        return known
    return f"{known} (as of {words.span((now - told).total_seconds())} ago)"


def _running(one: History) -> str:
    workers = one.status.workers
    return (
        f"{workers.running} of {workers.desired} run: {workers.spot} on spot, {workers.on_demand} on demand"
    )


def _checkpoint(one: History, now: dt.datetime) -> str:
    made = one.status.checkpoint
    if made is None:
        return ""
    age = listing.checkpoint_age(one, now)
    took = f", saved in {made.save_seconds:.2f} s" if made.save_seconds is not None else ""
    return f"step {made.step}" + (f", {age} ago" if age else "") + took


def _conditions(one: History) -> Iterator[Line]:
    if not one.status.conditions:
        yield Line(
            "  the operator has not seen it yet: is it running, and does it watch this namespace?", "wait"
        )
        return
    yield Line("")
    yield Line("Conditions", "head")
    width = max(len(condition.type) for condition in one.status.conditions)
    for condition in one.status.conditions:
        value = {True: "True", False: "False", None: "Unknown"}[condition.status]
        first, *rest = message(one, condition).split("\n")
        text = f"  {condition.type:{width}}  {value:7}  {first} ({condition.reason})"
        bad = condition.type in FALSE_IS_BAD and condition.status is False
        failed = condition.type == "Failed" and condition.status is True
        yield Line(text, "bad" if bad or failed else "")
        yield from (Line(f"    {line}", "dim") for line in rest)


def message(one: History, condition: conditions.Condition) -> str:
    """What it says; without the end of a log that stands at its attempt."""
    said, spoken = last_words.parted(condition.message)
    return said if spoken and any(life.log for life in one.lives) else condition.message


def _attempts(one: History, nodes: Mapping[str, Object], now: dt.datetime) -> Iterator[Line]:
    if not one.lives:
        return
    yield Line("")
    yield Line("Attempts", "head")
    if one.lives[0].number > 1:
        yield Line(f"  1 to {one.lives[0].number - 1}: too long ago, only counted", "dim")
    for life in one.lives:
        yield from _attempt(life, nodes, now)


def _attempt(life: Life, nodes: Mapping[str, Object], now: dt.datetime) -> Iterator[Line]:
    waited, ran = map(words.span, life.seconds(now))
    took = (
        f"all ran after {waited}, for {ran}"
        if life.running
        else f"waited {waited}, and never had all workers"
    )
    if not life.running and not life.ending:
        took = f"has waited {waited} for its workers"
    yield Line(f"  {life.number}  {duration.format_time(life.start)}  {took}")
    yield Line(f"     {'ended: ' if life.ending else ''}{how(life)}", _OUTCOMES.get(life.outcome, ""))
    yield from (Line(f"       {line}", "dim") for line in life.log.splitlines())
    if told := told_of(life):
        yield Line(f"     {told}")
    if life.made and not life.workers:
        yield Line("     its pods are gone: stopped ones are removed, others stay for two attempts", "dim")
    for worker in life.workers[:WORKERS_SHOWN]:
        yield Line(f"     {_worker(worker, nodes)}")
    if len(life.workers) > WORKERS_SHOWN:
        yield Line(f"     and {len(life.workers) - WORKERS_SHOWN} more pods")


def how(life: Life) -> str:
    """How it ended, or that it hasn't."""
    if life.ending:
        return life.ending + ("" if life.made else " (before this attempt had pods)")
    return "goes on" if life.made else "it has no pods yet"


def told_of(life: Life) -> str:
    """Steps, the newest checkpoint and the lost steps, as far as its workers said so."""
    parts = [
        f"steps {life.steps}" if life.steps else "",
        f"saved step {life.saved}" if life.saved is not None else "",
        f"the next one went on at step {life.onward}" if life.onward is not None else "",
        f"{life.lost} steps were done again" if life.lost else "",
    ]
    return ", ".join(part for part in parts if part)


def _worker(worker: Worker, nodes: Mapping[str, Object]) -> str:
    return f"worker {worker.index}: {worker.pod} {where(worker.node, nodes)}: {worker.state}"


def where(node: str, nodes: Mapping[str, Object]) -> str:
    """On which node, with what is known of it."""
    if not node:
        return "without a node"
    known = history.machine(node, nodes)
    said = [text for text in (known.capacity, known.zone, known.type) if text]
    return f"on {node} ({', '.join(said)})" if said else f"on {node}"


def _workers(one: History, nodes: Mapping[str, Object]) -> Iterator[Line]:
    """Of an Independent job: the pods that are there, those that failed first."""
    if not one.pods:
        return
    yield Line("")
    yield Line("Workers", "head")
    ranked = sorted(one.pods, key=lambda worker: (not worker.state.startswith("exited"), worker.index))
    for worker in ranked[: 2 * WORKERS_SHOWN]:
        text = f"  index {worker.index}, attempt {worker.attempt}: {worker.pod}"
        yield Line(f"{text} {where(worker.node, nodes)}: {worker.state}")
    if len(ranked) > 2 * WORKERS_SHOWN:
        yield Line(f"  and {len(ranked) - 2 * WORKERS_SHOWN} more pods")


def _events(events: Sequence[Object], now: dt.datetime) -> Iterator[Line]:
    yield Line("")
    if not events:
        yield Line("Events: none that the cluster still keeps (an hour, by default)", "dim")
        return
    yield Line("Events", "head")
    for event in in_order(events)[-EVENTS_SHOWN:]:
        age = words.span((now - moment(event)).total_seconds())
        yield Line(f"  {age:>6} ago  {said(event)}", tone_of(event))
    if len(events) > EVENTS_SHOWN:
        yield Line(
            f"  and {len(events) - EVENTS_SHOWN} before them: `events {events[0]['involvedObject']['name']}`"
        )


def in_order(events: Sequence[Object]) -> list[Object]:
    """Oldest first; those of one second as the cluster got them: resource versions are numbers (KEP-5504)."""
    return sorted(events, key=lambda event: (moment(event), int(event["metadata"]["resourceVersion"])))


def moment(event: Object) -> dt.datetime:
    """When it was last seen."""
    found = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return duration.parse_time(found)


def said(event: Object) -> str:
    """What it says, with its reason."""
    return f"{event['reason']}: {event.get('message', '')}"


def tone_of(event: Object) -> str:
    """Of a warning, or none."""
    return "wait" if event.get("type") == "Warning" else ""


def plain(one: History, nodes: Mapping[str, Object], events: Sequence[Object], now: dt.datetime) -> Object:
    """The same for programs."""
    attempts = [
        {**asdict(life), "lostSteps": life.lost, "waitedSeconds": waited, "ranSeconds": ran}
        for life, (waited, ran) in ((life, life.seconds(now)) for life in one.lives)
    ]
    machines = sorted({worker.node for worker in one.pods if worker.node})
    return {
        **listing.plain(one, now),
        "conditions": [asdict(condition) for condition in one.status.conditions],
        "attempts": attempts,
        "pods": [asdict(worker) for worker in one.pods] if one.independent else None,
        "nodes": [asdict(history.machine(name, nodes)) for name in machines],
        "events": [
            {
                "time": moment(event),
                "type": event.get("type"),
                "reason": event["reason"],
                "message": event.get("message", ""),
            }
            for event in in_order(events)
        ],
    }
