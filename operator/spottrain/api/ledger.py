"""`status.cost`: what time a job's workers have had on nodes, as what it was bought and what came of it.

Whole seconds and exact sums, so that outcomes add up to capacities and amounts to the cent. What people read
(hours, cost, savings) is worked out from it when it is written, and never read back.
"""

import collections.abc as cabc
import dataclasses
import datetime as dt
import enum
from typing import Any

from spottrain.api import duration, indexes
from spottrain.api.prices import NOTHING, Amount, Rate, amount

NONE = indexes.Indexes()


class Outcome(enum.StrEnum):
    """What has come of a worker's time on a node."""

    USEFUL = "useful"
    """It is in a checkpoint, or the work is finished."""
    LOST = "lost"
    """It came after the last checkpoint that is known, and the worker ended."""
    RESTORING = "restoring"
    """All workers ran, and the program had not begun to train: it started, and restored."""
    WAITING = "waiting"
    """The worker was starting, or waited for others to run."""


CAPACITIES = ("spot", "on-demand", "unknown")


@dataclasses.dataclass(frozen=True)
class Account:
    """Seconds of workers on one capacity, by outcome, of which `unpriced` had no price.

    `spent` and `instead` are seconds times a price per worker-hour: what all of them cost, and what the
    useful ones would have cost on demand.
    """

    capacity: str
    useful: int = 0
    lost: int = 0
    restoring: int = 0
    waiting: int = 0
    unpriced: int = 0
    spent: Amount = NOTHING
    instead: Amount = NOTHING

    @property
    def seconds(self) -> int:
        """All of them."""
        return sum(self.of(one) for one in Outcome)

    def of(self, outcome: Outcome) -> int:
        """Those with that outcome."""
        seconds: int = getattr(self, outcome)
        return seconds

    def plus(self, outcome: Outcome, seconds: int, rate: Rate | None) -> "Account":
        """With so many more."""
        useful = outcome is Outcome.USEFUL
        grown: dict[str, Any] = {
            str(outcome): self.of(outcome) + seconds,
            "unpriced": self.unpriced + (0 if rate else seconds),
            "spent": self.spent + (seconds * rate.price if rate else 0),
            "instead": self.instead + (seconds * rate.on_demand if rate and useful else 0),
        }
        return dataclasses.replace(self, **grown)


@dataclasses.dataclass(frozen=True)
class Line:
    """Workers of one attempt on one capacity at one rate, and what of their time has no outcome yet.

    `there` are on their nodes; `since` is the sum over them of the moments (Unix seconds) up to which their
    time has one. `ended` have ended, and are seen or remembered, so that none is taken in again; `rest` are
    the seconds of them that have no outcome yet. `mark`: up to when all workers' time has one; 0 at first.
    """

    attempt: int
    capacity: str
    rate: Rate | None = None
    there: indexes.Indexes = NONE
    since: int = 0
    ended: indexes.Indexes = NONE
    rest: int = 0
    mark: int = 0

    def undecided(self, now: int) -> int:
        """Seconds without an outcome until that moment (Unix seconds)."""
        return self.rest + max(0, len(self.there) * now - self.since)


@dataclasses.dataclass(frozen=True)
class Ledger:
    """All of it. `time`: when people's figures were worked out last; they stand still until the next time."""

    accounts: tuple[Account, ...] = ()
    lines: tuple[Line, ...] = ()
    time: dt.datetime | None = None

    def account(self, capacity: str) -> Account:
        """That capacity's; empty where there was none."""
        return next((one for one in self.accounts if one.capacity == capacity), Account(capacity))

    def plus(self, capacity: str, outcome: Outcome, seconds: int, rate: Rate | None) -> "Ledger":
        """With so many more seconds."""
        if not seconds:
            return self
        grown = self.account(capacity).plus(outcome, seconds, rate)
        others = [one for one in self.accounts if one.capacity != capacity]
        return dataclasses.replace(
            self, accounts=tuple(sorted((*others, grown), key=lambda one: one.capacity))
        )

    def abandoned(self, now: dt.datetime) -> "Ledger":
        """As it is when the job goes at that moment: what has no outcome is lost."""
        book = self
        for line in self.lines:
            seconds = line.undecided(int(now.timestamp()))
            book = book.plus(line.capacity, Outcome.LOST, seconds, line.rate)
        return dataclasses.replace(book, lines=())

    @property
    def priced(self) -> bool:
        """Some of it has a price."""
        return any(one.spent for one in self.accounts) or any(line.rate for line in self.lines)


