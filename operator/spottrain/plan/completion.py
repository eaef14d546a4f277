"""`spec.completeBy`: where the gang runs so that its work is done in time, as cheaply as that can be.

::

    on spot ──lost──► waits for spot ──spot comes──────────────────────────► on spot
                           │ waiting no longer pays, or the net:
                           │ work + reserve would not fit any more
                           ▼
                      on on-demand ──spot pays again──► waits for spot

`policy/deadline.py` decides, with a plan that is solved elsewhere; until there is one, in the first seconds
of a job and of an operator, the gang stays where it is. While the work left isn't known nobody can say what
spot risks: it is tried once, and not waited for. Always on top is the net, `outlook.Outlook.reserve`.

What runs on spot is kept until it is taken. A life that ends is followed by one where it suits then;
on-demand is left in the middle of one only when it has lasted for `STAY` and its workers can save in their
grace. `gang` moves all workers together, as a new attempt.
"""

import dataclasses
import datetime as dt
import math

from spottrain.api import conditions, duration, spec, status
from spottrain.plan import draft as drafts
from spottrain.plan import outlook
from spottrain.policy import deadline, spells
from spottrain.policy.deadline import Place

STAY = 3600.0
"""Seconds that a life on on-demand lasts at least, unless something ends it."""
STEADY = 300.0
"""Seconds of slack from which on a deadline that was out of reach is within it again: rates waver."""
MOVED = "Deadline"
"""Why an attempt was begun elsewhere, as a reason in its record."""
PAST = dt.timedelta(seconds=1)
"""Woken so much later than a curve is met: it must have been crossed."""
_PAUSED = {status.Cause.FAILED, status.Cause.UNDETERMINED}


def buys(found: outlook.Outlook, plan: deadline.Plan | None) -> bool:
    """The gang belongs on on-demand from now on, wherever it is."""
    if found.place is Place.SPOT:
        return False
    idle = found.place is Place.IDLE
    presumed = idle and found.waiting < outlook.ARRIVAL
    if found.work is None or found.net is None:
        return not (presumed and found.untried)
    arrival = dt.timedelta(seconds=0.0 if idle else outlook.ARRIVAL)
    if found.now + arrival >= found.net:
        return True
    if presumed or plan is None:
        return not idle
    terms = dataclasses.replace(plan.terms, start=found.start / spells.TICK)  # as measured by now
    return dataclasses.replace(plan, terms=terms).decide(found.moment(found.work)) is Place.ON_DEMAND


def begins_on_demand(draft: drafts.Draft) -> bool:
    """Whether an attempt that begins now is for on-demand: with what is saved, not with what was done."""
    known = draft.status.attempts
    over = tuple(one if one.end else dataclasses.replace(one, end=draft.snapshot.now) for one in known)
    now = dataclasses.replace(draft.status, attempt_id=draft.snapshot.fresh_id, attempts=over)
    found = outlook.of(draft.snapshot, now)
    if found is None:
        return False
    return buys(dataclasses.replace(found, place=Place.IDLE), draft.snapshot.plan)


@dataclasses.dataclass(frozen=True)
class Move:
    """All workers go to on-demand, or leave it."""

    on_demand: bool
    why: str


def move(draft: drafts.Draft) -> Move | None:
    """Where the gang goes for its deadline; None while it stays. Asks to be woken when that may change."""
    if _needs_on_demand_no_more(draft):
        return Move(False, "spec.completeBy is not set any more, and on-demand has no room")
    found, plan = outlook.of(draft.snapshot, draft.status), draft.snapshot.plan
    if found is None or _pauses(draft.status, found.now):
        return None
    for moment in _turns(found, plan):
        draft.wake_at(moment)
    bought, last = buys(found, plan), draft.status.attempts[-1]
    if found.place is Place.IDLE and bought:
        return Move(True, _why(found))
    if last.on_demand and not bought and _may_leave(draft, last):
        return Move(False, f"spot pays again, with {_about(found.slack or 0.0)} to spare")
    return None


def _needs_on_demand_no_more(draft: drafts.Draft) -> bool:
    wishes, attempts = draft.snapshot.spec, draft.status.attempts
    if isinstance(wishes, spec.InvalidSpecError) or wishes.complete_by is not None or not attempts:
        return False
    waits = any(not pod.node and pod.unschedulable for pod in draft.snapshot.current.values())
    return attempts[-1].on_demand and waits


def _pauses(now: status.Status, moment: dt.datetime) -> bool:
    """It waits after a failure of the program, which no place would mend."""
    waits = now.next_retry is not None and moment < now.next_retry
    return waits and now.attempts[-1].cause in _PAUSED


def _may_leave(draft: drafts.Draft, last: status.Attempt) -> bool:
    stayed = last.running is not None and draft.snapshot.now >= last.running + dt.timedelta(seconds=STAY)
    saves = conditions.find(draft.status.conditions, conditions.GRACE_SUFFICIENT)
    return stayed and saves is not None and saves.status is True


def _turns(found: outlook.Outlook, plan: deadline.Plan | None) -> list[dt.datetime]:
    """When the answer may change though nothing else happens; those moments that are still to come."""
    if found.place is Place.ON_DEMAND:
        return []
    if found.place is Place.SPOT:
        return [] if found.overdue is None else [found.overdue]
    turns = [found.now + dt.timedelta(seconds=outlook.ARRIVAL - found.waiting)]
    turns += [found.since + dt.timedelta(seconds=spells.TICK * age) for age in spells.AGES]
    if found.net is not None and found.work is not None:
        turns.append(found.net)
        least = plan.least_slack(found.moment(found.work)) * spells.TICK if plan is not None else math.inf
        if math.isfinite(least):
            turns.append(found.due - dt.timedelta(seconds=found.work + least) + PAST)
    return [one for one in turns if one > found.now]


