"""Counters of workers' time and of money, by who pays."""

import dataclasses
import datetime as dt

import prometheus_client as prometheus

from spottrain.api import ledger

Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Payer:
    """A job; `team` is the value of the label that names who pays, `priced`: it has prices of its own."""

    namespace: str
    name: str
    uid: str
    team: str = ""
    priced: bool = False


class Costs:
    """What ledgers have grown by. A second is counted once it has an outcome, and that is written."""

    def __init__(self, registry: prometheus.CollectorRegistry, *, teams: bool) -> None:
        self._teams = teams
        who = ("namespace", "team") if teams else ("namespace",)
        self._seconds = prometheus.Counter(
            "spottrain_worker_seconds",
            "Time of workers on nodes by what it was bought as and what came of it",
            (*who, "capacity", "outcome"),
            registry=registry,
        )
        self._cost = prometheus.Counter(
            "spottrain_cost",
            "What that time cost, where it has a price",
            (*who, "capacity"),
            registry=registry,
        )
        self._instead = prometheus.Counter(
            "spottrain_cost_on_demand",
            "What the useful part of that time would have cost on demand",
            who,
            registry=registry,
        )
        self._known: dict[Key, tuple[Payer, ledger.Ledger]] = {}

    def paid(self, payer: Payer, before: ledger.Ledger, after: ledger.Ledger) -> None:
        """The job's ledger was `before` when it was first seen here, and is `after` now."""
        key = (payer.namespace, payer.name)
        known = self._known.get(key)
        self._announce(payer, after)
        self._count(payer, known[1] if known and known[0].uid == payer.uid else before, after)
        self._known[key] = payer, after

    def forget(self, key: Key, now: dt.datetime) -> None:
        """The job is gone: what had no outcome yet is lost, and was paid for."""
        if known := self._known.pop(key, None):
            self._count(*known, known[1].abandoned(now))

    def _who(self, payer: Payer) -> tuple[str, ...]:
        return (payer.namespace, payer.team) if self._teams else (payer.namespace,)

    def _announce(self, payer: Payer, book: ledger.Ledger) -> None:
        """Series exist at 0 before their first event, or `increase()` would never see it."""
        who = self._who(payer)
        for capacity in ledger.CAPACITIES:
            for outcome in ledger.Outcome:
                self._seconds.labels(*who, capacity, str(outcome))
            if payer.priced or book.priced:
                self._cost.labels(*who, capacity)
                self._instead.labels(*who)

    def _count(self, payer: Payer, before: ledger.Ledger, after: ledger.Ledger) -> None:
        who = self._who(payer)
        for account in after.accounts:
            known = before.account(account.capacity)
            for outcome in ledger.Outcome:
                seconds = account.of(outcome) - known.of(outcome)
                self._seconds.labels(*who, account.capacity, str(outcome)).inc(max(0, seconds))
            if account.spent > known.spent:
                self._cost.labels(*who, account.capacity).inc(float(account.spent - known.spent) / 3600)
                self._instead.labels(*who).inc(float(account.instead - known.instead) / 3600)