EMPTY = Ledger()


def parse(raw: cabc.Mapping[str, Any]) -> Ledger:
    """A Ledger from `status.cost`."""
    kept = raw.get("ledger") or {}
    return Ledger(
        accounts=tuple(_account(one) for one in kept.get("accounts", ())),
        lines=tuple(_line(one) for one in kept.get("open", ())),
        time=duration.optional_time(raw.get("time")),
    )


def render(book: Ledger) -> dict[str, Any] | None:
    """`status.cost`; None where nothing has ever been counted."""
    if not book.accounts and not book.lines:
        return None
    return {
        **(
            {}
            if book.time is None
            else {"time": duration.format_time(book.time), **_figures(book, book.time)}
        ),
        "ledger": {
            "accounts": [_render_account(one) for one in book.accounts],
            "open": [_render_line(one) for one in book.lines],
        },
    }


def _figures(book: Ledger, moment: dt.datetime) -> dict[str, Any]:
    """What people read, as of that moment. Cost is of all hours; savings are of those with an outcome."""
    now = int(moment.timestamp())
    undecided = {
        name: sum(one.undecided(now) for one in book.lines if one.capacity == name) for name in CAPACITIES
    }
    hours: dict[str, Any] = {
        f"{_FIELDS[name]}Hours": _hours(book.account(name).seconds + undecided[name]) for name in CAPACITIES
    }
    for outcome in Outcome:
        hours[f"{outcome}Hours"] = _hours(sum(one.of(outcome) for one in book.accounts))
    hours["undecidedHours"] = _hours(sum(undecided.values()))
    return {**hours, **(_money(book, now) if book.priced else {})}


def _money(book: Ledger, now: int) -> dict[str, Any]:
    spent = sum((one.spent for one in book.accounts), NOTHING)
    instead = sum((one.instead for one in book.accounts), NOTHING)
    under_way = sum((one.undecided(now) * one.rate.price for one in book.lines if one.rate), NOTHING)
    unpriced = sum(one.unpriced for one in book.accounts)
    unpriced += sum(one.undecided(now) for one in book.lines if one.rate is None)
    return {
        "cost": str(amount(spent + under_way)),
        "saved": str(amount(instead - spent)),
        **({"unpricedHours": _hours(unpriced)} if unpriced else {}),
    }


_FIELDS = {"spot": "spot", "on-demand": "onDemand", "unknown": "unknown"}


def _hours(seconds: int) -> float:
    return round(seconds / 3600, 4)


def _account(raw: cabc.Mapping[str, Any]) -> Account:
    return Account(
        capacity=raw["capacity"],
        **{str(outcome): raw.get(str(outcome), 0) for outcome in Outcome},
        unpriced=raw.get("unpriced", 0),
        spent=Amount(raw.get("spent", "0")),
        instead=Amount(raw.get("instead", "0")),
    )


def _render_account(one: Account) -> dict[str, Any]:
    money = {"spent": str(one.spent), "instead": str(one.instead)} if one.spent else {}
    return {
        "capacity": one.capacity,
        **{str(outcome): one.of(outcome) for outcome in Outcome},
        "unpriced": one.unpriced,
        **money,
    }


def _line(raw: cabc.Mapping[str, Any]) -> Line:
    rate = Rate(Amount(raw["price"]), Amount(raw["onDemandPrice"])) if "price" in raw else None
    return Line(
        attempt=raw["attempt"],
        capacity=raw["capacity"],
        rate=rate,
        there=indexes.parse(raw.get("workers", "")),
        since=raw.get("since", 0),
        ended=indexes.parse(raw.get("ended", "")),
        rest=raw.get("rest", 0),
        mark=raw.get("mark", 0),
    )


def _render_line(one: Line) -> dict[str, Any]:
    price = {"price": str(one.rate.price), "onDemandPrice": str(one.rate.on_demand)} if one.rate else {}
    return {
        "attempt": one.attempt,
        "capacity": one.capacity,
        **price,
        "workers": one.there.text,
        "since": one.since,
        "ended": one.ended.text,
        "rest": one.rest,
        "mark": one.mark,
    }