def _why(found: outlook.Outlook) -> str:
    waited = f"spot has not come for {duration.format_seconds(round(found.waiting))}"
    due = f"spec.completeBy is {duration.format_time(found.due)}"
    if found.work is None:
        return f"{waited}, and what waiting risks is not known, as the work left is not; {due}"
    needs = f"{_about(found.work)} of work are left and a start takes {_about(found.start)}"
    if found.net is not None and found.now >= found.net:
        return f"there is no more time to wait for spot: {needs}; {due}"
    return f"{waited}, and waiting longer does not pay: {needs}; {due}"


def describe(draft: drafts.Draft) -> None:
    """Whether the deadline can be met, in a condition, and by how much, for the metric."""
    wishes = draft.snapshot.spec
    if isinstance(wishes, spec.InvalidSpecError):
        return
    if wishes.complete_by is None:
        if conditions.find(draft.status.conditions, conditions.DEADLINE_FEASIBLE) is not None:
            _say(draft, None, conditions.NO_DEADLINE, "spec.completeBy is not set")
        return
    if draft.status.over:
        _say_how_it_ended(draft, wishes.complete_by)
        return
    _mark_placed(draft)
    found = outlook.of(draft.snapshot, draft.status)
    if found is None or found.slack is None:
        _say(draft, None, conditions.WORK_UNKNOWN, _unknown(draft))
        return
    draft.slack = found.slack
    _say_whether_it_fits(draft, found, found.slack)


def _mark_placed(draft: drafts.Draft) -> None:
    """Note once that all workers of the attempt had a node."""
    snapshot, attempts = draft.snapshot, draft.status.attempts
    placed = [pod for pod in snapshot.current.values() if pod.node]
    begun = draft.status.attempt != snapshot.status.attempt
    if attempts and attempts[-1].placed is None and not begun and len(placed) == snapshot.workers:
        last = dataclasses.replace(attempts[-1], placed=snapshot.now)
        draft.update(attempts=(*attempts[:-1], last))


def _say_whether_it_fits(draft: drafts.Draft, found: outlook.Outlook, slack: float) -> None:
    known = conditions.find(draft.status.conditions, conditions.DEADLINE_FEASIBLE)
    late = known is not None and known.status is False
    if 0 <= slack < STEADY and late:
        return
    if slack >= 0:
        _say(draft, True, conditions.ON_TIME, f"{_about(slack)} to spare; {_where(draft, found)}")
        return
    end = _tens(found.due, -slack)
    text = (
        f"it will be late by about {_about(-slack)}, on on-demand too: {_about(found.work or 0.0)} of work "
        f"are left. Set spec.completeBy to {duration.format_time(end)} or later, or give it less work"
    )
    draft.fault(conditions.DEADLINE_FEASIBLE, conditions.TOO_LATE, text)


def _where(draft: drafts.Draft, found: outlook.Outlook) -> str:
    if draft.status.phase is status.Phase.SUSPENDED:
        return "it is suspended, and the time runs on"
    if found.place is Place.IDLE and found.net is not None:
        return f"it waits for spot until {duration.format_time(found.net)} at the latest"
    return "it is on spot" if found.place is Place.SPOT else "it is on on-demand"


def _unknown(draft: drafts.Draft) -> str:
    told = draft.status.progress
    if told.time is None or told.total is not None:
        return "how much work is left is not known before worker 0 has told its total and its rate"
    remedy = "use run.steps(total), or pass total= to run.done"
    if draft.snapshot.valid_spec.checkpoint.directory:
        remedy = "only a program that uses the library can, instead of spec.checkpoint.directory"
    return (
        f"how much work is left is not known, as worker 0 tells no total: {remedy}. Until then spot is tried "
        "once, and after that the job stays on on-demand"
    )


def _say_how_it_ended(draft: drafts.Draft, due: dt.datetime) -> None:
    done, now = draft.status.completion, draft.status
    if now.phase is not status.Phase.COMPLETE or done is None:
        _say(draft, None, conditions.ENDED, "the job is over, and its work is not done")
        return
    spare = (due - done).total_seconds()
    text = f"the work was done {_about(abs(spare))} {'before' if spare >= 0 else 'after'} spec.completeBy"
    _say(draft, spare >= 0, conditions.ON_TIME if spare >= 0 else conditions.TOO_LATE, text)


def _say(draft: drafts.Draft, status: bool | None, reason: str, message: str) -> None:  # noqa: FBT001
    draft.condition(conditions.DEADLINE_FEASIBLE, status, reason, message)


def _about(seconds: float) -> str:
    """Rounded, so that it isn't written anew all the time: to ten minutes from an hour on, else to one."""
    step = 600.0 if seconds >= 3600 else 60.0
    return duration.format_seconds(step * round(seconds / step)) if seconds >= 30 else "less than a minute"


def _tens(moment: dt.datetime, later: float) -> dt.datetime:
    """So many seconds later, at the next full ten minutes."""
    seconds = math.ceil((moment.timestamp() + later) / 600.0) * 600.0
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
