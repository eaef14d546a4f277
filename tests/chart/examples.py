"""A status in which every field has a value, for the tests of the schema."""

import collections.abc as cabc
import dataclasses
import datetime as dt
from typing import Any

from spottrain.api import conditions, indexes, ledger, prices, shards, status

NOON = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)

STATUS = status.Status(
    phase=status.Phase.RUNNING,
    conditions=(
        conditions.Condition(
            type="Running", status=True, reason="AllRunning", message="All run.", since=NOON, generation=2
        ),
    ),
    observed_generation=2,
    attempt=3,
    attempt_id="5e0f",
    created_attempt=3,
    created=indexes.parse("0-6,9"),
    go_attempt=3,
    reclaims=2,
    failures=1,
    workers=status.Workers(desired=4, running=3, on_demand=1, spot=2, succeeded=1, indexes=9, fallback=1),
    step=1200,
    progress=status.Progress(total=5000, per_second=3.125, time=NOON),
    checkpoint=status.Checkpoint(step=1190, time=NOON, save_seconds=12.5),
    last_reclaim=status.Reclaim(
        time=NOON,
        cause="EvictionByEvictionAPI",
        node="spot-1",
        zone="zone-a",
        capacity="spot",
        provider="aws",
        index=1,
        attempt=2,
        instance_type="p4d.24xlarge",
    ),
    attempts=(
        status.Attempt(
            number=3,
            id="5e0f",
            cause=status.Cause.RECLAIMED,
            start=NOON,
            reason="NodeLost",
            detail="Node spot-1 is gone.",
            node="spot-1",
            index=1,
            running=NOON,
            end=NOON,
            placed=NOON,
            stepping=NOON,
            on_demand=True,
            resume_step=105,
            last_step=299,
        ),
    ),
    start=NOON,
    completion=NOON,
    next_retry=NOON,
    fallback=status.Fallback(since=NOON, until=NOON, times=2),
    shards=shards.Shards(
        completed=indexes.of([0, 1, 2, 5]),
        failed=indexes.of([6]),
        made=indexes.of([3, 4]),
        restarts=indexes.Counts().plus({3: 1, 6: 2}),
        failures=indexes.Counts().plus({6: 2}),
        retries=(shards.Retry(NOON, indexes.of([7])),),
    ),
    active_since=NOON,
    restart=90.5,
    storm=status.Storm(reclaims=21, step=1100),
    failed_nodes=(status.FailedNode(name="spot-2", uid="d1f2", failures=2, time=NOON),),
    cost=ledger.Ledger(
        accounts=(
            ledger.Account(
                capacity="spot",
                useful=7200,
                lost=600,
                restoring=60,
                waiting=30,
                unpriced=45,
                spent=prices.parse("8629.5"),
                instead=prices.parse("26424"),
            ),
        ),
        lines=(
            ledger.Line(
                attempt=12,
                capacity="on-demand",
                rate=prices.Rate(prices.parse("3.67"), prices.parse("3.67")),
                there=indexes.of([0, 2]),
                since=3_590_000_000,
                ended=indexes.of([1]),
                rest=300,
                mark=1_795_000_000,
            ),
        ),
        time=NOON,
    ),
)


def parts(value: Any) -> cabc.Iterator[Any]:
    """A dataclass and the ones in its fields."""
    if isinstance(value, tuple):
        for one in value:
            yield from parts(one)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
